"""gcnii: the command line.  Results go to stdout, progress and warnings to stderr; exit 0 done, 1
failed, 2 bad input.

The commands are named here and imported when called, so that `gcnii --help` need not wait for
torch.
"""

from __future__ import annotations

import errno
import io
import os
import re
import shutil
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from cyclopts import App, CycloptsError, Parameter, Token, convert

from gcnii import __version__
from gcnii.errors import InputError

MOST = 2**31 - 1  # that a flag may count: what any tensor's size or clock can hold
# columns: with fewer, a table of flags has no room for a letter, and is laid out without end
NARROWEST = 40


def _strictly(kind: Any, tokens: Sequence[Token]) -> Any:
    """What the words say, where cyclopts would round 2.7 to a whole number."""
    if kind in (int, tuple[int, ...]):
        for token in tokens:
            if not re.fullmatch(r"[+-]?\d{1,10}", token.value) or abs(int(token.value)) > MOST:
                raise InputError(f"{token.value!r} is no whole number of at most {MOST:,}.")
    return convert(kind, tokens)


app = App(
    name="gcnii",
    version=__version__,
    help="GCNIISkeleton graph convolutional networks for node classification (GCNII).",
    suppress_keyboard_interrupt=False,  # `main` says that it stopped
    default_parameter=Parameter(converter=_strictly),
)
app.command(
    "gcnii.cli.train:train", name="train", help="Train a model on a graph and save it as a bundle."
)
app.command(
    "gcnii.cli.predict:predict",
    name="predict",
    help="Label the nodes of a graph with a trained model.",
)
app.command("gcnii.cli.models:models", name="models", help="List the models.")
app.command(
    "gcnii.cli.paper.demo:demo",
    name="demo",
    help="Show over-smoothing, and GCNII without it, in a minute.",
)
app.command(
    "gcnii.cli.paper.bench:bench",
    name="bench",
    help="Measure speed and memory, against PyG and the authors' manner.",
)
app.command(
    "gcnii.cli.theory:theory",
    name="theory",
    help="Check the paper's theorems on a graph, with numbers.",
)
app.command(
    "gcnii.cli.doctor:doctor",
    name="doctor",
    help="Find where models over-smooth on a graph, and what to try.",
)
app.command(
    "gcnii.cli.paper.forecast:forecast",
    name="forecast",
    help="Test the doctor's advice on depth against trained networks.",
)
app.command(
    "gcnii.cli.paper.reproduce:app",
    name="reproduce",
    help="Run the paper's tables and figures, and judge them.",
)

data = App(name="data", help="List, show, fetch and check data sets.")
data.command("gcnii.cli.data:list_names", name="list", help="List the data sets of the catalog.")
data.command(
    "gcnii.cli.data:show",
    name="show",
    help="Show what is known of a data set, and the paper's settings for it.",
)
data.command(
    "gcnii.cli.data:fetch", name="fetch", help="Download data sets into the cache and verify them."
)
data.command(
    "gcnii.cli.data:check",
    name="check",
    help="Check a graph of your own, with row numbers where it is wrong.",
)
app.command(data)

report = App(name="report", help="What was measured, as pages and pictures.")
report.command(
    "gcnii.cli.paper.report:html",
    name="html",
    help="Write one HTML page with every table, seed and figure.",
)
report.command(
    "gcnii.cli.paper.report:readme",
    name="readme",
    help="Rewrite the tables and pictures of README.md and docs/ from results/.",
)
app.command(report)


def main() -> None:
    """Run the command line; one clear sentence instead of a traceback for whatever the user can
    mend.
    """
    warnings.showwarning = _warn  # type: ignore[assignment]
    _fit_the_terminal()
    try:
        app(sys.argv[1:], exit_on_error=False, print_error=False, result_action="return_value")
        if sys.stdout:  # there is none where the caller closed it
            sys.stdout.flush()
    except BrokenPipeError:  # `gcnii … | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (Exception, KeyboardInterrupt) as error:
        sentence, code = _explain(error)
        if not sentence or os.environ.get("GCNII_TRACEBACK"):
            raise
        print(f"gcnii: {sentence}", file=sys.stderr)
        sys.exit(code)


def _explain(error: BaseException) -> tuple[str, int]:
    """A sentence for the user and the exit code; no sentence where the fault is ours."""
    match error:
        case CycloptsError():
            return f"{error} See {' '.join(('gcnii', *(error.command_chain or ())))} --help.", 2
        case KeyboardInterrupt():
            return "stopped", 1
        case OSError(strerror=str(reason)) if error.filename:
            return f"cannot read or write {error.filename2 or error.filename}: {reason}", 1
        # files have their names
        case OSError(strerror=str(reason), errno=errno.ENOSPC | errno.EDQUOT | errno.EFBIG):
            return f"cannot write to the standard output: {reason}", 1
        case OSError() | FloatingPointError():
            return str(error), 1
        case ValueError():
            return str(error), 2
        case MemoryError() | RuntimeError() if _lacks_memory(error):
            return (
                "out of memory; try a smaller model, fewer runs or jobs at once, or another --device",
                1,
            )
    return "", 1


def _fit_the_terminal() -> None:
    """Print a question mark for what a terminal cannot show, and lines of some width, whatever it
    says of itself.
    """
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")
    told = os.environ.get("COLUMNS", "")
    if shutil.get_terminal_size().columns < NARROWEST or (
        told.isdecimal() and int(told) < NARROWEST
    ):
        os.environ["COLUMNS"] = str(NARROWEST)


def _lacks_memory(error: BaseException) -> bool:
    from gcnii.train.hardware import lacks_memory

    return lacks_memory(error)


def _warn(message: Warning | str, *_: Any) -> None:
    print(f"gcnii: {message}", file=sys.stderr)
