"""gcnii predict and gcnii embed: what a trained model says, or has learnt, of each node."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from gcnii.cli.options import (
    SWITCH,
    Device,
    Json,
    Offline,
    Overwrite,
    Quiet,
    print_json,
    refuse_unwritable,
)
from gcnii.data import CATALOG, load
from gcnii.data.download import fetch_neighbourhood
from gcnii.data.formats import reader_of
from gcnii.data.tables.reading import HINTS
from gcnii.errors import InputError, notice
from gcnii.files import Document, user_path
from gcnii.graph import Graph
from gcnii.inference.answers import (
    Header,
    Place,
    are_embeddings,
    embedding_table,
    place_of,
    refuse_place,
    write_to,
)
from gcnii.inference.new_nodes import OldNodes, label_new, read_new
from gcnii.inference.predict import are_labels, csv_text, harmless, label_table, unlabelled
from gcnii.inference.training_graph import is_training_graph, load_training_graph
from gcnii.results.bundle import open_bundle
from gcnii.results.trained import Trained
from gcnii.targets.target import Sets, as_labels, refuse_coverage

if TYPE_CHECKING:
    from pandas import DataFrame


PROMISE = (
    "the coverage is promised for nodes drawn as the validation nodes of the training "
    "were, not for nodes of another kind"
)
Bundle = Annotated[Path, Parameter(help="A folder that `gcnii train` wrote.")]
Out = Annotated[
    str | None,
    Parameter(
        help="A .csv or .parquet file, or duckdb://FILE/TABLE, a table of a DuckDB file; default: "
        "CSV to stdout."
    ),
]
Raw = Annotated[
    bool, SWITCH, Parameter(help="In CSV, leave names that a spreadsheet would run as formulas.")
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Asked:
    """What every command that asks a bundle takes.

    Parameters
    ----------
    member
        Ask one member of an ensemble alone, by its name.
    """

    member: str | None = None
    device: Device = "auto"
    json: Json = False
    quiet: Quiet = False
    offline: Offline = False

    def open(self, bundle: Path, *, curves: bool = False) -> Trained:
        """The bundle; nothing warns from here on if it is to be quiet."""
        if self.quiet:
            warnings.simplefilter("ignore")
        return open_bundle(bundle, curves=curves)

    def load(self, result: Trained, bundle: Path, graph: str | None) -> tuple[Trained, Graph]:
        """What is asked: all of it, or one member; and the graph of --graph, else of the training.

        A geometry's neighbours are fetched here, or refused, so that no prediction fetches any.
        """
        if self.member is not None:
            result.member(self.member)  # or an error, before anything is loaded
        if graph:
            found = load(graph, offline=self.offline, **_options(result, graph))
        elif not result.origin.source:
            raise InputError(
                f"{bundle} was trained on a graph made in Python; say which graph to label with "
                "--graph"
            )
        else:
            found = load_training_graph(result, offline=self.offline)
        fetch_neighbourhood(found.catalog_name, result.recipe.geometry, self.offline)
        if is_training_graph(result, found):
            result = result.knowing(found)
        return result if self.member is None else result.member(self.member), found


ASKED = Asked()


def predict(
    bundle: Bundle,
    /,
    *,
    graph: str | None = None,
    add: Path | None = None,
    only: Literal["unlabelled"] | None = None,
    ensemble: bool = True,
    coverage: float | None = None,
    kind: Annotated[Sets, Parameter(name="--sets")] = "lac",
    out: Out = None,
    overwrite: Overwrite = False,
    raw: Raw = False,
    asked: Asked = ASKED,
) -> None:
    """Label the nodes of a graph with a trained model: node, label, probability of each class.

    Parameters
    ----------
    graph
        The graph to label; default: the one it was trained on.
    add
        Label new nodes instead: a folder with their nodes.csv, and an edges.csv that links them to
        the training graph.
    only
        Only the nodes whose label is unknown.
    ensemble
        Predict with the mean of the runs on the split of the best run, or with the best.
    coverage
        Add prediction sets, which contain the true class with this probability, such as 0.9; or
        intervals of numbers.
    kind
        lac: the smallest sets; aps: larger ones where the model is unsure.
    """
    place = _writable_place(out)
    result = asked.open(bundle)
    if kind != "lac":
        as_labels(result.target, "sets are")  # or an error: intervals are of one kind
    _notice_promise(coverage, kind, elsewhere=bool(graph or add))
    if place:
        inputs = [bundle, graph, add, result.origin.source]
        refuse_place(place, are_labels, inputs, overwrite=overwrite)
    result, data = asked.load(result, bundle, graph)
    if add:
        old = OldNodes(data)
        new = read_new(result, add, old)
        table = label_new(result, old, new, asked.device, ensemble, coverage, kind)
    else:
        notice_change(result, data, graph)
        table = label_table(
            result, data, asked.device, ensemble=ensemble, coverage=coverage, kind=kind
        )
    if only:
        table = unlabelled(table)
    runs = [result.runs[i] for i in result.predicting(ensemble)]
    if place:
        _write_safely(table, place, are_labels, raw=raw, overwrite=overwrite)
    if asked.json:
        about = {"graph": data.name, "bundle": str(bundle), "nodes": len(table)}
        seeds = {"split": runs[0].split, "seeds": [run.seed for run in runs]}
        covered: Document = {} if coverage is None else {"coverage": coverage}
        covered |= {"sets": kind} if covered and not result.origin.targets else {}
        print_json(about | seeds | covered | _basis(table) | _labels(table, place))
    elif place:
        by = f" by the mean of {len(runs)} runs" if len(runs) > 1 else ""
        print(f"{len(table)} nodes labelled{by}: {place}")
    else:
        print(_csv_for_stdout(table, raw=raw), end="")


def embed(
    bundle: Bundle,
    /,
    *,
    graph: str | None = None,
    out: Out = None,
    overwrite: Overwrite = False,
    raw: Raw = False,
    asked: Asked = ASKED,
) -> None:
    """Write the last hidden layer of the best run; of an ensemble, that of its heaviest network.

    Parameters
    ----------
    graph
        The graph to embed; default: the one it was trained on.
    """
    place = _writable_place(out)
    result = asked.open(bundle)
    if place:
        inputs = [bundle, graph, result.origin.source]
        refuse_place(place, are_embeddings, inputs, overwrite=overwrite)
    result, data = asked.load(result, bundle, graph)
    notice_change(result, data, graph)
    table = embedding_table(result, data, asked.device)
    if place:
        _write_safely(table, place, are_embeddings, raw=raw, overwrite=overwrite)
    width = table.shape[1] - 1
    if asked.json:
        rows = {} if place else {"rows": table.to_dict("records")}
        about = {"graph": data.name, "bundle": str(bundle), "nodes": len(table), "width": width}
        print_json(about | {"out": place and str(place)} | rows)
    elif place:
        print(f"{len(table)} nodes, {width} numbers each: {place}")
    else:
        print(_csv_for_stdout(table, raw=raw), end="")


def _writable_place(out: str | None) -> Place | None:
    """Where --out says that answers go, in a folder that can be written to."""
    if out is None:
        return None
    place = place_of(out)
    refuse_unwritable((place if isinstance(place, Path) else place.path).parent)
    return place


def _write_safely(
    table: DataFrame, place: Place, is_ours: Header, *, raw: bool, overwrite: bool
) -> None:
    """Write the table; in CSV, which a spreadsheet may open, without formulas unless `raw`."""
    text = isinstance(place, Path) and place.suffix == ".csv"
    write_to(place, _safe(table, raw or not text), is_ours, overwrite=overwrite)


def _options(result: Trained, graph: str) -> dict[str, object]:
    """Another graph's columns are called as those of the training, and mean the same."""
    if graph in CATALOG:
        return {}
    known = {**result.origin.loaded_with, "directed": result.origin.directed}
    options = {name: value for name, value in known.items() if name not in HINTS}
    if result.origin.columns is not None:
        options["columns"] = result.origin.columns
    accepted = reader_of(user_path(graph)).parameters
    return {name: value for name, value in options.items() if name in accepted}


def notice_change(result: Trained, data: Graph, graph: str | None) -> None:
    """Warn if the training graph is not what it was."""
    if not graph and not is_training_graph(result, data):
        notice(f"{data.name} has changed since the model was trained")


def _notice_promise(coverage: float | None, kind: Sets, *, elsewhere: bool) -> None:
    if coverage is None:
        return
    refuse_coverage(coverage, kind)
    if elsewhere:
        notice(PROMISE)


def _safe(table: DataFrame, raw: bool) -> DataFrame:
    """The table, made harmless for spreadsheets unless `raw`; a notice says if that changed it."""
    if raw:
        return table
    table, count = harmless(table)
    if count:
        notice(
            f"{count} cells that a spreadsheet would run as formulas now begin with '; "
            "--raw leaves them as they are"
        )
    return table


def _basis(table: DataFrame) -> Document:
    """The number of nodes with each basis of their answers, where there may be several."""
    return {"basis": dict(Counter(table["basis"]))} if "basis" in table else {}


def _labels(table: DataFrame, out: Place | None) -> Document:
    """Where the labels are, or the labels themselves."""
    known = table.astype(object).where(table.notna(), None)  # JSON has no NaN
    return {"out": str(out)} if out else {"out": None, "labels": known.to_dict("records")}


def _csv_for_stdout(table: DataFrame, *, raw: bool) -> str:
    """CSV; an error where the encoding of stdout would turn two names into the same `?`."""
    text = csv_text(_safe(table, raw))
    try:
        text.encode(sys.stdout.encoding or "utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise InputError(
            f"the standard output is {error.encoding} and cannot encode {text[error.start]!a}; "
            "give --out a file, or --json"
        ) from None
    return text
