"""stdout and stderr as every command finds them: open, of a sane width, and safe to print to.

What goes to stderr is made visible where it is printed: Rich's bars would be shown as escapes.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import sys

from gcnii.errors import visible
from gcnii.files import naming

# columns: in a narrower terminal the table of flags has no room for text, and its layout never ends
NARROWEST = 40
STDOUT = "the standard output"
WIDEST = 1000  # columns; a line of a table is padded to the width of the terminal


class NamedStream(io.TextIOWrapper):
    """A file or pipe as stdout, whose errors say so: those of other files have their own names."""

    def __init__(self, stream: io.TextIOWrapper):
        super().__init__(
            stream.buffer, stream.encoding, stream.errors, line_buffering=stream.line_buffering
        )
        self.stream = stream  # which closes the file when nobody has it any more

    def write(self, text: str) -> int:
        """Write the text."""
        with naming(STDOUT):
            return super().write(text)

    def flush(self) -> None:
        """Hand on what was written."""
        with naming(STDOUT):
            super().flush()


class VisibleStream(io.TextIOWrapper):
    """A terminal that is shown control characters as escapes instead of obeying them.

    Rich, whose colours are such characters, writes to `rich_proxied_file` instead.
    """

    def __init__(self, stream: io.TextIOWrapper):
        escapes = stream.errors == "surrogateescape"  # which would let single bytes through
        errors = "backslashreplace" if escapes else stream.errors
        super().__init__(stream.buffer, stream.encoding, errors, line_buffering=True)
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        """Write the text as `visible` makes it."""
        return super().write(visible(text))


def prepare_streams() -> None:
    """Open closed streams, limit the width, and show a terminal what it would obey."""
    _open_closed()
    _replace_unencodable()
    limit_width()
    if type(sys.stdout) is io.TextIOWrapper:
        sys.stdout = (VisibleStream if sys.stdout.isatty() else NamedStream)(sys.stdout)


def _open_closed() -> None:
    """Where the caller closed stdout or stderr, what is printed there goes nowhere.

    Python has None in their place, and the next file that is opened would get their number.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            setattr(sys, name, io.TextIOWrapper(io.FileIO(nowhere, "w"), "utf-8"))


def _replace_unencodable() -> None:
    """Print `?` for what stdout cannot encode; in a C locale, where only odd bytes pass, too."""
    stream = sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        narrow = stream.errors == "surrogateescape" and stream.encoding.lower() != "utf-8"
        if stream.errors == "strict" or narrow:
            stream.reconfigure(errors="replace")


def limit_width() -> None:
    """Assume NARROWEST to WIDEST columns, whatever the terminal or the environment says."""
    for name in ("COLUMNS", "LINES"):  # Rich stumbles over some that are not numbers, such as ²
        if not re.fullmatch("[0-9]{0,12}", os.environ.get(name, "")):
            del os.environ[name]
    told = os.environ.get("COLUMNS") or NARROWEST
    columns = (shutil.get_terminal_size().columns, int(told))
    if min(columns) < NARROWEST:
        os.environ["COLUMNS"] = str(NARROWEST)
    elif max(columns) > WIDEST:
        os.environ["COLUMNS"] = str(WIDEST)
