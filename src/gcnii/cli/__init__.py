"""gcnii: the command line.  Results go to stdout, progress and warnings to stderr; exit 0 done, 1 failed, 2 bad input.

The commands are named here and imported when called, so that `gcnii --help` need not wait for torch.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

from cyclopts import App, CycloptsError

from gcnii import __version__

app = App(name="gcnii", version=__version__, help="Deep graph convolutional networks for node classification (GCNII).")
app.command("gcnii.cli.train:train", name="train", help="Train a model on a graph and save it as a bundle.")
app.command("gcnii.cli.predict:predict", name="predict", help="Label the nodes of a graph with a trained model.")
app.command("gcnii.cli.models:models", name="models", help="List the models.")
app.command("gcnii.cli.demo:demo", name="demo", help="Show over-smoothing, and GCNII without it, in half a minute.")

data = App(name="data", help="List, show, fetch and check data sets.")
data.command("gcnii.cli.data:list_names", name="list", help="List the data sets of the catalog.")
data.command(
    "gcnii.cli.data:show", name="show", help="Show what is known of a data set, and the paper's settings for it."
)
data.command("gcnii.cli.data:fetch", name="fetch", help="Download data sets into the cache and verify them.")
data.command(
    "gcnii.cli.data:check", name="check", help="Check a graph of your own, with row numbers where it is wrong."
)
app.command(data)

FAILURES = (FloatingPointError, OSError, MemoryError)


def main() -> None:
    """Run the command line; one clear sentence instead of a traceback for whatever the user can mend."""
    warnings.showwarning = _warn  # type: ignore[assignment]
    try:
        app(exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        _stop(f"{error} See gcnii --help.", 2)
    except FAILURES as error:
        _stop(str(error), 1)
    except ValueError as error:
        _stop(str(error), 2)
    except KeyboardInterrupt:
        _stop("stopped", 1)


def _stop(sentence: str, code: int) -> None:
    if os.environ.get("GCNII_TRACEBACK"):
        raise
    print(f"gcnii: {sentence}", file=sys.stderr)
    sys.exit(code)


def _warn(message: Warning | str, *_: Any) -> None:
    print(f"gcnii: {message}", file=sys.stderr)
