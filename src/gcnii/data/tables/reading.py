"""Reading: which columns of a user's tables are what; the same words in Python and as flags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from gcnii.columns.learn import Hints
from gcnii.errors import InputError, did_you_mean

Names = str | Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What the columns of the two tables are called, and what is known about them.

    id           the nodes' names
    label        the label; several columns of zeros and ones, where a node can have several labels
    split        train, val, test or empty
    source, target, weight   of an edge; by default found by their usual names
    drop         columns of either table not to use
    numeric, categorical, date, text   columns of nodes that are this, whatever they look like
    unknown      a label that means unknown, beside an empty cell, NaN and null
    multilabel   whether a label such as `a;b` is two labels
    directed     whether edges are one-way
    seed         draws the split where there is none
    """

    id: str = "id"
    label: Names = "label"
    split: str = "split"
    source: str = ""
    target: str = ""
    weight: str = ""
    drop: Names = ()
    numeric: Names = ()
    categorical: Names = ()
    date: Names = ()
    text: Names = ()
    unknown: str = ""
    multilabel: bool = False
    directed: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        """Make tuples of the names; refuse a seed that draws nothing, and a column named twice."""
        for name in HINTS:
            object.__setattr__(self, name, _names(getattr(self, name)))
        if len(labels := _names(self.label)) != 1:
            object.__setattr__(self, "label", labels)
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise InputError(f"seed must be an integer ≥ 0, got {self.seed!r}")
        if bool(self.source) != bool(self.target):
            raise InputError("source and target must be given together")
        said = [name for hint in HINTS for name in getattr(self, hint)]
        if twice := next((name for name in said if said.count(name) > 1), None):
            raise InputError(f"the column {twice!r} is named twice; say one thing about it")

    @classmethod
    def of(cls, **options: object) -> Reading:
        """From options; one that does not exist is refused."""
        for name in options:
            if name not in READING:
                guess = did_you_mean(name, READING)
                raise InputError(f"no option {name!r}; {guess}known: {', '.join(READING)}")
        return cls(**options)  # type: ignore[arg-type]

    @property
    def given(self) -> dict[str, object]:
        """What differs from the defaults."""
        options = {one.name: (getattr(self, one.name), one.default) for one in fields(self)}
        return {name: value for name, (value, default) in options.items() if value != default}

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the label columns."""
        return _names(self.label)

    @property
    def hints(self) -> Hints:
        """What is known about feature columns."""
        return Hints(**{name: _names(getattr(self, name)) for name in HINTS})


HINTS = ("drop", "numeric", "categorical", "date", "text")
READING = tuple(field.name for field in fields(Reading))


def _names(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
