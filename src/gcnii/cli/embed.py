"""gcnii embed: the last hidden layer of a trained model, for each node of a graph."""

from __future__ import annotations

from gcnii.cli.options import Overwrite, print_json
from gcnii.cli.predict import (
    ASKED,
    Asked,
    Bundle,
    Out,
    Raw,
    csv_for_stdout,
    notice_change,
    writable_place,
    write_safely,
)
from gcnii.inference.answers import are_embeddings, embedding_table, refuse_place


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
    place = writable_place(out)
    result = asked.open(bundle)
    if place:
        inputs = [bundle, graph, result.origin.source]
        refuse_place(place, are_embeddings, inputs, overwrite=overwrite)
    result, data = asked.load(result, bundle, graph)
    notice_change(result, data, graph)
    table = embedding_table(result, data, asked.device)
    if place:
        write_safely(table, place, are_embeddings, raw=raw, overwrite=overwrite)
    width = table.shape[1] - 1
    if asked.json:
        rows = {} if place else {"rows": table.to_dict("records")}
        about = {"graph": data.name, "bundle": str(bundle), "nodes": len(table), "width": width}
        print_json(about | {"out": place and str(place)} | rows)
    elif place:
        print(f"{len(table)} nodes, {width} numbers each: {place}")
    else:
        print(csv_for_stdout(table, raw=raw), end="")
