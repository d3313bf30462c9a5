"""Our records in words: for docs/evidence/results.md and beyond.md, and for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite

from rich.console import Group

from gcnii.report.tables import markdown_table
from gcnii.tuning.closing import HELPS
from gcnii.tuning.question import BASELINES
from gcnii_paper.documents import Part, listed, prose
from gcnii_paper.search import EARLIER
from gcnii_paper.standing import RULE, BeyondRow, Finding, RunScores
from gcnii_paper.tables.beyond import BEST, DAY, KNOWN, TITLE, BestKnown, Known

HEADS = (
    *("data set", "ours, one choice for all splits", "ours, nested", "best known", "whose"),
    *("verdict", "GCNII here", "ours less GCNII", "model", "settings tried"),
)
ABOUT = prose("beyond").format(RULE=RULE)


def number(scores: RunScores | None) -> str:
    """`85.3 ± 0.5 (20)`; a dash if nothing was measured, or a run diverged."""
    return f"{scores} ({scores.n})" if scores and isfinite(scores.mean) else "–"


def best_known(best: BestKnown | Known) -> str:
    """`75.4 ± 0.4`, with as many digits as are known."""
    return f"{best.mean:g}" + (f" ± {best.sd:g}" if best.sd else "")


def words_of(row: BeyondRow) -> list[str]:
    """The row in words, one for each of HEADS."""
    record, best = row.record, row.best
    return [
        *(best.title, number(row.ours), str(row.nested or "–"), best_known(best), best.whose),
        *(row.word, number(row.plain), str(row.gain or "–")),
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
        if row.nested:
            of = f"{', '.join(row.nested.models)}, of {row.nested.tried} settings"
            both = f"; an ensemble per split has {one}" if (one := row.nested.ensemble) else ""
            yield f"{row.best.title}, nested: `{row.nested.command}`, {of}{both}"
    for row in rows:
        if row.record and row.missing:
            yield f"{row.best.title}: measure it with `{row.missing}`"


def section(rows: Sequence[BeyondRow]) -> str:
    """The part of docs/evidence/results.md."""
    table = markdown_table(HEADS, map(words_of, rows))
    return f"## {TITLE}\n\n{ABOUT}\n{table}\n{listed(notes_on(rows))}\n{known_table()}"


KNOWN_HEADS = (
    *("data set", "accuracy", "whose", "splits", "features", "trained on labels"),
    *("seen in", "its code, epoch", "counts, or why not"),
)


def known_table() -> str:
    """All numbers that are known, those that were set aside among them."""
    titles = {best.graph: best.title for best in BEST}
    rows = []
    for one in KNOWN:
        of = one.source
        what = (titles[one.graph], best_known(one), of.whose, of.splits, of.features, of.labels)
        rows.append((*what, one.seen, of.code, of.aside or "yes"))
    return f"{prose('known').format(DAY=DAY)}\n{markdown_table(KNOWN_HEADS, rows)}"


FOUND_HEADS = (
    *("data set", "the record is", "options fixed by hand", "validation", "settings tried"),
    *("MLP and GCN trials", "less an MLP"),
)


def findings_table(findings: dict[str, Finding]) -> str:
    """How each record was found: one row for each data set that has studies."""
    titles = {best.graph: best.title for best in BEST}
    found = {graph: findings[graph] for graph in titles if graph in findings}
    rows = (_found(titles[graph], finding) for graph, finding in found.items())
    unsure = [titles[graph] for graph, one in found.items() if one.verdict == HELPS[0]]
    where = ", ".join(f"{titles[graph]} {count}" for graph, count in EARLIER.items())
    counts = {"earlier": sum(EARLIER.values()), "where": where}
    about = prose("found").format(**counts, open=" and ".join(unsure) or "none of them")
    return f"{markdown_table(FOUND_HEADS, rows)}\n{about}"


def _found(title: str, finding: Finding) -> list[str]:
    study = finding.study
    won, lead, graph = study["winner"], study["lead"].get(BASELINES[0]), study["graph"]
    number = f"trial {won['number']} of {finding.name}"
    models = Counter(trial["model"] for trial in study["trials"])
    shares = " and ".join(str(models[model]) for model in BASELINES)
    mlp = f"{100 * lead['mean']:+.1f} ± {100 * lead['error']:.1f}" if lead else "–"
    return [
        title,
        f"a first point, {number}" if finding.typed else number,
        ", ".join(study["fixed"]) or "–",
        f"{100 * won['val']:.1f}",
        str(finding.tried + EARLIER.get(graph, 0)),
        f"{shares} of {study['tried']}",
        f"{mlp}: {finding.verdict.lower()}",
    ]


def terminal_table(rows: Iterable[BeyondRow]) -> Group:
    """For the terminal."""
    return Part(TITLE, HEADS, map(words_of, rows)).terminal()
