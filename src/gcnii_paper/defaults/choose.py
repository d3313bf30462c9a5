"""Choosing the default from what was measured; leaving one graph out is then arithmetic.

A choice is made for each kind of graphs (see `kind_of`), by validation scores alone; test scores
are only compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from statistics import fmean, stdev

from gcnii.files import Document
from gcnii.nn.settings import Settings
from gcnii.train.own import BASELINES, DEFAULTS, Traits, kind_of
from gcnii_paper.defaults.measure import GRAPHS, Records, candidates, traits_of


def criterion(candidate: Settings, kind: int, documents: Iterable[Document]) -> float:
    """mean_g [ val(candidate, g) - max_b val(b, g) ], over graphs g and baselines b."""
    return fmean(
        mean(scores(document, DEFAULTS[kind].model, "val", candidate))
        - max(mean(scores(document, name, "val")) for name in BASELINES)
        for document in documents
    )


def choose(kind: int, documents: Sequence[Document]) -> Settings | None:
    """The candidate with the highest criterion, of those that were measured on all graphs."""
    model = DEFAULTS[kind].model
    measured = [
        one
        for one in candidates(kind)
        if all(_run(document, model, one) is not None for document in documents)
    ]
    if not documents or not measured:
        return None
    return max(measured, key=lambda one: criterion(one, kind, documents))


def scores(
    document: Document, model: str, part: str, wanted: Settings | None = None
) -> list[float]:
    """The val or test scores of a model's run, split by split; empty if there is no such run."""
    found = _run(document, model, wanted or {})
    return [-inf if score is None else score for score in found[part]] if found else []


def kin(name: str) -> str:
    """The data that a graph is made of: cora, cora-full and cora-ml share theirs."""
    return name.split("-")[0]


def mean(values: Sequence[float]) -> float:
    """-∞ of a run that diverged."""
    return fmean(values) if values else -inf


def _run(document: Document, model: str, wanted: Settings) -> Document | None:
    for run in document["runs"]:
        if run["model"] == model and wanted.items() <= run["settings"].items():
            found: Document = run
            return found
    return None


@dataclass(frozen=True)
class Row:
    """A graph: test scores in %, split by split.

    left_out   what is chosen without this graph and its kin; None if no other is of its kind
    default    the test scores of that choice
    shipped    those of the default in force
    baselines  by name
    """

    graph: str
    traits: Traits
    left_out: Settings | None
    default: list[float]
    shipped: list[float]
    baselines: Mapping[str, list[float]]

    @property
    def best(self) -> str:
        """The baseline with the highest mean test score: no choice by validation helps ours."""
        return max(self.baselines, key=lambda name: mean(self.baselines[name]))

    def lead(self, ours: Sequence[float]) -> tuple[float, float]:
        """The mean difference from the best baseline, paired by split, and its standard error."""
        differences = [a - b for a, b in zip(ours, self.baselines[self.best], strict=True)]
        return fmean(differences), stdev(differences) / sqrt(len(differences))


@dataclass(frozen=True)
class Study:
    """All that was measured: what is chosen for each kind, and a row for each graph."""

    chosen: tuple[Settings | None, ...]
    rows: Sequence[Row]

    @classmethod
    def of(cls, records: Records) -> Study:
        """The study of these records, without graphs that were not measured completely."""
        documents = {name: one for name, one in records.documents.items() if _complete(one)}
        kinds = {name: kind_of(traits_of(one)) for name, one in documents.items()}
        inside = [
            [name for name in GRAPHS if kinds.get(name) == kind] for kind in range(len(DEFAULTS))
        ]
        chosen = tuple(
            choose(kind, [documents[name] for name in names]) for kind, names in enumerate(inside)
        )
        rows = [
            _row(
                documents[name],
                [documents[other] for other in inside[kinds[name]] if kin(other) != kin(name)],
            )
            for name in GRAPHS
            if name in documents
        ]
        return cls(chosen, sorted(rows, key=lambda row: (kinds[row.graph], row.traits.rho)))

    @property
    def counted(self) -> list[Row]:
        """The graphs that the default is judged by: those that others choose for."""
        return [row for row in self.rows if row.left_out]

    @property
    def mean(self) -> float:
        """The mean test score over the counted graphs, each left out of its own choice."""
        return fmean(mean(row.default) for row in self.counted)

    @property
    def baselines(self) -> dict[str, float]:
        """The mean test score of each baseline over the counted graphs."""
        return {
            name: fmean(mean(row.baselines[name]) for row in self.counted) for name in BASELINES
        }


def _complete(document: Document) -> bool:
    """Whether it holds the baselines and the default in force."""
    default = DEFAULTS[kind_of(traits_of(document))]
    return all(
        scores(document, model, "test", wanted)
        for model, wanted in (
            (default.model, default.settings),
            *((name, {}) for name in BASELINES),
        )
    )


def _row(document: Document, others: Sequence[Document]) -> Row:
    kind = kind_of(traits := traits_of(document))
    default, left_out = DEFAULTS[kind], choose(kind, others)

    def percent(model: str, wanted: Settings) -> list[float]:
        return [100 * score for score in scores(document, model, "test", wanted)]

    return Row(
        document["graph"],
        traits,
        left_out,
        percent(default.model, left_out) if left_out else [],
        percent(default.model, default.settings),
        {name: percent(name, {}) for name in BASELINES},
    )
