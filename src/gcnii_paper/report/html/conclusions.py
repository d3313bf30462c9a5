"""What results say before their tables: ten sentences, every number counted or measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from gcnii_paper.report.beyond.rows import BeyondRow
from gcnii_paper.report.grid import Grid, TableCell
from gcnii_paper.report.html.takeaway import takeaway
from gcnii_paper.tables.cells import MeasuredCell

Cells = Mapping[str, MeasuredCell]
DEEP = 8  # layers from which a network of Table 3 counts as deep
WEB = ("Cornell", "Texas", "Wisconsin")


def conclusions(
    cells: Iterable[MeasuredCell], grids: Sequence[Grid], rows: Sequence[BeyondRow]
) -> str:
    """A numbered list; a sentence whose cells are not measured is left out."""
    known = {cell.cell: cell for cell in cells if cell.n}
    sentences = [
        *takeaway(grids, ()),
        _depth(known),
        _ablation(known),
        _quoted(grids),
        _data(known),
        _printed_form(known),
        _directions(known),
        _beyond(rows),
    ]
    listed = [sentence for sentence in sentences if sentence]
    return "".join(f"{i}. {sentence}\n" for i, sentence in enumerate(listed, 1))


def _means(known: Cells, *names: str) -> list[float] | None:
    """The means of these cells; None if one of them is not measured."""
    return [known[name].mean for name in names] if all(name in known for name in names) else None


def _depth(known: Cells) -> str:
    rows = ("cora-gcnii", "cora-gcn-kipf-s", "cora-gcn")
    means = _means(known, *(f"table3/{row}/{layers}" for row in rows for layers in (2, 64)))
    if not means:
        return ""
    deep, kipf, dropedge = (
        f"{a:.1f} to {b:.1f}" for a, b in zip(means[::2], means[1::2], strict=True)
    )
    return (
        f"From 2 to 64 layers on Cora, GCNII goes from {deep} %; Kipf's GCN goes from {kipf} %, "
        f"and DropEdge's, with settings searched for each depth, from {dropedge} %."
    )


def _ablation(known: Cells) -> str:
    rows = ("gcn-with-initial-residual", "gcn-with-identity-mapping", "gcnii", "gcn")
    means = _means(known, *(f"figure2/cora-{row}/64" for row in rows))
    if not means:
        return ""
    initial, identity, both, neither = means
    return (
        f"Both ideas are needed: at 64 layers on Cora the initial residual alone gives "
        f"{initial:.1f} %, the identity mapping alone {identity:.1f} %, both {both:.1f} %, neither "
        f"{neither:.1f} %."
    )


def _quoted(grids: Sequence[Grid]) -> str:
    deep = [
        shown for grid in grids if grid.name == "table3" for shown in grid.shown if _deep(shown)
    ]
    words = Counter(shown.word for shown in deep)
    if not words:
        return ""
    return (
        f"Deep baselines are what cannot be repeated: of the {words.total()} cells of Table 3 with "
        f"{DEEP} or more layers that are quoted from DropEdge and were measured, "
        f"{words['replicates']} replicate, {words['undecided']} are undecided, {words['lower']} "
        f"lower and {words['higher']} higher; each was printed from one run, and the settings of "
        "most were never published."
    )


def _deep(shown: TableCell) -> bool:
    """Whether it is a deep network of DropEdge's with a number of ours."""
    cell = shown.cell
    quoted = cell.printed is not None and not cell.model.startswith("gcnii") and not cell.extra
    return quoted and int(cell.column) >= DEEP and shown.word != "missing"


def _data(known: Cells) -> str:
    means = _means(known, "table5/gcnii/cornell", "table5/gcnii-corrected-in-2022/cornell")
    if not means:
        return ""
    return (
        f"Printed numbers on Cornell are of a file that carries Texas's features and labels: GCNII "
        f"has {means[0]:.1f} % there, and {means[1]:.1f} % on the corrected one."
    )


def _printed_form(known: Cells) -> str:
    listed = _on_web_graphs(known, "gcnii-star", "gcnii-star-as-printed")
    return f"GCNII* as coded and as printed are two models: {listed}." if listed else ""


def _directions(known: Cells) -> str:
    listed = _on_web_graphs(known, "gcnii", "gcnii-links-both-ways")
    return f"Links taken one way, as coded, and both ways differ: {listed}." if listed else ""


def _on_web_graphs(known: Cells, one: str, other: str) -> str:
    """`Texas 76.9 and 75.7 %`, and so on, for two rows of Table 5."""
    words = []
    for graph in WEB:
        means = _means(known, *(f"table5/{row}/{graph.lower()}" for row in (one, other)))
        words += [f"{graph} {means[0]:.1f} and {means[1]:.1f} %"] if means else []
    return ", ".join(words)


def _beyond(rows: Sequence[BeyondRow]) -> str:
    words = Counter(row.standing.word for row in rows if row.standing)
    if not words:
        return ""
    return (
        f"Of {words.total()} data sets, our best settings, chosen by validation, are ahead of the "
        f"best number known on {words['ahead']}, not significantly behind on "
        f"{words['not significantly behind']}, and behind on {words['behind']}."
    )
