"""Names of nodes, classes, columns and graphs that are paths, formulas, tags or controls."""

import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd

import gcnii
from gcnii.graph import Graph, Split
from gcnii.inference.predict import harmless, label_table, write_table
from gcnii.results.bundle import open_bundle
from hostile.commands import judge_words, zygote
from hostile.judging import Lost, Silent, Wrong, answer_of, bounded
from hostile.outputs import snapshot
from hostile.trainings import WORDS

EVIL = (
    *("../../../loot", "/tmp/loot", "..", ".", "~", "~root", "a/b", "a\\b", "C:\\x", "con", "NUL"),
    *(
        "=1+1",
        "+1",
        "-1",
        "@x",
        "=cmd|' /C calc'!A0",
        "a;=1+1",
        "a\t=1+1",
        "\t=1",
        "'=1",
        "＝1",
        "1",
    ),
    *("\x1b[31mred", "\x1b]0;title\x07", "\x9b31m", "a\nb", "a\r\nb", "\r", "\x00", "\x7f", "\x08"),
    *(
        "\u202eabc",
        "\u2028",
        "\u200b",
        "\ufeff",
        "é",
        "e\u0301",
        "😀",
        "\ud800",
        "ﬀ",
        "İ",
        "ß",
        "ſ",
    ),
    *("<script>alert(1)</script>", "<b id=evil>", "&lt;", '"', "'", "`", "</td>", "<!--", "]]>"),
    *(
        "nan",
        "None",
        "null",
        "",
        " ",
        " a ",
        "a ",
        "-",
        "--help",
        "%s",
        "{}",
        "${x}",
        "$(x)",
        "[red]",
    ),
    *("x" * 300, "x" * 70_000, "a,b", 'a"b', "a|b", "#", "1e5", "True", "[/red]", "\\x1b", "NA"),
)
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
N = 24


def named(random: Random, evil: Any = EVIL) -> Graph:
    """A small graph with odd names in one place, or in all."""
    words = random.sample(evil, min(len(evil), 12))
    where = random.choice(("nodes", "classes", "features", "name", "all"))
    names: dict[str, Any] = {
        "nodes": [f"n{i}" for i in range(N)],
        "classes": ["c", "d"],
        "features": ["x", "y", "z"],
        "name": "graph",
    }
    for place in names if where == "all" else (where,):
        if place == "name":
            names[place] = random.choice(words)
        else:
            fresh = words[: len(names[place])]
            names[place] = [*fresh, *names[place][len(fresh) :]]
    rng = np.random.default_rng(0)
    return Graph(
        X=rng.normal(size=(N, 3)).astype(np.float32),
        edges=np.array([range(N), [(i * i + 1) % N for i in range(N)]]),
        y=np.arange(N) % 2,
        splits=(Split.of_roles((["train"] * 2 + ["val"] * 2 + ["test"] * 2) * 4),),
        **names,
    )


def told_of(graph: Graph) -> str:
    """Its names, cut short."""
    names = (graph.nodes and graph.nodes[:3], graph.classes, graph.features, graph.name)
    return " ".join(f"{one!r:.70}" for one in names)


def bare(name: str) -> str:
    """Without the ' that keeps a spreadsheet from running it, there or after a separator."""
    return re.sub(r"(^|[;,\t|])'+", r"\1", name)


class Names:
    """Names come back from files as they were, and no file of names does anything."""

    name, few, quick, long = "names", 6, 60, 600

    def __init__(self, home: Path):
        """Nothing is shared."""

    def attempt(self, random: Random, folder: Path) -> None:
        """Save a graph and load it; train it, and read what was predicted."""
        made = answer_of(lambda: named(random))
        if made.value is None:
            return
        graph = made.value
        told = told_of(graph)
        how = random.choice((self._pack, self._pack, self._table, self._table, self._bundle))
        before = snapshot(folder.parent)
        how(random, graph, folder, told)
        after = snapshot(folder.parent)
        outside = [
            name
            for name in before.keys() | after.keys()
            if before.get(name) != after.get(name) and not name.startswith(folder.name)
        ]
        if outside:
            raise Lost(f"{told}: wrote to {outside[:3]}")

    def _pack(self, random: Random, graph: Graph, folder: Path, told: str) -> None:
        saved = answer_of(lambda: gcnii.save(graph, folder / "saved.safetensors"))
        if saved.value is None:
            if (folder / "saved.safetensors").exists():
                raise Lost(f"{told}: refused, but written: {saved.sentence}")
            return
        loaded = answer_of(lambda: gcnii.load(folder / "saved.safetensors"))
        if loaded.value is None:
            raise Lost(f"{told}: saved, but not loaded: {loaded.sentence}")
        for name in ("nodes", "classes", "features"):
            if getattr(loaded.value, name) != getattr(graph, name):
                raise Silent(f"{told}: other {name}: {getattr(loaded.value, name)!r:.200}")

    def _table(self, random: Random, graph: Graph, folder: Path, told: str) -> None:
        """predict --out, read by a plain reader of CSV, with each of the usual separators."""
        with bounded():
            result = gcnii.fit(graph, **WORDS)
        table = label_table(result, graph, "cpu")
        safe, _ = harmless(table)
        written = answer_of(lambda: write_table(safe, folder / "labels.csv") or True)
        if written.value is None:
            return
        text = (folder / "labels.csv").read_bytes().decode("utf-8", "surrogatepass")
        rows = list(csv.reader(io.StringIO(text, newline="")))
        if len(rows) != N + 1:
            raise Silent(f"{told}: {len(rows) - 1} rows, not {N}")
        for row, name in zip(rows[1:], graph.nodes or (), strict=True):
            cell = row[0]
            if bare(cell) != bare(name):
                raise Silent(f"{told}: node {name!r:.80} is written as {cell!r:.80}")
        if len({row[0] for row in rows[1:]}) != N:
            raise Silent(f"{told}: two nodes are written alike")
        for cell in (cell for row in rows[1:] for cell in row[:3]):
            if re.match("[=@＝＠\t\r]", cell) or re.match(r"[+\-－＋][^\d.]", cell):
                raise Silent(f"{told}: a spreadsheet runs {cell!r:.80}")
        for separator in ";\t":
            for cell in (cell for line in text.splitlines() for cell in line.split(separator)[1:]):
                if re.match(r'"?[=@]', cell) and separator == ";":
                    raise Silent(f"{told}: a spreadsheet that separates by ; runs {cell!r:.80}")

    def _bundle(self, random: Random, graph: Graph, folder: Path, told: str) -> None:
        with bounded():
            result = gcnii.fit(graph, **WORDS)
        saved = answer_of(lambda: result.save(folder / "bundle"))
        if saved.value is None:
            return
        opened = answer_of(lambda: open_bundle(folder / "bundle"))
        if opened.value is None:
            raise Lost(f"{told}: saved, but does not open: {opened.sentence}")
        found = opened.value.predict_proba(graph, "cpu")
        if not np.array_equal(found, result.predict_proba(graph, "cpu")):
            raise Silent(f"{told}: other probabilities")

    def close(self) -> None:
        """Nothing to end."""


class Tags(HTMLParser):
    """The names of the elements, and of what has an id, of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.evil: list[str] = []

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        """Note what a name has put there."""
        if dict(attributes).get("id") == "evil":
            self.evil.append(tag)

    def handle_data(self, data: str) -> None:
        """Note a script of a name."""
        if self.lasttag == "script" and "alert(1)" in data and data.strip() == "alert(1)":
            self.evil.append("script")


class ShownNames:
    """Names reach no terminal as commands, no page as tags, and no path as a folder."""

    name, few, quick, long = "shown-names", 1, 10, 100

    def __init__(self, home: Path):
        self.commands = zygote()

    def attempt(self, random: Random, folder: Path) -> None:
        """Train on a packed graph with odd names, and show it in all ways."""
        made = answer_of(lambda: named(random))
        home = folder / "a" / "b" / "c"
        home.mkdir(parents=True)
        if made.value is None:
            return
        graph = made.value
        if answer_of(lambda: gcnii.save(graph, home / "g.safetensors")).value is None:
            return
        told = told_of(graph)
        before = snapshot(folder)
        small = ("--layers", "2", "--width", "4", "--epochs", "2", "--device", "cpu")
        ended = self._run(("train", "g.safetensors", *small), home, told)
        new = [name for name in snapshot(folder) if name not in before]
        if outside := [one for one in new if not one.startswith(("a/b/c/runs", "a/b/c."))]:
            raise Lost(f"{told}: train wrote to {outside[:3]}")
        bundles = sorted((home / "runs").glob("*/run.json")) if not ended.code else []
        if not bundles:
            if not ended.code:
                raise Lost(f"{told}: no bundle in runs/, but {new[:3]}")
            return
        bundle = str(bundles[0].parent.relative_to(home))
        node = random.choice(graph.nodes or ("0",))
        for words in (
            ("data", "check", "g.safetensors"),
            ("evaluate", bundle, "--device", "cpu", "--no-baselines"),
            ("explain", bundle, "--device", "cpu", "--", node),
            ("report", "run", bundle, "--device", "cpu", "--out", "page.html"),
            ("predict", bundle, "--device", "cpu", "--json"),
        ):
            ended = self._run(words, home, told)
            if words[0] == "report" and not ended.code:
                self._judge_page((home / "page.html").read_text("utf-8", "replace"), told)
            if words[0] == "predict" and not ended.code:
                self._judge_labels(json.loads(ended.out), graph, told)

    def _run(self, words: Any, home: Path, told: str) -> Any:
        ended = self.commands.run([word.replace("\0", "") for word in words], home)
        judge_words(ended, told)
        if ended.code not in (0, 2):
            raise Wrong(f"{told}: {words[0]}: exit code {ended.code}: {ended.err[-300:]}")
        for stream in ended[1:]:
            if found := CONTROL.search(stream):
                around = stream[max(found.start() - 20, 0) : found.end() + 20]
                raise Silent(f"{told}: {words[0]} printed {around!r}")
        return ended

    @staticmethod
    def _judge_page(text: str, told: str) -> None:
        tags = Tags()
        tags.feed(text)
        if tags.evil:
            raise Silent(f"{told}: the page has {tags.evil}")

    @staticmethod
    def _judge_labels(document: Any, graph: Graph, told: str) -> None:
        found = [row["node"] for row in document["labels"]]
        if found != list(graph.nodes or ()):
            raise Silent(f"{told}: predict names {found[:3]!r:.200}")

    def close(self) -> None:
        """The zygote is ended with this process."""


def framed_of(columns: dict[str, list[Any]]) -> pd.DataFrame:
    """A frame of objects, the names of its columns too: pandas' own text holds UTF-8 alone."""
    frame = pd.DataFrame(dict(enumerate(columns.values())), dtype=object)
    return frame.set_axis(pd.Index(list(columns), dtype=object), axis=1)


class Cells:
    """Names in a folder of tables are the names of the graph, or are refused."""

    name, few, quick, long = "named-cells", 10, 60, 600

    def __init__(self, home: Path):
        """Nothing is shared."""

    def attempt(self, random: Random, folder: Path) -> None:
        """Names written by a plain writer of CSV, and as a data frame: both ways are one graph."""
        words = random.sample(EVIL, 10)
        names = list(dict.fromkeys([*words[: random.randint(1, 4)], *(f"n{i}" for i in range(20))]))
        count = len(names)
        labels = ["cd"[i % 2] if i < 4 else random.choice((words[8], "c")) for i in range(count)]
        nodes = {"id": names, random.choice((words[9], "x")): list(range(count)), "label": labels}
        ends = {"source": names, "target": names[1:] + names[:1]}
        frames = [framed_of(one) for one in (nodes, ends)]
        framed = answer_of(lambda: gcnii.from_frames(*frames))
        try:
            for name, frame in zip(("nodes.csv", "edges.csv"), frames, strict=True):
                text = frame.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_ALL)
                (folder / name).write_bytes(text.encode("utf-8"))
        except UnicodeEncodeError:
            return
        read = answer_of(lambda: gcnii.load(folder))
        told = f"{words!r:.300}"
        if framed.value is None or read.value is None:
            return
        one, other = framed.value, read.value
        if [name.strip() for name in one.nodes] != [name.strip() for name in other.nodes]:
            raise Silent(f"{told}: nodes {one.nodes!r:.200} and {other.nodes!r:.200}")
        found = [
            [y >= 0 and graph.classes[y].strip() for y in graph.labels] for graph in (one, other)
        ]
        blank = not words[8].strip() or words[8] in ("nan", "None", "null", "NA")
        if found[0] != found[1] and not blank:  # which means unknown in one of the two
            raise Silent(f"{told}: labels {found[0]!r:.200} and {found[1]!r:.200}")

    def close(self) -> None:
        """Nothing to end."""


NAMES = (Names, ShownNames, Cells)
