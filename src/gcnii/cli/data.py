"""gcnii data: list, show, fetch, check and pack data sets."""

from __future__ import annotations

import json as json_format
import shlex
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import numpy as np
from cyclopts import Parameter
from rich.filesize import decimal
from rich.table import Table

from gcnii import data
from gcnii.cli.options import (
    Json,
    Offline,
    Overwrite,
    Tables,
    load_graph,
    print_json,
    refuse_below_one,
    refuse_unwritable,
)
from gcnii.cli.terminal import say, table_console
from gcnii.data.formats.packed import refuse_target, save
from gcnii.data.formats.parts import refuse_folder
from gcnii.data.splits import about_times
from gcnii.errors import DataError, InputError, notice, one_line, visible
from gcnii.files import Document, user_path
from gcnii.graph import Graph
from gcnii.graph.columns import Columns, node_types, texts_of
from gcnii.graph.weights import about_skew, chosen_kind
from gcnii.report.tables import plain_table
from gcnii.train.presets import presets_of, records, uses_own_default

Own = Annotated[
    str, Parameter(help="A name from `gcnii data list`, or the path of your own graph.")
]


def list_names(*, json: Json = False) -> None:
    """List the data sets of the catalog."""
    if json:
        print_json([_summary(entry) for entry in data.CATALOG.values()])
        return
    console, heads = table_console(), ("name", "nodes", "edges", "features", "classes")
    table = plain_table(*heads)
    for name, entry in data.CATALOG.items():
        counts = ("?" if count is None else f"{count:,}" for count in asdict(entry.counts).values())
        table.add_row(name, *counts)
    with console.capture() as captured:
        console.print(table)
    head, *rows = captured.get().splitlines()
    titles = [entry.title for entry in data.CATALOG.values()]
    wide = len(head) + max(map(len, titles)) <= console.width
    print(f"{head} description" if wide else head)
    for row, title in zip(rows, titles, strict=True):
        print(f"{row} {title}" if wide else row)
        if not wide:
            say(f"   {title}", below="   ")


def show(
    name: str, /, *, out: Annotated[Path | None, Parameter(name="--out")] = None, json: Json = False
) -> None:
    """Show a data set's size, source and licence, and the published settings for it.

    Parameters
    ----------
    name
        A name from `gcnii data list`, or a folder of your own.
    out
        Write the two tables of a data set that has them, such as customers, into this new folder,
        as an example of your own.
    """
    if name not in data.CATALOG and user_path(name).exists() and out is None:
        check(name, json=json)
        return
    entry = data.lookup(name)
    if out is not None:
        _write_tables(entry, out)
    if json:
        print_json(_document(entry))
        return
    print(f"{entry.name}: {entry.title}")
    for line in _lines(entry):
        print(f"  {line}")
    if presets := presets_of(entry.name):
        table_console().print(_presets_table(presets))


def _write_tables(entry: data.Entry, folder: Path) -> None:
    if not entry.tables:
        having = [one.name for one in data.CATALOG.values() if one.tables]
        raise InputError(
            f"{entry.name} is not made of tables; --out writes those of {', '.join(having)}"
        )
    refuse_unwritable(folder)
    if folder.exists():
        raise InputError(f"{folder} exists; choose another --out")
    tables = data.customer_tables()
    folder.mkdir(parents=True)
    for stem, table in (("nodes", tables.nodes), ("edges", tables.edges)):
        table.to_csv(folder / f"{stem}.csv", index=False)


def fetch(*names: str, offline: Offline = False, json: Json = False) -> None:
    """Download data sets into the cache and verify them; `all` fetches every one.

    Parameters
    ----------
    names
        Names from `gcnii data list`, or `all`.
    """
    if not names:
        raise InputError("name at least one data set, or all; `gcnii data list` shows them")
    wanted = list(data.CATALOG) if names == ("all",) else list(names)
    for name in wanted:
        data.lookup(name)  # report a typo in the last name before the first download
    paths = {name: [str(path) for path in data.fetch(name, offline=offline)] for name in wanted}
    if json:
        print_json(paths)
        return
    for name, files in paths.items():
        print(f"{name}: " + (f"{len(files)} files, verified" if files else "generated, no files"))


def check(
    path: Own,
    /,
    *,
    tables: Tables | None = None,
    json: Json = False,
) -> None:
    """Check a graph of your own: what its columns are taken for, and all that is wrong."""
    source = path if path in data.CATALOG else user_path(path)
    try:
        graph = load_graph(source, tables, offline=True)
    except DataError as error:
        _print_problems(error, json)
        sys.exit(2)
    if not graph.splits:
        print(
            "gcnii: no node has a label: you can predict on this graph, not train", file=sys.stderr
        )
    kind = chosen_kind(graph.typical_weights)
    if graph.weighted and (sentence := about_skew(graph.typical_weights, kind, given=False)):
        print(f"gcnii: {sentence}", file=sys.stderr)
    measured = _flattery(source, graph, tables)
    if json:
        print_json(_facts(graph) | {"columns": _columns(graph.columns)} | measured)
        return
    print(visible(f"{graph!r} is valid"))
    for name, value in _facts(graph).items():
        if isinstance(value, dict):
            value = [f"{name} ({count:,})" for name, count in value.items()]
        words = ", ".join(value) if isinstance(value, list) else value
        print(visible(f"  {name}: {words}"))
    _print_columns(graph.columns)
    if measured:
        print(visible(f"\n{measured['random split']['sentence']}"))


def _flattery(path: str | Path, graph: Graph, tables: Tables | None) -> Document:
    """What a random split flatters, measured where the nodes have times; else a hint at dates."""
    if graph.times is None:
        dates = [one.name for one in graph.columns or () if one.kind == "date" or one.of_dates]
        if dates:
            words = shlex.join(["gcnii", "data", "check", str(path), "--time", dates[0]])
            notice(
                f"{dates[0]!r} holds dates, and a random split of dated nodes can flatter; "
                f"`{words}` measures it"
            )
        return {}
    from gcnii.inference.random_split import LARGE, flattery  # which loads torch

    if not graph.splits or not graph.splits[0].test.any() or graph.n + graph.m > LARGE:
        return {}
    if tables is None or not tables.time:  # it was packed; its columns were learnt from the past
        notice(f"what a random split flatters is measured on the tables that {graph.name} is from")
        return {}
    feature = tables.time in (*tables.numeric, *tables.date)
    drop = tables.drop if feature else (*tables.drop, tables.time)
    untimed = replace(tables, drop=drop, time="", time_edges="", time_shares="", time_cuts="")
    with warnings.catch_warnings():  # what was said of the table is not said again
        warnings.simplefilter("ignore")
        plain = load_graph(path, untimed, offline=True)
        found = flattery(graph, plain)
    return {"random split": found.document()}


def pack(
    path: Own,
    out: Path,
    /,
    *,
    parts: int | None = None,
    overwrite: Overwrite = False,
    tables: Tables | None = None,
    offline: Offline = False,
    json: Json = False,
) -> None:
    """Write a graph to one .safetensors file, or to a folder of parts, which load at once.

    Parameters
    ----------
    out
        The file to write, ending in .safetensors; with --parts, a folder.
    parts
        Number of parts, one file each, of which each process of torchrun reads its own; default:
        one file for all.
    """
    refuse_below_one(parts=parts)
    target = user_path(str(out))
    source = "" if path in data.CATALOG else str(user_path(path))
    if parts is None:
        refuse_target(target, source, overwrite=overwrite)
    else:
        refuse_folder(target, source)
    refuse_unwritable(target.parent, "OUT")
    graph = load_graph(path, tables, offline=offline)
    if parts is not None:
        _pack_parts(graph, target, parts, json)
        return
    size = save(graph, out, overwrite=overwrite).stat().st_size
    if json:
        print_json(_facts(graph) | {"file": str(out), "bytes": size})
        return
    print(visible(f"{graph!r} → {out}, {decimal(size)}"))


def _pack_parts(graph: Graph, folder: Path, parts: int, json: bool) -> None:
    from gcnii.train.distributed.shard import pack as pack_parts  # which loads torch

    files = pack_parts(graph, folder, parts)["parts"]
    size = sum(file.stat().st_size for file in folder.iterdir())
    if json:
        print_json(_facts(graph) | {"folder": str(folder), "bytes": size, "parts": files})
        return
    table = plain_table("part", "nodes", "edges", "halo", numbers=slice(None))
    for i, about in enumerate(files):
        table.add_row(str(i), *(f"{about[name]:,}" for name in ("nodes", "edges", "halo")))
    table_console().print(table)
    print(visible(f"\n{graph!r} → {folder}, {parts} parts, {decimal(size)}"))


def _print_problems(error: DataError, json: bool) -> None:
    if json:
        print_json({"problems": list(error.problems), "columns": _columns(error.columns)})
        return
    _print_columns(error.columns)
    for problem in error.problems:
        print(f"gcnii: {one_line(problem)}", file=sys.stderr)


def _columns(columns: object) -> list[Document]:
    """The columns of a user's table, as far as they were understood."""
    found = columns if isinstance(columns, Columns) else ()
    return [{"column": one.called, "taken for": one.kind, "about": one.about} for one in found]


def _print_columns(columns: object) -> None:
    if rows := _columns(columns):
        table = plain_table("column", "taken for", "", numbers=slice(0))
        for row in rows:
            table.add_row(*row.values())
        print()
        table_console().print(table)


def _facts(graph: Graph) -> Document:
    facts: Document = {
        "nodes": graph.n,
        "edges": graph.m,
        "features": graph.d,
        ("numbers" if graph.targets else "classes"): list(graph.targets or graph.classes or ()),
        "self-loops": int((graph.edges[0] == graph.edges[1]).sum()),
        "labelled": int(graph.labelled.sum()),
    }
    if graph.table is not None and (kind := node_types(graph.columns)):
        names, counts = np.unique(texts_of(graph.table, kind).astype(str), return_counts=True)
        facts["node types"] = dict(zip(names.tolist(), counts.tolist(), strict=True))
    if graph.edge_types is not None:
        counts = np.bincount(graph.edge_types, minlength=graph.type_count).tolist()
        facts["edge types"] = dict(zip(graph.type_names, counts, strict=True))
    if graph.weighted and graph.edges.size:
        facts["median weight"] = float(f"{np.median(graph.typical_weights):.6g}")
    if graph.times is not None and graph.splits:
        facts["by time"] = about_times(graph)
    for split in graph.splits:
        facts |= {role: int(getattr(split, role).sum()) for role in ("train", "val", "test")}
    return facts


def _summary(entry: data.Entry) -> Document:
    words = ("name", "title", "licence", "source")
    return {word: getattr(entry, word) for word in words} | asdict(entry.counts)


def _document(entry: data.Entry) -> Document:
    extra = entry.neighbourhoods.items()
    return _summary(entry) | {
        "presets": dict(presets_of(entry.name)),
        "record": record.document() if (record := records().get(entry.name)) else None,
        "notes": entry.notes,
        "files": [asdict(file) for file in entry.files],
        "neighbourhoods": {geometry: asdict(file) for geometry, file in extra},
    }


def _lines(entry: data.Entry) -> Iterator[str]:
    counts = asdict(entry.counts).items()
    yield ", ".join(f"{'?' if count is None else count} {noun}" for noun, count in counts)
    yield f"source: {entry.source}"
    yield f"licence: {entry.licence}"
    yield from (f"note: {note}" for note in entry.notes)
    if entry.neighbourhoods:
        names = ", ".join(entry.neighbourhoods)
        yield f"neighbourhoods for Geom-GCN, fetched when first used: {names}"
    if not presets_of(entry.name):
        own = "no published settings: the default applies (docs/understand/defaults.md)"
        classes = "no presets: the defaults of the model and of the recipe apply"
        yield own if uses_own_default(entry.name) else classes
    if record := records().get(entry.name):
        best = f"{record.model}, by validation the best of {record.tried} settings"
        yield f"record: {best} (gcnii train {entry.name} --preset record)"


def _presets_table(presets: Mapping[str, Mapping[str, object]]) -> Table:
    """One row per setting, one column per group of models that share all their settings."""
    groups: dict[str, list[str]] = {}
    for model, settings in presets.items():
        groups.setdefault(json_format.dumps(dict(settings)), []).append(model)
    columns = [json_format.loads(settings) for settings in groups]
    heads = ("setting", *("\n".join(models) for models in groups.values()))
    table = plain_table(*heads, numbers=slice(0))
    for name in dict.fromkeys(name for column in columns for name in column):
        table.add_row(name, *(str(column.get(name, "–")) for column in columns))
    return table
