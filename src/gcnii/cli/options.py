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


def switch(text: str) -> Parameter:
    """A flag without a value and without a --no- form, off by default; `text` is its help."""
    return Parameter(negative="", show_default=False, help=text)


Source = Annotated[
    str, Parameter(help="A name from `gcnii data list`, or a folder with nodes.csv and edges.csv.")
]
Device = Annotated[str, Parameter(help="Device to compute on: auto, cpu or cuda.")]
Json = Annotated[bool, switch("Print one JSON document instead of tables.")]
Offline = Annotated[bool, switch("Never use the network.")]
RestOffline = Annotated[Offline, Parameter(group=RUNNING)]
Overwrite = Annotated[
    bool, switch("Replace a file that gcnii did not write; an input or a bundle's never.")
]
Quiet = Annotated[bool, switch("Show no progress and no warnings; errors are still shown.")]
TABLES = Group("Your own tables (nodes and edges)", sort_key=1)


def _names(text: str) -> Parameter:
    """A flag that may be given several times, with the name of a column each time."""
    return Parameter(help=text, negative_iterable="")


Columns = tuple[str, ...]


@Parameter(name="*", group=TABLES, show_default=False)
@dataclass(frozen=True, kw_only=True)
class Tables:
    """Flags about the columns of one's own tables, as `load` and `from_frames` take them."""

    id: Annotated[str, Parameter(help="The column of the nodes' names; default: id.")] = "id"
    label: Annotated[
        Columns, _names("The column of labels; default: label. Repeat it for several labels.")
    ] = ("label",)
    split_column: Annotated[
        str, Parameter(help="The column with train, val or test; default: split.")
    ] = "split"
    target: Annotated[
        Columns,
        _names("A column of numbers to predict, in the place of labels. Repeat it for several."),
    ] = ()
    edge_from: Annotated[
        str, Parameter(help="The column where an edge begins; default: source, from, src or u.")
    ] = ""
    edge_to: Annotated[
        str, Parameter(help="The column where it ends; default: target, to, dst or v.")
    ] = ""
    source: Annotated[
        str, Parameter(help="Deprecated: --source and --target for --edge-from and --edge-to.")
    ] = ""
    weight: Annotated[
        str, Parameter(help="The column of its weight; default: weight, if there is one.")
    ] = ""
    edge_type: Annotated[
        str,
        Parameter(
            help="The column of its type, or amount=3,12 to cut numbers; default: type; '': none."
        ),
    ] = "type"
    node_type: Annotated[
        str, Parameter(help="The column of a node's type; default: node_type, if any; '': none.")
    ] = "node_type"
    duplicates: Annotated[
        str, Parameter(help="The weight of an edge given twice: add, mean, max or first.")
    ] = ""
    drop: Annotated[Columns, _names("A column to ignore.")] = ()
    numeric: Annotated[Columns, _names("A feature that is a number.")] = ()
    categorical: Annotated[Columns, _names("A feature that is a category.")] = ()
    date: Annotated[Columns, _names("A feature that is a date, converted to days.")] = ()
    text: Annotated[Columns, _names("A feature that is text, encoded by its words.")] = ()
    unknown: Annotated[str, Parameter(help="A label that means unknown, such as NA.")] = ""
    multilabel: Annotated[bool, switch("A label such as a;b stands for two labels.")] = False
    directed: Annotated[bool, switch("Edges are one-way.")] = False
    time: Annotated[
        str,
        Parameter(
            help="The column that says when a node came: train on the past, test on the last."
        ),
    ] = ""
    time_edges: Annotated[
        str, Parameter(help="The column that says when an edge came; default: with its later end.")
    ] = ""
    time_shares: Annotated[
        str, Parameter(help="Shares by time to train and validate on; default: 0.6,0.2.")
    ] = ""
    time_cuts: Annotated[
        str, Parameter(help="Instead, when validation and test begin: 2019-01-01,2020-01-01.")
    ] = ""

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
