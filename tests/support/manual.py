"""What the pages of the manual hold: blocks of code to run, and commands to understand.

A block that begins with ```python or ```sh is run, page by page, in order, in an empty folder.  One
more word says that it cannot be: `gpu` (needs a GPU), `cluster` (needs a database, Slurm or several
processes), `setup` (installs or builds) or `hours` (takes long, or a graph of the reader's own).
Of these, and of commands in indented blocks, which say how something was measured, every line is
checked: that the command exists and takes these flags.  test_guide.py also runs those that take
hours, a GPU or a cluster, shortened and on a CPU.
"""

import re
import shlex
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

import gcnii.cli

ROOT = Path(__file__).parents[2]
UNRUN = ("gpu", "cluster", "setup", "hours")
PAGES = sorted(
    str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md") if "_build" not in path.parts
)
# A block within a list is indented.
FENCE = re.compile(r"^( *)```(\w+)([^\n{]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


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


def blocks(page):
    """The fenced blocks of a page."""
    found = FENCE.findall((ROOT / page).read_text("utf-8"))
    return [Block(language, mark.strip(), dedent(text)) for _, language, mark, text in found]


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
        assert first in ("pip", "git", "cd", "source"), line
