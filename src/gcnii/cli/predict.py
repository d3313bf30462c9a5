"""gcnii predict: label the nodes of a graph with a trained model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from gcnii.cli.options import Device, Json, Offline, load_graph, print_json, refuse_unwritable
from gcnii.data import fetch_neighbourhood
from gcnii.errors import InputError
from gcnii.files import atomic_write
from gcnii.graph import Graph
from gcnii.train.result import Result, open_bundle


def predict(
    bundle: Annotated[Path, Parameter(help="A folder that `gcnii train` wrote.")],
    /,
    *,
    graph: Annotated[
        str | None, Parameter(help="The graph to label; by default the one it was trained on.")
    ] = None,
    out: Annotated[
        Path | None, Parameter(help="A .csv or .parquet file; by default CSV to stdout.")
    ] = None,
    device: Device = "auto",
    json: Json = False,
    offline: Offline = False,
) -> None:
    """Label the nodes of a graph with a trained model: node, label and the probability of each
    class.
    """
    if out and out.suffix not in (".csv", ".parquet"):
        raise InputError(f"--out must end in .csv or .parquet, got {out.name}")
    if out:
        refuse_unwritable(out.parent)
    result = open_bundle(bundle)
    if not graph and not result.graph.source:
        raise InputError(
            f"{bundle} was trained on a graph made in Python; say which graph to label with --graph"
        )
    data = load_graph(graph or result.graph.source, directed=result.graph.directed, offline=offline)
    if not graph and data.fingerprint != result.graph.fingerprint:
        print(f"gcnii: {data.name} has changed since the model was trained", file=sys.stderr)
    fetch_neighbourhood(data.source, result.plan.recipe.geometry, offline)
    table = _table(result, data, device)
    if out:
        with atomic_write(out) as temporary:
            table.to_csv(temporary, index=False) if out.suffix == ".csv" else _to_parquet(
                table, temporary
            )
    if json:
        document = {
            "graph": data.name,
            "bundle": str(bundle),
            "nodes": data.n,
            "out": out and str(out),
        }
        rows = {} if out else {"labels": table.to_dict("records")}
        print_json(document | rows)
    elif out:
        print(f"{data.n} nodes labelled: {out}")
    else:
        _print(table.to_csv(index=False, lineterminator="\n"))


def _print(text: str) -> None:
    """Print names as they are, or not at all: a question mark for a letter would make two of them
    the same.
    """
    try:
        text.encode(sys.stdout.encoding or "utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        letter = text[error.start]
        raise InputError(
            f"the standard output is {error.encoding} and cannot take {letter!a}; give --out a file, or --json"
        ) from None
    print(text, end="")


def _table(result: Result, graph: Graph, device: str) -> Any:
    import pandas as pd

    probabilities = result.predict_proba(graph, device).astype(float)
    names = result.graph.classes or tuple(map(str, range(result.graph.k)))
    columns: dict[str, Any] = {"node": graph.nodes or range(graph.n)}
    if result.graph.multilabel:
        columns["label"] = [
            " ".join(name for name, p in zip(names, row, strict=True) if p > 0.5)
            for row in probabilities
        ]
    else:
        columns["label"] = [names[i] for i in probabilities.argmax(1)]
    return pd.DataFrame(
        columns | {f"p({name})": probabilities[:, i].round(6) for i, name in enumerate(names)}
    )


def _to_parquet(table: Any, path: Path) -> None:
    try:
        table.to_parquet(path, index=False)
    except ImportError:
        raise InputError(
            "writing .parquet needs pyarrow: pip install 'gcnii[parquet]', or use a .csv file"
        ) from None
