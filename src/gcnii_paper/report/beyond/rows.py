"""The rows of the table: a data set each, with what was measured of its record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from math import isfinite

from gcnii.files import Document, json_value
from gcnii.train.presets import Record, records
from gcnii_paper.report.beyond.standing import Gain, Standing, gain, stands
from gcnii_paper.tables.beyond import BEST, NAME, BestKnown
from gcnii_paper.tables.cells import MeasuredCell


@dataclass(frozen=True)
class BeyondRow:
    """A data set: the best known number, our record, its runs, and those of the paper's GCNII.

    What is not there is None.
    """

    best: BestKnown
    record: Record | None
    ours: MeasuredCell | None
    plain: MeasuredCell | None

    @property
    def standing(self) -> Standing | None:
        """None before there are runs, or if one of them diverged."""
        if not self.ours:
            return None
        return stands(self.ours.test, [run.split for run in self.ours.runs], self.best)

    @property
    def word(self) -> str:
        """The standing's word, or why there is none."""
        if not self.ours:
            return "missing"
        if not isfinite(self.ours.mean):
            return "failed"
        return self.standing.word if self.standing else "too few runs"

    @property
    def gain(self) -> Gain | None:
        """The record less GCNII as the paper has it."""
        return gain(self.ours, self.plain) if self.ours and self.plain else None

    @property
    def missing(self) -> str:
        """The command that measures what is missing; "" if nothing is."""
        if not self.record:
            return f"gcnii tune {self.best.graph}"
        enough = self.ours and self.ours.n >= self.best.least
        return "" if enough else f"gcnii reproduce {NAME} --only {self.best.cell}"

    def document(self) -> Document:
        """As JSON."""
        ours, plain, found = self.ours, self.plain, self.standing
        return {
            **asdict(self.best),
            "record": self.record.document() if self.record else None,
            "verdict": self.word,
            "difference": found and json_value(found.difference),
            "error": found and json_value(found.error),
            "gain": self.gain and asdict(self.gain),
            "ours": ours and {"mean": json_value(ours.mean), "sd": ours.sd, "n": ours.n},
            "gcnii": plain and {"mean": json_value(plain.mean), "sd": plain.sd, "n": plain.n},
            "missing": self.missing,
        }


def beyond_rows(
    measured: Iterable[MeasuredCell], chosen: Iterable[BestKnown] = BEST
) -> list[BeyondRow]:
    """The rows of the chosen data sets, from measured cells of this table and of the paper's."""
    found, held = {one.cell: one for one in measured if one.runs}, records()

    def row(best: BestKnown) -> BeyondRow:
        record, ours = held.get(best.graph), found.get(best.cell)
        own = ours if record and ours and _is_of(record, ours) else None
        return BeyondRow(best, record, own, found.get(best.plain))

    return [row(best) for best in chosen]


def _is_of(record: Record, ours: MeasuredCell) -> bool:
    """Whether the runs are of the record as it is now, not of an earlier one."""
    from gcnii.train.plan import make_plan
    from gcnii.train.recipe import in_force

    settings = make_plan(record.model, record.settings).settings
    return ours.model == record.model and in_force(ours.settings) == in_force(settings)
