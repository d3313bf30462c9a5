"""gcnii models: list the models, or show one."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from gcnii.cli.options import Json, print_json
from gcnii.cli.terminal import say, table_console
from gcnii.files import Document
from gcnii.nn import MODELS
from gcnii.report.tables import plain_table
from gcnii.train.plan import known_model, model_defaults

# Where the paper reports a model: T2 is Table 2, F1 is Figure 1.
REPORTED = {
    "gcnii": "T2 T3 T5 F2",
    "gcnii-star": "T2 T3 T5",
    **dict.fromkeys(("jknet", "incep"), "T2 T3 T5"),
    **dict.fromkeys(("gcn", "appnp", "gat"), "T2 T5"),
    "dropedge-gcn": "T3",
    **dict.fromkeys(("gcnii-ppi", "gcnii-star-ppi", "gat-ppi", "gaan", "geniepath-lazy"), "T4"),
    **dict.fromkeys(("jknet-lstm", "graphsage-lstm", "vr-gcn-cvd", "cluster-gcn"), "T4"),
    **dict.fromkeys(("geom-gcn-i", "geom-gcn-p", "geom-gcn-s"), "T5"),
    "gcn-residual": "F1",
    **dict.fromkeys(("deep-gcn", "gcn-initial", "gcn-identity"), "F2"),
}


def models(name: str | None = None, /, *, json: Json = False) -> None:
    """Say which model to use when, and list all; of one, its equation and its settings.

    Parameters
    ----------
    name
        Show this model with its settings; default: list all models.
    """
    cards = [_card(known_model(name))] if name else [_card(one) for one in MODELS]
    if json:
        print_json(cards)
        return
    console = table_console()
    if name:
        console.print(_one(cards[0]))
        return
    console.print(_choice(cards), "", _all(cards), sep="\n")
    print()
    say("T2: Table 2 of the paper, F1: Figure 1. Equation and settings of one: gcnii models NAME")


def _card(name: str) -> Document:
    card = MODELS[name].card
    return {
        "name": name,
        "when": card.when,
        "paper": card.paper,
        "equation": card.equation,
        "tables": _tables(name),
        "settings": model_defaults(name),
        "training": dict(card.recipe),
    }


def _tables(name: str) -> list[str]:
    """T2 F1 → Table 2, Figure 1."""
    kinds = {"T": "Table", "F": "Figure"}
    return [f"{kinds[word[0]]} {word[1:]}" for word in REPORTED.get(name, "").split()]


def _choice(cards: list[Document]) -> Table:
    """Which to use when, of those that are a first choice for something."""
    table = plain_table("use", "when", numbers=slice(0))
    for card in cards:
        if card["when"]:
            table.add_row(card["name"], card["when"])
    return table


def _all(cards: list[Document]) -> Table:
    table = plain_table("model", "paper", "reported in", numbers=slice(0))
    for card in cards:
        table.add_row(card["name"], card["paper"], REPORTED.get(card["name"], ""))
    return table


def _one(card: Document) -> Table:
    table = Table(box=None, show_header=False)
    for key, value in card.items():
        if isinstance(value, dict):
            words = ", ".join(f"{name} {setting}" for name, setting in value.items())
            value = words or "the defaults of the recipe"
        table.add_row(key, Text(", ".join(value) if isinstance(value, list) else value))
    return table
