"""gcnii data: list, show, fetch and check data sets."""

from __future__ import annotations

import json as json_format
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.table import Table

from gcnii import data
from gcnii.cli.console import table_console
from gcnii.cli.options import Directed, Json, Offline, load_graph, print_json
from gcnii.errors import InputError
from gcnii.graph import Graph
from gcnii.train.presets import presets_of

Name = Annotated[str, Parameter(help="A name of `gcnii data list`.")]


def list_names(*, json: Json = False) -> None:
    """List the data sets of the catalog."""
    if json:
        print_json([_summary(entry) for entry in data.CATALOG.values()])
        return
    table = Table(
        "name", "nodes", "edges", "features", "classes", "what", box=None, header_style="bold"
    )
    for column in table.columns[1:5]:
        column.justify = "right"
    for name, entry in data.CATALOG.items():
        counts = ("?" if count is None else f"{count:,}" for count in asdict(entry.counts).values())
        table.add_row(name, *counts, entry.title)
    table_console().print(table)


def show(name: Name, /, *, json: Json = False) -> None:
    """Show what is known of a data set, and the paper's settings for it."""
    entry = data.lookup(name)
    if json:
        files = [asdict(file) for file in entry.files]
        extra = {geometry: asdict(file) for geometry, file in entry.neighbourhoods.items()}
        whole = _summary(entry) | {
            "presets": dict(presets_of(entry.name)),
            "notes": entry.notes,
            "files": files,
        }
        whole["neighbourhoods"] = extra
        print_json(whole)
        return
    print(f"{entry.name}: {entry.title}")
    counts = ", ".join(
        f"{'?' if count is None else count} {noun}" for noun, count in asdict(entry.counts).items()
    )
    for line in (
        counts,
        f"source: {entry.source}",
        f"licence: {entry.licence}",
        *(f"note: {n}" for n in entry.notes),
    ):
        print(f"  {line}")
    if entry.neighbourhoods:
        print(
            f"  neighbourhoods: {', '.join(entry.neighbourhoods)}; for Geom-GCN, fetched when one is first used"
        )
    if presets := presets_of(entry.name):
        table_console().print(_presets(presets))
    else:
        print("  no presets: the models' and the recipe's defaults hold")


def fetch(
    *names: Annotated[str, Parameter(help="Names of `gcnii data list`, or all.")],
    offline: Offline = False,
    json: Json = False,
) -> None:
    """Download data sets into the cache and verify them; `all` fetches every one."""
    if not names:
        raise InputError("name at least one data set, or all; `gcnii data list` shows them")
    wanted = list(data.CATALOG) if names == ("all",) else list(names)
    for name in wanted:
        data.lookup(name)  # a typo in the last name is told before the first download
    paths = {name: [str(path) for path in data.fetch(name, offline=offline)] for name in wanted}
    if json:
        print_json(paths)
        return
    for name, files in paths.items():
        print(
            f"{name}: {len(files)} files, all as the catalog says"
            if files
            else f"{name}: made on the spot, no files"
        )


def check(
    path: Annotated[Path, Parameter(help="A folder with nodes.csv and edges.csv.")],
    /,
    *,
    directed: Directed = False,
    json: Json = False,
) -> None:
    """Check a graph of your own, with row numbers where it is wrong."""
    graph = load_graph(path, directed=directed, offline=True)
    facts = _facts(graph)
    if not graph.splits:
        print(
            "gcnii: no node has a label, so a model can predict on this graph but not train on it",
            file=sys.stderr,
        )
    if json:
        print_json(facts)
        return
    print(f"{graph!r} is in order")
    for name, value in facts.items():
        print(f"  {name}: {', '.join(value) if isinstance(value, list) else value}")


def _facts(graph: Graph) -> dict[str, Any]:
    facts = {
        "nodes": graph.n,
        "edges": graph.m,
        "features": graph.d,
        "classes": list(graph.classes or ()),
    }
    facts["self-loops"] = int((graph.edges[0] == graph.edges[1]).sum())
    facts["labelled"] = int(graph.labelled.sum())
    for split in graph.splits:
        facts |= {role: int(getattr(split, role).sum()) for role in ("train", "val", "test")}
    return facts


def _summary(entry: data.Entry) -> dict[str, Any]:
    words = {
        "name": entry.name,
        "title": entry.title,
        "licence": entry.licence,
        "source": entry.source,
    }
    return words | asdict(entry.counts)


def _presets(presets: Any) -> Table:
    """A row a setting, a column a group of models that share their settings."""
    groups: dict[str, list[str]] = {}
    for model, settings in presets.items():
        groups.setdefault(json_format.dumps(dict(settings)), []).append(model)
    columns = [json_format.loads(settings) for settings in groups]
    table = Table(
        "setting", *("\n".join(models) for models in groups.values()), box=None, header_style="bold"
    )
    for name in dict.fromkeys(name for column in columns for name in column):
        table.add_row(name, *(str(column.get(name, "–")) for column in columns))
    return table
