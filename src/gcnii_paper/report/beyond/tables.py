"""The rows as tables: for docs/results.md, the README, and the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import stdev

from rich.table import Table

from gcnii_paper.report.beyond.rows import BeyondRow
from gcnii_paper.report.beyond.standing import RULE
from gcnii_paper.report.markdown import markdown_table
from gcnii_paper.tables.beyond import TITLE
from gcnii_paper.tables.cells import MeasuredCell

HEADS = (
    *("data set", "ours", "best known", "whose", "verdict"),
    *("GCNII here", "ours less GCNII", "model", "settings tried"),
)
ABOUT = f"""\
Not of the paper: for each data set, the best settings that `gcnii tune` has found, chosen by
validation alone among the number of settings that is given, beside the best credible number that
was published, with the epoch chosen by validation. Mean ± standard deviation (runs); GCNII has the
paper's settings; the difference is paired by split, on a single split by seed: mean ± standard
error (pairs). Test nodes took no part in the search, but some of its seeds are among these.
`gcnii train NAME --preset record` trains such a model.

Verdicts: {RULE}
"""


def number(cell: MeasuredCell | None) -> str:
    """`85.3 ± 0.5 (20)`; a dash if nothing was measured, or a run diverged."""
    return f"{mean_and_sd(cell)} ({cell.n})" if cell and cell.mean == cell.mean else "–"


def mean_and_sd(cell: MeasuredCell) -> str:
    """`85.3 ± 0.5`."""
    return f"{cell.mean:.1f}" + ("" if cell.n < 2 else f" ± {stdev(cell.test):.1f}")


def best_known(row: BeyondRow) -> str:
    """`75.4 ± 0.4`, with as many digits as are known."""
    best = row.best
    return f"{best.mean:g}" + (f" ± {best.sd:g}" if best.sd else "")


def words_of(row: BeyondRow) -> list[str]:
    """The row in words, one for each of HEADS."""
    record = row.record
    return [
        *(row.best.title, number(row.ours), best_known(row), row.best.whose, row.word),
        *(number(row.plain), str(row.gain or "–")),
        *((record.model, str(record.tried)) if record else ("–", "–")),
    ]


def notes_on(rows: Iterable[BeyondRow]) -> Iterator[str]:
    """Each protocol with its data sets; then the commands that measure what is missing."""
    rows, protocols = list(rows), dict[str, list[str]]()
    for row in rows:
        protocols.setdefault(row.best.protocol, []).append(row.best.title)
    yield from (f"{'; '.join(names)}: {protocol}" for protocol, names in protocols.items())
    if unknown := [row.best.graph for row in rows if not row.record]:
        how = "`gcnii tune NAME`, then `gcnii reproduce adopt-record STUDY`"
        yield f"no record yet, {how}: {', '.join(unknown)}"
    for row in rows:
        if row.record and row.missing:
            yield f"{row.best.title}: measure it with `{row.missing}`"


def section(rows: Sequence[BeyondRow]) -> str:
    """The part of docs/results.md."""
    notes = "".join(f"- {note}\n" for note in notes_on(rows))
    return f"## {TITLE}\n\n{ABOUT}\n{markdown_table(HEADS, map(words_of, rows))}\n{notes}"


def short_table(rows: Iterable[BeyondRow]) -> str:
    """The README's: what was measured, and nothing where nothing was."""
    shown = [row for row in rows if row.ours and row.word != "failed"]
    if not shown:
        return ""
    lines = (
        [
            *(row.best.graph, _tight(mean_and_sd(row.ours)), _tight(best_known(row))),
            row.best.whose.partition(",")[0],
        ]
        for row in shown
        if row.ours
    )
    heads = ("data set", "record", "best known", "whose")
    return f"\nBeyond the paper (`gcnii reproduce beyond`):\n\n{markdown_table(heads, lines)}"


def _tight(text: str) -> str:
    return text.replace(" ", "")


def terminal_table(rows: Iterable[BeyondRow]) -> Table:
    """For the terminal."""
    table = Table(*HEADS, box=None, header_style="bold", title=TITLE, title_justify="left")
    for row in rows:
        table.add_row(*words_of(row))
    return table
