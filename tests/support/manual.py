"""What the pages of the manual hold: code to run, what it prints, and commands to understand.

A block that begins with ```python or ```sh is run, page by page, in order, in an empty folder.  One
more word says that it cannot be: `gpu` (needs a GPU), `cluster` (needs a database, Slurm or several
processes), `setup` (installs, builds or waits), `hours` (takes long, or the reader's own graph) or
`minutes` (too long for a test, but run by `make outputs`).  `fails` says that it ends in an error,
and `server` that it goes on while the rest of the page is run, at a free port in place of 8000.
Of blocks that are not run, and of commands in indented blocks, which say how something was
measured, every line is checked: that the command exists and takes these flags.  test_guide.py also
runs those that take minutes, hours, a GPU or a cluster, shortened and on a CPU.

A block that begins with ```text output holds what the code before it printed to stdout in a
terminal of 80 columns (of code that fails, the error).  docs/outputs.py writes it; `head=12` keeps
its first 12 lines, `tail=12` its last.
"""

import contextlib
import importlib
import io
import os
import re
import shlex
import socket
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple
from unittest import mock
from urllib.error import URLError
from urllib.request import urlopen

import gcnii.cli
from support.command_line import call

ROOT = Path(__file__).parents[2]
SLOW = "minutes"  # not run by a test
UNRUN = ("gpu", "cluster", "setup", "hours")
FAILS = "fails"
SERVER, PORT = "server", "8000"
OUTPUT = re.compile(r"output(?: (?:head|tail)=[1-9]\d*)?")
TERMINAL = {"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"}
VIEWERS = ("cat", "head", "ls")  # of what a command wrote
# Those that are written; those that docs/generated.py makes lie a folder deeper.
PAGES = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("docs/*.md", "docs/*/*.md")
    for path in ROOT.glob(pattern)
    if "_build" not in path.parts
)
# A block within a list is indented.
FENCE = re.compile(r"^( *)```(\w+)([^\n{]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def docs_module(name):
    """A module of docs/, such as the one that makes pages of the package."""
    with mock.patch.object(sys, "path", [str(ROOT / "docs"), *sys.path]):
        return importlib.import_module(name)


class Block(NamedTuple):
    """A block of code: its language, why it is not run, if so, and its text."""

    language: str
    mark: str
    text: str

    @property
    def lines(self):
        """The commands, one a line, without comments."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [line for line in lines if line.strip() and not line.startswith("#")]

    @property
    def is_output(self):
        return self.language == "text" and self.mark.startswith("output")

    def runs(self, slow=False):
        """Whether it is code that is run, the slow ones among it if they are asked for."""
        marks = ("", FAILS, SLOW) if slow else ("", FAILS)
        return self.language in ("python", "sh") and self.mark in marks


class Screen(io.StringIO):
    """What a terminal shows."""

    def isatty(self):
        return True

    def text(self):
        """Its lines, those of more than 80 columns continued on the next one."""
        lines = (
            textwrap.wrap(line, 80, break_on_hyphens=False) if len(line) > 80 else [line.rstrip()]
            for line in self.getvalue().splitlines()
        )
        return "".join(f"{line}\n" for parts in lines for line in parts).strip("\n")


def blocks(page):
    """The fenced blocks of a page."""
    found = FENCE.findall((ROOT / page).read_text("utf-8"))
    return [Block(language, mark.strip(), dedent(text)) for _, language, mark, text in found]


def run(page, folder, slow=False):
    """Run the code of a page in an empty folder.

    Yields each of its blocks with None, or with what it printed, if it was run.
    """
    with contextlib.ExitStack() as servers:
        yield from _run(page, folder, slow, servers)


def _run(page, folder, slow, servers):
    names, port = {}, PORT
    for block in blocks(page):
        if block.mark == SERVER:
            port = str(free_port())
            address = f"http://127.0.0.1:{port}"
            servers.enter_context(running(block.text.replace(PORT, port), address, folder))
        if not block.runs(slow):
            yield block, None
            continue
        screen, block = Screen(), block._replace(text=block.text.replace(PORT, port))
        with mock.patch.dict(os.environ, TERMINAL), contextlib.chdir(folder):
            if block.language == "python":
                _run_python(page, block, names, screen)
            else:
                _run_commands(page, block, folder, screen)
        yield block, screen.text().replace(f"{folder}/", "")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextlib.contextmanager
def running(command, address, folder):
    """A server in a folder, from when it answers."""
    process = subprocess.Popen([sys.executable, "-m", *words(command)], cwd=folder)
    try:
        for _ in range(600):
            with contextlib.suppress(URLError):
                urlopen(address).close()
                break
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait()


def _run_python(page, block, names, screen):
    with warnings.catch_warnings(), contextlib.redirect_stdout(screen):
        warnings.simplefilter("ignore")  # what is left out is a notice, not an error
        try:
            exec(compile(block.text, page, "exec"), names)
        except gcnii.GcniiError as error:
            if block.mark != FAILS:
                raise
            screen.write(f"{type(error).__name__}: {error}\n")
        else:
            assert block.mark != FAILS, (page, block.text)


def _run_commands(page, block, folder, screen):
    for line in block.lines:
        command, *rest = words(line)
        if command in VIEWERS:
            screen.write(subprocess.check_output([command, *rest], cwd=folder, text=True))
            continue
        assert command == "gcnii", (page, line)
        answer = call(*rest, cwd=folder, out=screen)
        assert answer.code == (2 if block.mark == FAILS else 0), (page, line, answer)
        if block.mark == FAILS:
            screen.write(answer.err)


def cut(printed, mark):
    """What an output block with this mark shows of what was printed."""
    lines = printed.splitlines()
    kept = int(mark.partition("=")[2] or len(lines))
    if kept >= len(lines):
        return printed
    return "\n".join(["...", *lines[-kept:]] if "tail" in mark else [*lines[:kept], "..."])


def words_of(output):
    """What must stay as it is on another machine: all words of three letters or more.

    Numbers differ there, units and widths of columns with them, and numbers order tables.
    A name with a digit, such as that of a node or a folder, is not a word.
    """
    return {word for word in re.findall(r"\w{3,}", output) if not re.search(r"\d", word)}


def differs(shown, printed, mark):
    """The words that an output block should not have, and those it lacks; neither if it is true.

    Of an output that is shown in part, no word may be missing in the whole.
    """
    shown, whole = words_of(shown), words_of(printed)
    lacking = set() if cut(printed, mark) != printed and shown else whole - shown
    return sorted(shown - whole), sorted(lacking)


def measured_commands(page):
    """The commands in indented blocks."""
    text = FENCE.sub("", (ROOT / page).read_text("utf-8"))
    return re.findall(r"^ {4}((?:gcnii|torchrun|python|make|pip) .*)$", text, re.MULTILINE)


def words(line):
    """The words of a line of the shell."""
    return shlex.split(line, comments=True)


def understand(line):
    """Fail if a line is no command that could be run here."""
    first, *rest = words(line)
    if first == "torchrun":
        first, *rest = rest[rest.index("-m") + 1 :]
    if first == "gcnii":
        app = gcnii.cli.app
        if not {"--help", "--help-all", "--install-completion"} & {*rest}:
            app.parse_args(rest, exit_on_error=False, print_error=False)
    elif first == "make":
        assert re.search(rf"^{rest[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), line
    elif first in ("python", "python3"):
        assert rest[0].startswith("-") or (ROOT / rest[0]).exists(), line
    else:
        assert first in ("pip", "git", "cd", "source", "curl", *VIEWERS), line
