"""Commands that are told to write where something is already, or where nothing can be written."""

import os
import shutil
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from gcnii.errors import InputError
from gcnii.results.bundle import open_bundle
from hostile.commands import judge_words, zygote
from hostile.folders import Rows, encoded, write
from hostile.judging import Lost, Traceback, Wrong
from hostile.trainings import EDGES, ROWS

SMALL = ("--layers", "2", "--width", "4", "--epochs", "3", "--patience", "3", "--device", "cpu")
SMALL += ("--threads", "1", "--quiet")
CPU = ("--device", "cpu")
NEW_NODES: Rows = [["id", "age", "town"], ["q0", "3", "Oslo"], ["q1", "5", "Rome"]]
NEW_EDGES: Rows = [["source", "target"], ["q0", "p1"], ["q1", "p2"]]

# name → the words of a command, in which OUT stands for where to write; and the endings that it has
WRITERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "predict": (("predict", "bundle", *CPU, "--out", "OUT"), (".csv", ".parquet")),
    "predict new": (("predict", "bundle", "--add", "new", *CPU, "--out", "OUT"), (".csv",)),
    "predict packed": (
        ("predict", "bundle", "--graph", "packed.safetensors", *CPU, "--out", "OUT"),
        (".csv",),
    ),
    "explain": (("explain", "bundle", "p1", *CPU, "--out", "OUT"), (".png", ".svg")),
    "report": (("report", "run", "bundle", *CPU, "--out", "OUT"), (".html",)),
    "pack": (("data", "pack", "shop", "OUT"), (".safetensors",)),
    "pack parts": (("data", "pack", "shop", "OUT", "--parts", "2"), ("",)),
    "train": (("train", "shop", *SMALL, "--out", "OUT"), ("",)),
    "log": (("train", "shop", *SMALL, "--out", "fresh", "--log", "OUT"), (".csv",)),
    "board": (("train", "shop", *SMALL, "--out", "fresh", "--tensorboard", "OUT"), ("",)),
    "tune": (
        ("tune", "shop", *SMALL[:4], *SMALL[4:], "--trials", "2", "--seeds", "1", "--out", "OUT"),
        ("",),
    ),
}
OFTEN = (
    "predict",
    "predict",
    "predict new",
    "explain",
    "report",
    "pack",
    "pack parts",
    "pack parts",
)
OFTEN += ("train", "train", "log", "log", "board", "predict packed", "predict", "pack", "tune")
OVERWRITING = ("train", "tune")  # what an earlier training or search has begun goes on there
# What each writer may replace, because it wrote it: the file, or the folder with all that is in it.
OURS = {
    "predict": ("labels.csv", "labels.parquet", "empty.csv"),
    "predict new": ("labels.csv", "empty.csv"),
    "predict packed": ("labels.csv", "empty.csv"),
    "explain": ("why.png", "why.svg"),
    "report": ("page.html",),
    "pack": ("packed.safetensors",),
    "pack parts": ("parts", "hollow"),
    "train": ("hollow", "bundle"),  # the same training
    "log": ("log.csv", "empty.csv"),
    "board": ("board", "hollow"),
    "tune": ("hollow",),
}
ODD = (
    *("/dev/null", "/dev/full", "/dev/zero", "/proc/x", "notes.csv/x", "a\nb", "\x1b[31mred", "🙂"),
    *("x" * 300, "deep/er/x", "~nobody-here/x", "-x", ".hidden", " ", "bundle/x", "shop/x", "con:"),
    *("shop/../shop/x", "thesis/x", "./x", "parts/x", "a=b", "x.csv.csv", "x.tar", "$HOME", "''"),
)


class Outputs:
    """Whatever a command is told to write to, what was there before is as it was."""

    name, few, quick, long = "outputs", 3, 20, 500

    def __init__(self, home: Path):
        self.commands = zygote()
        self.box, self.whole = home / "box", home / "whole"
        self._fill()
        shutil.copytree(self.box, self.whole, symlinks=True)
        self._add_special()
        self.before = snapshot(self.box)

    def _fill(self) -> None:
        """A folder as users have them: data, bundles, results, and what is not ours at all."""
        box = self.box
        box.mkdir()
        write(box / "shop", encoded({"nodes.csv": ROWS, "edges.csv": EDGES}))
        write(box / "new", encoded({"nodes.csv": NEW_NODES, "edges.csv": NEW_EDGES}))
        self._do("train", "shop", *SMALL, "--out", "bundle", "--log", "log.csv")
        self._do("train", "shop", *SMALL, "--lr", "0.5", "--out", "other bundle")
        self._do("predict", "bundle", *CPU, "--out", "labels.csv")
        self._do("predict", "bundle", *CPU, "--out", "labels.parquet")
        self._do("explain", "bundle", "p1", *CPU, "--out", "why.png")
        self._do("explain", "bundle", "p1", *CPU, "--out", "why.svg")
        self._do("report", "run", "bundle", *CPU, "--out", "page.html")
        self._do("data", "pack", "shop", "packed.safetensors")
        self._do("data", "pack", "shop", "parts", "--parts", "3")
        self._do("data", "pack", "shop", "mixed", "--parts", "3")
        (box / "mixed" / "notes.txt").write_text("put beside the parts")
        for name in ("notes.csv", "notes.html", "notes.png", "notes.svg", "notes.parquet", "notes"):
            (box / name).write_text("id,price\n1,2\n")
        (box / "notes.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{}      ")
        (box / "empty.csv").write_bytes(b"")
        (box / "thesis" / "src").mkdir(parents=True)
        (box / "thesis" / "parts.json").write_text('{"bolts": 3}')
        (box / "thesis" / "thesis.tex").write_text("ten years of work")
        (box / "thesis" / "src" / "main.c").write_text("int main;")
        (box / "board" / "seed-0").mkdir(parents=True)
        (box / "hollow").mkdir()
        for link, place in LINKS.items():
            (box / link).symlink_to(place)

    def _add_special(self) -> None:
        for end in (".csv", ".html", ".png", ".safetensors", ""):
            os.mkfifo(self.box / f"pipe{end}")

    def _do(self, *words: str) -> None:
        ended = self.commands.run(words, self.box)
        judge_words(ended, "at first")
        if ended.code:
            raise Wrong(f"at first: {' '.join(words)}: {ended.err[-300:]}")

    def attempt(self, random: Random, folder: Path) -> None:
        """A command, and a place for what it writes."""
        which = random.choice(OFTEN)
        words, ends = WRITERS[which]
        target = self._target(random, random.choice(ends))
        words = tuple(target if word == "OUT" else word for word in words)
        told = f"{' '.join(words)!r:.300}"
        ended = self.commands.run(words, self.box)
        after = snapshot(self.box)
        try:
            judge_words(ended, told)
            self._judge(which, target, ended, after, told)
        finally:
            if after != self.before:
                self._restore()

    def _target(self, random: Random, end: str) -> str:
        here = sorted(str(path.relative_to(self.box)) for path in self.box.rglob("*"))
        fitting = [name for name in here if Path(name).suffix == end]
        how = random.choice(("there",) * 4 + ("anything", "odd", "odd", "around"))
        if how == "there":
            return random.choice(fitting)
        if how == "anything":
            return random.choice([*here, ".", "..", "/", "", "shop/", "bundle/."])
        if how == "odd":
            name = random.choice(ODD)
            return f"{name}{end}" if random.random() < 0.7 else name
        name = random.choice(fitting)
        around = (f"./{name}", f"shop/../{name}", str(self.box / name), f"thesis/../{name}")
        return random.choice(around)

    def _judge(self, which: str, target: str, ended: Any, after: dict[str, Any], told: str) -> None:
        if ended.code not in (0, 1, 2):
            raise Traceback(f"{told}: exit code {ended.code}: {ended.err[-300:]}")
        if ended.code and not ended.err.strip():
            raise Wrong(f"{told}: exit code {ended.code} without a word")
        mine = self._mine(which, target)
        changed = sorted(
            name
            for name, state in self.before.items()
            if after.get(name) != state and not any(_is_in(name, one) for one in mine)
        )
        if changed:
            raise Lost(f"{told}: exit code {ended.code}, changed {changed[:4]}")
        if not ended.code:
            self._judge_written(which, target, told)
            return
        new = sorted(after.keys() - self.before.keys())
        if ended.code == 2 and any(after[name] != "folder" for name in new):
            raise Lost(f"{told}: refused, but wrote {new[:4]}: {ended.err[-300:]}")

    def _mine(self, which: str, target: str) -> list[str]:
        """What the command may change: what it, or another like it, has written there before."""
        place = Path(os.path.realpath(self.box / target))
        if not place.is_relative_to(self.box):
            return []
        name = str(place.relative_to(self.box))
        link = os.path.relpath(os.path.abspath(self.box / target), self.box)
        return [name, link] if name in OURS[which] else []

    def _judge_written(self, which: str, target: str, told: str) -> None:
        place = self.box / (target if target.startswith("~n") else Path(target).expanduser())
        if not place.exists():
            raise Lost(f"{told}: done, but {target!r:.80} is not there")
        if which in ("train", "tune"):
            try:
                open_bundle(place)
            except InputError as error:
                raise Lost(f"{told}: done, but the bundle does not open: {error}") from None
        for bundle in ("bundle", "other bundle"):
            open_bundle(self.box / bundle)

    def _restore(self) -> None:
        shutil.rmtree(self.box)
        shutil.copytree(self.whole, self.box, symlinks=True)
        self._add_special()

    def close(self) -> None:
        """The zygote is ended with this process."""


LINKS = {
    "link.csv": "notes.csv",
    "to the data.csv": "shop/nodes.csv",
    "to the curves.csv": "bundle/curves.csv",
    "dangling.csv": "nowhere.csv",
    "loop.csv": "loop.csv",
    "link.html": "notes.html",
    "link.png": "notes.png",
    "link.safetensors": "packed.safetensors",
    "to the thesis": "thesis",
    "to the bundle": "bundle",
    "to the shop": "shop",
    "loop": "loop",
}


def _is_in(name: str, folder: str) -> bool:
    return name == folder or name.startswith(f"{folder}/")


def snapshot(folder: Path) -> dict[str, str]:
    """Relative path → what is there: the digest of a file, or what else it is."""
    found = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"link to {os.readlink(path)}"
        elif path.is_dir():
            found[name] = "folder"
        elif path.is_file():
            found[name] = sha256(path.read_bytes()).hexdigest()
        else:
            found[name] = "special"
    return found
