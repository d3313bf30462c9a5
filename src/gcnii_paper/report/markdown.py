"""docs/evidence/results.md: every cell of the tables, after what was found; and the terminal's.

What was found is how many of the printed numbers hold, counted from the verdicts, and ten sentences
whose numbers are counted or measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf, isfinite
from statistics import fmean
from typing import get_args

from rich.console import Console, ConsoleOptions

from gcnii.analysis.degree import span
from gcnii.files import Document, json_value
from gcnii.report.tables import PlainTable, markdown_table, plain_table
from gcnii_paper.documents import listed, prose
from gcnii_paper.report.figures import Claim, PaperFigure, degree_curves
from gcnii_paper.report.grid import MARKS, Grid, TableCell, grid, judged, notes
from gcnii_paper.report.sentences import HERE, PRINTED, table_claims
from gcnii_paper.standing import BeyondRow
from gcnii_paper.tables import table1
from gcnii_paper.tables.cells import MeasuredCell
from gcnii_paper.tables.registry import TITLES
from gcnii_paper.verdict import MARGIN, Verdict, Word

JUDGED = ("replicates", "undecided", "higher", "lower", "failed")  # the paper's number was tested
OFF = ("higher", "lower", "failed")
LEFT_OUT = {
    "other settings": "measured with settings of ours, because none were published",
    "missing": "not measured yet",
    "stand-in": "measured on a stand-in graph only",
}
NAMED = 6  # cells of the paper's own models that are off; more are counted


def takeaway(grids: Iterable[Grid], figures: Iterable[PaperFigure]) -> list[str]:
    """One sentence on the paper's own models and all printed numbers; then what does not hold.

    A number that is printed twice and has the same runs counts once.
    """
    every = (shown for grid in grids for shown in grid.shown)
    own = [shown for shown in every if shown.cell.printed and not shown.cell.extra]
    cells = list({shown.number: shown for shown in reversed(own)}.values())[::-1]
    judged = [shown for shown in cells if shown.word in JUDGED]
    if not judged:
        return [f"None of the {len(cells)} numbers that the paper prints has been measured yet."]
    own = [shown for shown in judged if shown.cell.model.startswith("gcnii")]
    sentences = (_own(own) + _verdicts(judged), _off(own), _claims(figures), _left_out(cells))
    return [sentence for sentence in sentences if sentence]


def _own(own: Sequence[TableCell]) -> str:
    if not own:
        return ""
    kept, rest = _counted(own)
    return f"The paper's own models replicate in {kept} of {len(own)} numbers{rest}. "


def _verdicts(judged: Sequence[TableCell]) -> str:
    kept, rest = _counted(judged)
    again = "printed numbers that were measured again with their settings"
    return f"Of all {len(judged)} {again}, {kept} replicate{'s' if kept == 1 else ''}{rest}."


def _counted(judged: Sequence[TableCell]) -> tuple[int, str]:
    """How many replicate, and what the others are."""
    counts = Counter(shown.word for shown in judged)
    rest = [f"{_are(counts[word])} {word}" for word in JUDGED[1:] if counts[word]]
    return counts["replicates"], f"; {_joined(rest)}" if rest else ""


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


Cells = Mapping[str, MeasuredCell]
FAR = 5  # points
DEEP = 8  # layers from which a network of Table 3 counts as deep
WEB = ("Cornell", "Texas", "Wisconsin")


# Cells, and a sentence with their means.
DEPTH = (
    [f"table3/cora-{row}/{layers}" for row in ("gcnii", "gcn-kipf-s", "gcn") for layers in (2, 64)],
    "From 2 to 64 layers on Cora, GCNII goes from {:.1f} to {:.1f} %; Kipf's GCN goes from {:.1f} "
    "to {:.1f} %, and DropEdge's, with settings searched for each depth, from {:.1f} to {:.1f} %.",
)
ABLATION = (
    [
        f"figure2/cora-{row}/64"
        for row in ("gcn-with-initial-residual", "gcn-with-identity-mapping", "gcnii", "gcn")
    ],
    "Both ideas are needed: at 64 layers on Cora the initial residual alone gives {:.1f} %, the "
    "identity mapping alone {:.1f} %, both {:.1f} %, neither {:.1f} %.",
)
CORNELL = (
    ["table5/gcnii/cornell", "table5/gcnii-corrected-in-2022/cornell"],
    "Printed numbers on Cornell are of a file that carries Texas's features and labels: GCNII has "
    "{:.1f} % there, and {:.1f} % on the corrected one.",
)
# What two rows of Table 5 say, on the web graphs.
PAIRS = (
    ("GCNII* as coded and as printed are two models", "gcnii-star", "gcnii-star-as-printed"),
    ("Edges taken one way, as coded, and both ways differ", "gcnii", "gcnii-links-both-ways"),
)


def conclusions(
    cells: Iterable[MeasuredCell], grids: Sequence[Grid], rows: Sequence[BeyondRow]
) -> str:
    """A numbered list; a sentence whose cells are not measured is left out."""
    known = {cell.cell: cell for cell in cells if cell.n}
    sentences = [
        *takeaway(grids, ()),
        _means(known, *DEPTH),
        _means(known, *ABLATION),
        _quoted(grids),
        _means(known, *CORNELL),
        *(_on_web_graphs(known, *pair) for pair in PAIRS),
        _beyond(rows),
    ]
    listed = [sentence for sentence in sentences if sentence]
    return "".join(f"{i}. {sentence}\n" for i, sentence in enumerate(listed, 1))


def _means(known: Cells, names: Sequence[str], sentence: str) -> str:
    """The sentence with the means of these cells; empty if one of them is not measured."""
    measured = all(name in known for name in names)
    return sentence.format(*(known[name].mean for name in names)) if measured else ""


def _quoted(grids: Sequence[Grid]) -> str:
    deep = [
        shown for grid in grids if grid.name == "table3" for shown in grid.shown if _deep(shown)
    ]
    unpublished = (shown.verdict for shown in deep if shown.word == "other settings")
    away = [verdict.difference for verdict in unpublished if verdict]
    if not away:
        return ""
    above, below = sum(one > FAR for one in away), sum(one < -FAR for one in away)
    return (
        f"Deep baselines cannot be judged: of the {len(deep)} numbers of Table 3 with {DEEP} or "
        f"more layers that are quoted from DropEdge and were measured, {len(away)} were printed "
        f"without settings, each from one run. With settings of ours, our mean is more than "
        f"{FAR} points above the printed number in {above} and more than {FAR} below it in {below}."
    )


def _deep(shown: TableCell) -> bool:
    """Whether it is a deep network of DropEdge's with a number of ours."""
    cell = shown.cell
    quoted = cell.printed is not None and not cell.model.startswith("gcnii") and not cell.extra
    return quoted and int(cell.column) >= DEEP and shown.word != "missing"


def _on_web_graphs(known: Cells, about: str, one: str, other: str) -> str:
    """`Texas 76.9 and 75.7 %`, and so on, for two rows of Table 5; empty where none is measured."""
    names = {graph: [f"table5/{row}/{graph.lower()}" for row in (one, other)] for graph in WEB}
    words = (_means(known, own, f"{graph} {{:.1f}} and {{:.1f}} %") for graph, own in names.items())
    listed = ", ".join(filter(None, words))
    return f"{about}: {listed}." if listed else ""


def _beyond(rows: Sequence[BeyondRow]) -> str:
    words = Counter(row.word for row in rows if row.standing or row.word == "not compared")
    if not words:
        return ""
    return (
        f"Of {words.total()} data sets, our best settings, chosen by validation, are ahead of the "
        f"best number known on {words['ahead']}, not significantly behind on "
        f"{words['not significantly behind']}, and behind on {words['behind']}; on "
        f"{words['not compared']} that number is of another split."
    )


def scores_table(cells: Iterable[MeasuredCell]) -> str:
    """What the marks mean, then Table 2 without the rows that are ours alone, the best first."""
    table = grid("table2", cells)
    words = {shown.word for shown in table.shown if not shown.cell.extra}
    ranked = sorted(table.parts[""].items(), key=lambda row: _mean(row[1]), reverse=True)
    ordered = replace(table, parts={"": dict(ranked)})
    return f"Marks: {legend(words)}.\n\n{_rows(ordered, '', _short)}"


def _mean(row: Sequence[TableCell | None]) -> float:
    """Over a row's measured cells that did not fail; -∞ where there is none."""
    means = [one.measured.mean for one in row if one and one.measured]
    return fmean(known) if (known := list(filter(isfinite, means))) else -inf


def results_page(cells: Iterable[MeasuredCell], rows: Sequence[BeyondRow] = ()) -> str:
    """Conclusions; then every table and figure of the paper, with our numbers."""
    cells = list(cells)
    grids = [grid(name, cells) for name in TITLES]
    short = conclusions(cells, grids, rows)
    opening = prose("results").format(legend=legend(MARKS), conclusions=short)
    parts = (_sentences(cells), _data_sets(), *map(_section, grids))
    return "\n".join([opening, _counts(grids), *parts])


def legend(words: Iterable[str]) -> str:
    """`● replicates, ▲ higher`, in the order of MARKS."""
    words = set(words)
    return ", ".join(f"{mark} {word}" for word, mark in MARKS.items() if word in words)


def _counts(grids: Iterable[Grid]) -> str:
    """For each table, the number of the paper's own cells with each mark."""

    def row(table: Grid) -> list[str]:
        counts = [str(table.counts[word] or "") for word in MARKS]
        return [table.title.split(":")[0], *counts, str(table.counts.total())]

    return markdown_table(["", *MARKS.values(), "all"], map(row, grids))


def _sentences(cells: Sequence[MeasuredCell]) -> str:
    """What the paper says about its tables, by its numbers and by ours."""
    claims = table_claims(cells)
    here = {claim.text: claim for claim in claims[HERE]}

    def row(claim: Claim) -> list[str]:
        ours = here.get(claim.text)
        words = (
            f"{one.word}: {one.figure}" if one else "not measured yet" for one in (claim, ours)
        )
        return [claim.text, *words]

    about = "Leads are in points, those of our runs with a 95 % interval.\n"
    table = markdown_table(["sentence", PRINTED, HERE], map(row, claims[PRINTED]))
    return f"## Sentences about the tables\n\n{about}\n{table}"


def _data_sets() -> str:
    """Table 1, by what the catalog says of the files, which tests compare with them."""
    rows = table1.rows(table1.in_catalog)
    table = markdown_table(table1.HEADS, (row.words for row in rows))
    return f"## {table1.TITLE}\n\n{table}\n{listed(table1.notes_on(rows))}"


def _section(table: Grid) -> str:
    """One table per part, then the notes on its cells."""
    parts = (
        (f"### {part}\n\n" if part else "") + _rows(table, part, _with_difference)
        for part in table.parts
    )
    known = listed(notes(shown.measured for shown in table.shown if shown.measured))
    cost = f"Cost: {table.cost}.\n" if table.cost else ""
    return "\n".join([f"## {table.title}\n", *parts, *filter(None, (known, cost))])


def _rows(table: Grid, part: str, cell: Callable[[TableCell], str]) -> str:
    rows = (
        [name, *("–" if shown is None else cell(shown) for shown in row)]
        for name, row in table.parts[part].items()
    )
    return markdown_table(["method", *table.columns], rows)


def _short(shown: TableCell) -> str:
    return " ".join(cell_words(shown))


def _with_difference(shown: TableCell) -> str:
    return f"{_short(shown)} δ {shown.difference}" if shown.verdict else _short(shown)


def cell_words(shown: TableCell, runs: bool = True) -> Iterator[str]:
    """`85.3±0.5`, `(100)` runs, `●` and `85.5±0.5`, as far as the cell has them.

    If a run diverged, the first two are `failed` and `(2/3)`, the share of runs that did not.
    """
    if shown.measured and shown.word == "failed":
        yield from ("failed", f"({sum(map(isfinite, shown.measured.test))}/{shown.measured.n})")
    elif shown.measured and shown.word != "missing":
        yield from (shown.ours.replace(" ", ""), *([f"({shown.runs})"] if runs else []))
    yield MARKS[shown.word]
    if shown.cell.printed:
        yield shown.printed.replace(" ", "")


WIDE = 1000  # columns, more than any table needs


@dataclass(frozen=True)
class TablePart:
    """Rows of a table.

    If they are too wide, the cells' numbers of runs are left out.
    """

    name: str
    columns: list[str]
    rows: dict[str, dict[str, TableCell]]  # by column

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[PlainTable | str]:
        table = self._table(runs=True)
        natural = console.measure(table, options=options.update_width(WIDE)).maximum
        if natural > options.max_width:
            yield f"  {self._runs} runs per cell"
            table = self._table(runs=False)
        yield table

    def _table(self, runs: bool) -> PlainTable:
        table = plain_table(self.name, *self.columns)
        for name, row in self.rows.items():
            cells = (
                " ".join(cell_words(row[column], runs)) if column in row else ""
                for column in self.columns
            )
            table.add_row(name, *cells)
        return table

    @property
    def _runs(self) -> str:
        counts = {
            shown.measured.n
            for row in self.rows.values()
            for shown in row.values()
            if shown.measured
        }
        return " to ".join(str(n) for n in sorted({min(counts), max(counts)}))


def reproduced_tables(cells: Sequence[MeasuredCell]) -> Iterator[TablePart | PlainTable | str]:
    """Each of the paper's tables with its title, its accuracies by degree and its notes; then the
    legend of the marks.
    """
    words: set[str] = set()
    for name, title in TITLES.items():
        own = [cell for cell in cells if cell.table == name]
        if own:
            parts = list(_parts(name, cells))
            words.update(
                shown.word for part in parts for row in part.rows.values() for shown in row.values()
            )
            yield from (title, *parts, *_degrees(own), *(f"  {note}" for note in notes(own)), "")
    yield _legend(words)


def _parts(name: str, cells: Sequence[MeasuredCell]) -> Iterator[TablePart]:
    """The parts of the table that have one of the cells."""
    table = grid(name, cells)
    for part, rows in table.parts.items():
        chosen = {
            row: {
                column: one
                for column, one in zip(table.columns, shown, strict=True)
                if one and one.measured
            }
            for row, shown in rows.items()
        }
        if any(chosen.values()):
            columns = [
                column
                for column in table.columns
                if any(column in shown for shown in chosen.values())
            ]
            yield TablePart(part, columns, {row: shown for row, shown in chosen.items() if shown})


def _legend(words: set[str]) -> str:
    """What stands in a cell, and what the marks mean."""
    parts = [f"ours±sd (runs/needed), mark, the paper's: {legend(words)}"]
    if "failed" in words:
        parts.append("failed (finite/all runs)")
    if words.intersection(get_args(Word)):
        parts.append(f"margin: the sd that the paper prints, else {MARGIN:g} point")
        parts.append("higher and lower: corrected for the printed numbers above")
    return "; ".join(parts)


def _degrees(cells: list[MeasuredCell]) -> Iterator[PlainTable | str]:
    """Figure 1: for each graph, the accuracy of all nodes by depth and group of degrees."""
    lines = [line for line in degree_curves(cells) if line.who == "all"]
    for graph in dict.fromkeys(line.graph for line in lines):
        own = [line for line in lines if line.graph == graph]
        table = plain_table("degree", "nodes", *(str(line.layers) for line in own))
        for groups in zip(*(line.groups for line in own), strict=True):
            scores = (f"{100 * group.accuracy:.1f}" for group in groups)
            table.add_row(span(groups[0].low, groups[0].high), str(groups[0].nodes), *scores)
        yield from (f"{graph.capitalize()}: accuracy by degree and layers (%)", table)


def as_json(cells: Sequence[MeasuredCell]) -> Document:
    """Every cell with its runs, mean, standard deviation and verdict."""
    known = judged(cells)
    return {"cells": [_cell(cell, known.get(cell.cell)) for cell in cells]}


def _cell(cell: MeasuredCell, found: Verdict | None) -> Document:
    verdict = found and {name: json_value(value) for name, value in asdict(found).items()}
    numbers = {"mean": json_value(cell.mean), "sd": cell.sd, "n": cell.n}
    return cell.record() | numbers | {"verdict": verdict}
