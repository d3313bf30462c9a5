"""gcnii predict: label the nodes of a graph with a trained model."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from gcnii.cli.options import (
    Device,
    Json,
    Offline,
    Quiet,
    load_graph,
    print_json,
    refuse_unwritable,
)
from gcnii.errors import InputError
from gcnii.files import Document, atomic_write
from gcnii.graph import Graph
from gcnii.train.result import Result, open_bundle

if TYPE_CHECKING:
    from pandas import DataFrame

Bundle = Annotated[Path, Parameter(help="A folder that `gcnii train` wrote.")]
OtherGraph = Annotated[
    str | None, Parameter(help="The graph to label; default: the one it was trained on.")
]
File = Annotated[Path | None, Parameter(help="A .csv or .parquet file; default: CSV to stdout.")]


def predict(
    bundle: Bundle,
    /,
    *,
    graph: OtherGraph = None,
    out: File = None,
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
    offline: Offline = False,
) -> None:
    """Label the nodes of a graph with a trained model: node, label, probability of each class."""
    if quiet:
        warnings.simplefilter("ignore")
    _refuse_file(out)
    result = open_bundle(bundle)
    data = _load(result, bundle, graph, offline)
    table = _table(result, data, device)
    if out:
        _write(table, out)
    if json:
        print_json(_document(table, data, bundle, out))
    else:
        print(f"{data.n} nodes labelled: {out}\n" if out else _csv(table), end="")


def _refuse_file(out: Path | None) -> None:
    if out and out.suffix not in (".csv", ".parquet"):
        raise InputError(f"--out must end in .csv or .parquet, got {out.name}")
    if out:
        refuse_unwritable(out.parent)


def _load(result: Result, bundle: Path, graph: str | None, offline: bool) -> Graph:
    """The graph to label: that of --graph, else the one that the model was trained on."""
    source = graph or result.graph.source
    if not source:
        raise InputError(
            f"{bundle} was trained on a graph made in Python; say which graph to label with --graph"
        )
    data = load_graph(source, directed=result.graph.directed, offline=offline)
    if not graph and data.fingerprint != result.graph.fingerprint:
        warnings.warn(f"{data.name} has changed since the model was trained", stacklevel=2)
    return data


def _table(result: Result, graph: Graph, device: str) -> DataFrame:
    import pandas as pd

    probabilities = result.predict_proba(graph, device).astype(float)
    names = result.graph.classes or tuple(map(str, range(result.graph.k)))
    if result.graph.multilabel:
        labels = [
            " ".join(name for name, p in zip(names, row, strict=True) if p > 0.5)
            for row in probabilities
        ]
    else:
        labels = [names[i] for i in probabilities.argmax(1)]
    columns = {"node": graph.nodes or range(graph.n), "label": labels}
    chances = {f"p({name})": probabilities[:, i].round(6) for i, name in enumerate(names)}
    return pd.DataFrame(columns | chances)


def _write(table: DataFrame, out: Path) -> None:
    with atomic_write(out) as temporary:
        if out.suffix == ".csv":
            table.to_csv(temporary, index=False)
            return
        try:
            table.to_parquet(temporary, index=False)
        except ImportError:
            raise InputError(
                "writing .parquet needs pyarrow: pip install 'gcnii[parquet]', or use a .csv file"
            ) from None


def _document(table: DataFrame, graph: Graph, bundle: Path, out: Path | None) -> Document:
    document = {"graph": graph.name, "bundle": str(bundle), "nodes": graph.n}
    if out:
        return document | {"out": str(out)}
    return document | {"out": None, "labels": table.to_dict("records")}


def _csv(table: DataFrame) -> str:
    """CSV for stdout; an error where its encoding would turn two names into the same `?`."""
    text = str(table.to_csv(index=False, lineterminator="\n"))
    try:
        text.encode(sys.stdout.encoding or "utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise InputError(
            f"the standard output is {error.encoding} and cannot encode {text[error.start]!a}; "
            "give --out a file, or --json"
        ) from None
    return text
