"""Options that several commands share.  Nothing here loads torch: `gcnii data list` is quick."""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter

from gcnii.cli.flags import REST_TABLES, RUNNING
from gcnii.cli.terminal import reading_bar
from gcnii.data import CATALOG, load, load_share
from gcnii.errors import InputError
from gcnii.graph import Graph

# A flag without a value and without a --no- form, off by default.
SWITCH = Parameter(negative="", show_default=False)
Source = Annotated[
    str, Parameter(help="A name from `gcnii data list`, or a folder with nodes.csv and edges.csv.")
]
Device = Annotated[str, Parameter(help="Device to compute on: auto, cpu or cuda.")]
Threads = Annotated[
    int | None,
    Parameter(
        group=RUNNING,
        help="CPU threads; default: one for small graphs, else as many as there are cores.",
    ),
]
Json = Annotated[bool, SWITCH, Parameter(help="Print one JSON document instead of tables.")]
Offline = Annotated[bool, SWITCH, Parameter(help="Never use the network.")]
RestOffline = Annotated[Offline, Parameter(group=RUNNING)]
Overwrite = Annotated[
    bool,
    SWITCH,
    Parameter(help="Replace a file that gcnii did not write; never an input or a bundle's."),
]
Quiet = Annotated[
    bool, SWITCH, Parameter(help="Show no progress and no warnings; errors are still shown.")
]
TABLES = Group("Your own tables (nodes and edges)", sort_key=1)


# A flag that may be given several times.
Several = Annotated[tuple[str, ...], Parameter(negative_iterable="")]


@Parameter(name="*", group=TABLES, show_default=False)
@dataclass(frozen=True, kw_only=True)
class Tables:
    """Flags about the columns of one's own tables, as `load` and `from_frames` take them.

    Parameters
    ----------
    id
        The column of the nodes' names; default: id.
    label
        The column of labels; default: label. Repeat it for several labels.
    split_column
        The column with train, val or test; default: split.
    target
        A column of numbers to predict, in the place of labels. Repeat it for several.
    edge_from
        The column where an edge begins; default: source, from, src or u.
    edge_to
        The column where it ends; default: target, to, dst or v.
    source
        Deprecated: --source and --target for --edge-from and --edge-to.
    weight
        The column of its weight; default: weight, if there is one.
    edge_type
        The column of its type, or amount=3,12 to cut numbers; default: type; '': none.
    node_type
        The column of a node's type; default: node_type, if any; '': none.
    duplicates
        The weight of an edge given twice: add, mean, max or first.
    drop
        A column to ignore.
    numeric
        A feature that is a number.
    categorical
        A feature that is a category.
    date
        A feature that is a date, converted to days.
    text
        A feature that is text, encoded by its words.
    unknown
        A label that means unknown, such as NA.
    multilabel
        A label such as a;b stands for two labels.
    directed
        Edges are one-way.
    time
        The column that says when a node came: train on the past, test on the last.
    time_edges
        The column that says when an edge came; default: with its later end.
    time_shares
        Shares by time to train and validate on; default: 0.6,0.2.
    time_cuts
        Instead, when validation and test begin: 2019-01-01,2020-01-01.
    """

    id: str = "id"
    label: Several = ("label",)
    split_column: str = "split"
    target: Several = ()
    edge_from: str = ""
    edge_to: str = ""
    source: str = ""
    weight: str = ""
    edge_type: str = "type"
    node_type: str = "node_type"
    duplicates: str = ""
    drop: Several = ()
    numeric: Several = ()
    categorical: Several = ()
    date: Several = ()
    text: Several = ()
    unknown: str = ""
    multilabel: Annotated[bool, SWITCH] = False
    directed: Annotated[bool, SWITCH] = False
    time: str = ""
    time_edges: str = ""
    time_shares: str = ""
    time_cuts: str = ""

    @property
    def given(self) -> dict[str, object]:
        """What differs from the defaults, by the names that `load` has."""
        words = {name: value for name, value in vars(self).items() if value != DEFAULTS[name]}
        if self.source and len(self.target) == 1:
            words["target"] = self.target[0]
        return {"split" if name == "split_column" else name: words[name] for name in words}

    @property
    def words(self) -> list[str]:
        """The flags of what differs from the defaults, for another command."""
        return flags_of({name: one for name, one in vars(self).items() if one != DEFAULTS[name]})


RestTables = Annotated[Tables | None, Parameter(name="*", group=REST_TABLES, show_default=False)]
DEFAULTS = {field.name: field.default for field in fields(Tables)}


def flags_of(settings: Mapping[str, object]) -> list[str]:
    """The words of a command that give these settings."""
    words = []
    for name, value in settings.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            values = value if isinstance(value, list | tuple) else [value]
            words += [word for one in values for word in (f"--{flag}", str(one))]
    return words


def words_of(text: str, flag: str, what: str = "it words") -> list[str]:
    """The words of a flag that commas separate, each once."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise InputError(f"{flag} is empty; give {what} separated by commas")
    return list(dict.fromkeys(words))


def own_command() -> str:
    """This command, as it was typed."""
    return shlex.join(["gcnii", *sys.argv[1:]])


def bundle_line(folder: Path) -> str:
    """Where a bundle is, and how to use it."""
    predict = shlex.join(["gcnii", "predict", str(folder)])
    return f"bundle: {folder}   (label nodes with: {predict})"


def print_json(document: object) -> None:
    """Print JSON in ASCII, which every terminal and pipe can take."""
    print(json.dumps(document, indent=1, allow_nan=False))


def load_graph(
    source: str | Path,
    tables: Tables | None = None,
    *,
    offline: bool,
    quiet: bool = False,
    share: tuple[int, int] = (0, 1),
) -> Graph:
    """`load` with the flags that were given.

    share  the number of this process and how many there are: each reads its parts of a graph
    """
    options = tables.given if tables else {}
    if source in CATALOG:
        return load(source, offline=offline, **options)
    with reading_bar(hidden=quiet) as watcher:
        return load_share(source, *share, offline=offline, watcher=watcher, **options)


def seeds_of(graph: Graph, runs: int | None, first: int) -> range:
    """One seed for each run; by default, one run for each split."""
    count = max(len(graph.splits), 1) if runs is None else runs
    refuse_below_one(runs=runs)
    if first < 0:
        raise InputError(f"--seed must be at least 0, got {first}")
    return range(first, first + count)


def refuse_below_one(**counts: int | None) -> None:
    """Raise InputError for a flag (--runs for `runs`) that is given and is not at least 1.

    A flag's value is an integer already; `nn.settings.whole` checks what Python code passes.
    """
    for name, number in counts.items():
        if number is not None and number < 1:
            raise InputError(f"--{name} must be at least 1, got {number}")


def refuse_unwritable(folder: Path, flag: str = "--out") -> None:
    """Raise InputError, before any work is done, if nothing can be written to `folder`."""
    if reason := _why_unwritable(folder):
        raise InputError(f"cannot write to {folder}: {reason}; choose another {flag}")


def _why_unwritable(folder: Path) -> str:
    try:
        str(folder).encode()
    except UnicodeEncodeError:  # safetensors could not read the file again
        return "its name is not UTF-8"
    whole = folder.absolute()
    place = next(path for path in (whole, *whole.parents) if path.exists())
    if not place.is_dir():
        return f"{place} is a file, not a folder"
    try:  # os.access proves nothing: it says that root can write to /proc
        tempfile.TemporaryDirectory(dir=place).cleanup()
    except OSError:
        return f"no file can be created in {place}"
    return ""
