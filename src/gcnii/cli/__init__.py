"""The command line `gcnii`.

Results go to stdout, progress and warnings to stderr.  Exit code 0: done; 1: failed or stopped; 2:
wrong usage or bad input.  Commands are imported when called: `gcnii --help` does not load torch.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

try:
    from cyclopts import App, CycloptsError, Parameter, Token, convert

    from gcnii import __version__
    from gcnii.cli.flags import FLAGS, epilogue
    from gcnii.cli.terminal import STDOUT, prepare_streams
    from gcnii.errors import GcniiError, InputError, one_line
    from gcnii_paper.cli import register
except KeyboardInterrupt:  # before there is a `main` to report it
    sys.exit("gcnii: stopped")

LARGEST_INT = 2**31 - 1  # of a flag: any tensor's size and any clock can hold it
OUT_OF_MEMORY = (
    "out of memory; try a smaller model, fewer runs or jobs at once, or another --device"
)
LEAST_MEMORY = 800_000_000  # bytes of addresses that torch takes to load; with less it may crash


def _convert(kind: object, tokens: Sequence[Token]) -> object:
    """Convert as cyclopts does, but refuse 2.7 as an integer, 1_000 as a number, "" as a path.

    cyclopts leaves the None in the types of a dataclass's fields.
    """
    for word in (token.value for token in tokens):
        if kind in (int, int | None, tuple[int, ...]):
            if not re.fullmatch(r"[+-]?[0-9]+", word):
                raise InputError(f"expected an integer, got {word!r}.")
            if len(word) > len(str(LARGEST_INT)) + 1 or abs(int(word)) > LARGEST_INT:
                raise InputError(f"expected a smaller integer, got {word[:24]!r}.")
        elif kind in (float, float | None) and "_" in word:
            raise InputError(f"expected a number, got {word!r}.")
        elif kind in (Path, Path | None) and not word:  # which would be this folder
            raise InputError("expected the path of a file or folder, got ''.")
    return convert(kind, tokens)


app = App(
    name="gcnii",
    version=__version__,
    help="""Deep graph convolutional networks for node classification (GCNII, ICML 2020).

    Start with `gcnii demo`, or with `gcnii train FOLDER` for a graph of your own in nodes.csv and
    edges.csv.""",
    help_flags=FLAGS,
    suppress_keyboard_interrupt=False,  # `main` reports it
    default_parameter=Parameter(converter=_convert),
)
data = App(name="data", help="List, show, fetch, check and pack data sets.")
report = App(name="report", help="Write a report of a trained model, or of the measured results.")
# Where a command is, what it is called, and its help: its module is imported when it is called.
COMMANDS = {
    "train:train": """Train a model on a graph and save it as a bundle.

    Run the same command again to resume an interrupted training run.""",
    "tune:tune": """Search for the best settings for a graph, by validation.

    Begins with what `gcnii train` would train, tries many settings, trains the best ones again, and
    says whether the graph helps. On a graph of your own, the best are combined. Run the same
    command again to continue.""",
    "predict:predict": """Label the nodes of a graph with a trained model.

    The output has one row per node: its name, its label and the probability of each class.""",
    "predict:embed": """Write what a trained model has learnt of each node: its last hidden layer.

    The output has one row per node: its name, and the numbers e0, e1, …""",
    "export:export": """Export a trained model as an ONNX file, which predicts without gcnii.

    It takes features and edges of a graph of any size, and returns probabilities and labels.""",
    "explain:explain": """Explain why a trained model gives a node its label.

    Divides the score into shares of nodes, features and hops, ranks the edges that matter, and
    checks how far the probability falls without them.""",
    "serve:serve": """Serve a trained model and its graph over HTTP.

    Answers for nodes of the graph, and for new ones, with label, probability and set, and explains
    them. SIGHUP loads the bundle again; SIGTERM finishes open requests, and stops.""",
    "evaluate:evaluate": """Evaluate a trained model on its test nodes.

    Prints warnings, and scores with intervals: beside simpler models, by class, by degree and by
    the classes of the neighbours.""",
    "plan:plan": """Estimate the memory and time of a training run before it starts.

    Prints memory by kind, seconds per epoch, traffic between devices, whether it fits, and what to
    change if not. The sizes of large public graphs are known, so you need not have them.""",
    "models:models": "List the models: when to use which, equation, paper, where it is reported.",
    "demo:demo": """Show what a graph adds, and how GCNII avoids over-smoothing, in under a minute.

    Predicts which customers leave, with and without the graph, and says why for one of them. Then
    trains GCNII and a plain GCN with 2 to 64 layers on the digits graph. Needs no download.""",
    "doctor:doctor": """Recommend a model and a depth for a graph; show where models over-smooth.

    A small search on validation nodes gives the recommendation, which is printed last. Before that,
    every layer is examined before and after a few epochs; --verbose prints what was found.""",
}
OF_DATA = {
    "data:show": "Show a data set's size, source and licence, and the published settings for it.",
    "data:fetch": "Download data sets into the cache and verify them.",
    "data:check": "Check a graph of your own. Errors name the file and the row.",
    "data:pack": """Write a graph to one .safetensors file, which loads fast and needs no options.

    With --parts, write a folder from which each process of torchrun reads only its own part.""",
}
OF_REPORT = {
    "evaluate:run": """Write an HTML page about a trained model.

    Scores, curves, confusions, calibration, and its least certain and most surprising nodes.""",
}
EPILOGUES = {
    "train": epilogue(
        "train",
        "Settings that you leave out come from the graph's preset, else from the model; for your "
        "own graph, see docs/understand/defaults.md.",
    ),
    "tune": epilogue("tune", "Settings that you give are not searched."),
    "doctor": epilogue("doctor"),
}
for parent, commands in ((app, COMMANDS), (data, OF_DATA), (report, OF_REPORT)):
    for place, about in commands.items():
        name = place.partition(":")[2]
        parent.command(
            f"gcnii.cli.{place}", name=name, help=about, help_epilogue=EPILOGUES.get(name)
        )
app.command("gcnii.cli.doctor:forecast", name="forecast", show=False)
data.command("gcnii.cli.data:list_names", name="list", help="List the data sets of the catalog.")
app.command(data)
app.command(report)
register(app, report)
app.register_install_completion_command(
    help="Complete commands and flags in your shell (bash, zsh, fish or PowerShell)."
)


def main() -> None:
    """Run the command line; what the user can fix is one sentence on stderr, not a traceback."""
    warnings.showwarning = _warn  # type: ignore[assignment]
    prepare_streams()
    stopped = threading.Event()
    before = _note_ctrl_c(stopped)
    try:
        _refuse_little_memory()
        _refuse_torchrun(sys.argv[1:])
        app(sys.argv[1:], exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except BrokenPipeError:  # `gcnii … | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (Exception, KeyboardInterrupt) as error:
        # An import that Ctrl-C breaks off may fail in any way: some catch the interrupt.
        sentence, code = _explain(KeyboardInterrupt() if stopped.is_set() else error)
        if not sentence or os.environ.get("GCNII_TRACEBACK"):
            raise
        print(f"gcnii: {_rank()}{one_line(sentence)}", file=sys.stderr)
        sys.exit(code)
    finally:
        if before:
            signal.signal(signal.SIGINT, before)


def _refuse_torchrun(words: Sequence[str]) -> None:
    """Raise InputError if torchrun starts several processes of a command that each would repeat."""
    several = os.environ.get("WORLD_SIZE", "1") != "1" and "TORCHELASTIC_RUN_ID" in os.environ
    if several and words[:1] != ["train"]:
        raise InputError(
            f"only `gcnii train` is one training run over several processes; start `gcnii "
            f"{' '.join(words[:1])}` without torchrun"
        )


def _rank() -> str:
    """`rank 2: ` in such a process of torchrun; rank 0 speaks for all, and has no name."""
    rank = os.environ.get("RANK", "0")
    return f"rank {rank}: " if rank != "0" and "TORCHELASTIC_RUN_ID" in os.environ else ""


def _note_ctrl_c(stopped: threading.Event) -> Callable[[int, FrameType | None], object] | None:
    """Let Ctrl-C set the event before it raises KeyboardInterrupt; what it did until now."""

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.set()
        raise KeyboardInterrupt

    before = signal.default_int_handler
    if threading.current_thread() is not threading.main_thread():
        return None
    if signal.getsignal(signal.SIGINT) is not before:  # ignored, or the program's own
        return None
    signal.signal(signal.SIGINT, stop)
    return before


def _refuse_little_memory() -> None:
    """Raise GcniiError if `ulimit -v` leaves less than torch needs; help needs no torch."""
    if {*FLAGS, "--version"} & {*sys.argv[1:]} or not find_spec("resource"):
        return
    from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit

    limit, _ = getrlimit(RLIMIT_AS)
    if limit != RLIM_INFINITY and limit < LEAST_MEMORY:
        raise GcniiError(
            f"out of memory: `ulimit -v` leaves {limit // 1024:,} kB, and torch alone needs "
            f"{LEAST_MEMORY // 1024:,}; raise the limit"
        )


def _explain(error: BaseException) -> tuple[str, int]:
    """A sentence for the user and the exit code; an empty sentence if the error is a bug."""
    match error:
        case CycloptsError():
            return f"{error} See {' '.join(('gcnii', *(error.command_chain or ())))} --help.", 2
        case KeyboardInterrupt():
            return "stopped", 1
        case OSError(strerror=str()):
            return _explain_file(error), 1
        case InputError() | ValueError():
            return str(error), 2
        case GcniiError() | OSError() | FloatingPointError():
            return str(error), 1
        case MemoryError() | RuntimeError() | ImportError() if _lacks_memory(error):
            return OUT_OF_MEMORY, 1
    return "", 1


def _explain_file(error: OSError) -> str:
    if error.filename == STDOUT:
        return f"cannot write to {STDOUT}: {error.strerror}"
    if error.filename:
        return f"cannot read or write {error.filename2 or error.filename}: {error.strerror}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"cannot write a file: {error.strerror}"
    return str(error)


def _lacks_memory(error: BaseException) -> bool:
    """Whether memory was lacking, be it to load a library; then torch is not to be loaded here."""
    if isinstance(error, ImportError):
        cause = error.__cause__ or error
        return isinstance(cause, MemoryError) or "failed to map segment" in str(cause)
    if isinstance(error, MemoryError) or "torch" not in sys.modules:
        return isinstance(error, MemoryError)
    from gcnii.train.hardware import lacks_memory

    return lacks_memory(error)


def _warn(message: Warning | str, *_: object) -> None:
    print(f"gcnii: {one_line(str(message))}", file=sys.stderr)
