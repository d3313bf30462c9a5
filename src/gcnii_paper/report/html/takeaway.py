"""What the page says first: how many of the printed numbers hold, counted from the verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from gcnii_paper.report.figures.paper_figures import PaperFigure
from gcnii_paper.report.grid import Grid, TableCell

JUDGED = ("replicates", "undecided", "higher", "lower", "failed")  # the paper's number was tested
OFF = ("higher", "lower", "failed")
LEFT_OUT = {"missing": "not measured yet", "stand-in": "measured on a stand-in graph only"}
NAMED = 6  # cells of the paper's own models that are off; more are counted


def takeaway(grids: Iterable[Grid], figures: Iterable[PaperFigure]) -> list[str]:
    """One sentence on all printed numbers and the paper's own models; then what does not hold."""
    every = (shown for grid in grids for shown in grid.shown)
    cells = [shown for shown in every if shown.cell.printed and not shown.cell.extra]
    judged = [shown for shown in cells if shown.word in JUDGED]
    if not judged:
        return [f"None of the {len(cells)} numbers that the paper prints has been measured yet."]
    own = [shown for shown in judged if shown.cell.model.startswith("gcnii")]
    sentences = (_verdicts(judged) + _own(own), _off(own), _claims(figures), _left_out(cells))
    return [sentence for sentence in sentences if sentence]


def _verdicts(judged: Sequence[TableCell]) -> str:
    counts = Counter(shown.word for shown in judged)
    rest = [f"{_are(counts[word])} {word}" for word in JUDGED[1:] if counts[word]]
    kept, s = counts["replicates"], "s" if counts["replicates"] == 1 else ""
    first = f"{kept} of the {len(judged)} printed numbers that were measured again replicate{s}"
    return f"{first}; {_joined(rest)}." if rest else f"{first}."


def _own(own: Sequence[TableCell]) -> str:
    kept = sum(shown.word == "replicates" for shown in own)
    return f" The paper's own models replicate in {kept} of {len(own)} cells." if own else ""


def _off(own: Sequence[TableCell]) -> str:
    """The cells of the paper's own models that are higher or lower than printed."""
    off = [shown for shown in own if shown.word in OFF]
    named = [f"{_place(shown)} ({shown.word})" for shown in off[:NAMED]]
    more = [f"{len(off) - NAMED} more"] if len(off) > NAMED else []
    return f"Theirs that differ: {'; '.join([*named, *more])}." if off else ""


def _place(shown: TableCell) -> str:
    cell = shown.cell
    layers = f", {cell.column} layers" if cell.column.isdecimal() else f" on {cell.column}"
    return f"{cell.row}{layers}"


def _claims(figures: Iterable[PaperFigure]) -> str:
    claims = [claim for figure in figures for some in figure.claims.values() for claim in some]
    words = Counter(claim.word for claim in claims)
    held = f"{words['held']} of its {len(claims)} claims about the figures held"
    rest = [f"{words['not held']} did not"] if words["not held"] else []
    rest += [f"{_are(words['undecided'])} undecided"] if words["undecided"] else []
    return "" if not claims else f"{held}; {_joined(rest)}." if rest else f"{held}."


def _left_out(cells: Sequence[TableCell]) -> str:
    counts = Counter(shown.word for shown in cells)
    rest = [f"{_are(counts[word])} {how}" for word, how in LEFT_OUT.items() if counts[word]]
    return f"Of its other numbers, {_joined(rest)}." if rest else ""


def _are(count: int) -> str:
    return "1 is" if count == 1 else f"{count} are"


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
