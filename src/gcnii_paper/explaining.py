"""Whether the links that `explain` names matter: results/explain as a table for docs/."""

from __future__ import annotations

from pathlib import Path

from gcnii.files import Document, Maybe, read_document
from gcnii.report.tables import markdown_table

_WAY = {
    "drop": float,
    "seconds": float,
    "against": {"mean": float, "low": float, "high": float},
}
SHAPE = {
    **{"graph": str, "model": str, "command": str, "device": str},
    **{"layers": int, "nodes": int, "links": int, "draws": int, "test": float},
    "estimates": {str: float},
    "ways": {"gradient": _WAY, "search": _WAY, "random": _WAY, "gnnexplainer": Maybe(_WAY)},
}
WAYS = {
    "gradient": "gradient, as `explain` has it",
    "search": "search: each link of the 2-hop neighbourhood dropped alone",
    "gnnexplainer": "GNNExplainer (PyG, its defaults)",
    "random": "random links of the 2-hop neighbourhood",
}
HEADS = ("links found by", "drop in probability", "gradient's drop less this one's", "CPU s a node")
LEAST_RATIO, MOST_TIME = 5, 0.1  # the bar: times the drop of random links, of the search's time


def read_measured(path: Path) -> Document:
    """What benchmarks/explaining.py wrote."""
    return read_document(path, SHAPE, "measurement of explanations", dict)


def explaining_table(measured: Document) -> str:
    """One row for each way to find links, whether the bar is met, and what decided the gradient."""
    ways = measured["ways"]
    table = markdown_table(HEADS, [_cells(name, ways[name]) for name in WAYS if name in ways])
    about = (
        f"{measured['model']} of {measured['layers']} layers on {measured['graph']}, test accuracy "
        f"{100 * measured['test']:.1f}; the same {measured['nodes']} test nodes for all, "
        f"{measured['links']} links each, random ones drawn {measured['draws']} times; 95 % "
        f"intervals of paired differences; on one thread of a {measured['device'].upper()}."
    )
    found = "; ".join(f"{name} {drop:.4f}" for name, drop in measured["estimates"].items())
    chosen = f"Chosen on {measured['nodes']} validation nodes, by the drop in probability: {found}."
    command = f"    {measured['command']}"
    return "\n".join([table, about, "", _verdict(ways), "", chosen, "", command]) + "\n"


def _cells(name: str, way: Document) -> list[str]:
    versus = way["against"]
    compared = f"{versus['mean']:+.4f} ({versus['low']:+.4f} to {versus['high']:+.4f})"
    own = name == "gradient"
    return [WAYS[name], f"{way['drop']:+.4f}", "" if own else compared, f"{way['seconds']:.3f}"]


def _verdict(ways: Document) -> str:
    """Whether each part of the bar is met."""
    own, random, search = ways["gradient"], ways["random"], ways["search"]
    enough = own["drop"] >= LEAST_RATIO * max(random["drop"], 0.0)
    if random["drop"] > 0:
        ratio = f"{own['drop'] / random['drop']:.0f} times that of random links"
    else:
        ratio = "and random links do not lower the probability at all"
    versus, share = search["against"], own["seconds"] / search["seconds"]
    weaker = versus["high"] < 0
    return (
        f"The bar: the drop is at least {LEAST_RATIO} times that of random links "
        f"({'met' if enough else 'missed'}: {own['drop']:+.4f}, {ratio}); it is not significantly "
        f"below the search's ({'missed' if weaker else 'met'}); and finding the links takes less "
        f"than a tenth of its time ({'met' if share < MOST_TIME else 'missed'}: 1/{1 / share:.0f})."
    )
