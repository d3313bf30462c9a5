"""Reading: which columns of a user's tables are what; the same words in Python and as flags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any

from gcnii.columns.learn import Hints
from gcnii.errors import InputError, did_you_mean
from gcnii.graph.arrays import true_or_false
from gcnii.graph.weights import DUPLICATES

Names = str | Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What the columns of the two tables are called, and what is known about them.

    id           the nodes' names
    label        the label; several columns of zeros and ones, where a node can have several labels
    split        train, val, test or empty
    source, target, weight   of an edge; by default found by their usual names
    duplicates   what the weights of an edge that is given several times become: add, mean, max or
                 first; by default, those of one direction add up, and both directions must agree
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
    duplicates: str = ""
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
        """Make texts and tuples of the names; refuse what is none, and a column named twice."""
        given: dict[str, Any] = {name: getattr(self, name) for name in READING}
        labels, seed = _names("label", given["label"]), given["seed"]
        if not labels:
            raise InputError(f"label must name a column, got {given['label']!r}")
        if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
            raise InputError(f"seed must be an integer ≥ 0, got {seed!r}")
        plain = {
            **{name: _names(name, () if given[name] is None else given[name]) for name in HINTS},
            **{name: _name(name, given[name]) for name in ("id", "split")},
            **{name: _name(name, "" if given[name] is None else given[name]) for name in OPTIONAL},
            **{name: true_or_false(given[name], name) for name in ("multilabel", "directed")},
            "label": labels[0] if len(labels) == 1 else labels,
            "seed": int(seed),
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)
        if bool(self.source) != bool(self.target):
            raise InputError("source and target must be given together")
        if self.duplicates not in ("", *DUPLICATES):
            raise InputError(
                f"duplicates must be {', '.join(DUPLICATES[:-1])} or {DUPLICATES[-1]}, "
                f"got {self.duplicates!r}"
            )
        said = Counter(name for hint in HINTS for name in getattr(self, hint))
        if twice := next((name for name, count in said.items() if count > 1), None):
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
        return _names("label", self.label)

    @property
    def hints(self) -> Hints:
        """What is known about feature columns."""
        return Hints(**{name: _names(name, getattr(self, name)) for name in HINTS})


HINTS = ("drop", "numeric", "categorical", "date", "text")
OPTIONAL = ("source", "target", "weight", "unknown")
READING = tuple(field.name for field in fields(Reading))


def _names(option: str, names: object) -> tuple[str, ...]:
    try:
        given = [names] if isinstance(names, str | bytes) else list(names)  # type: ignore[call-overload]
    except TypeError:
        given = [names]
    return tuple(_name(option, name) for name in given)


def _name(option: str, name: object) -> str:
    """A number is a name, too: data frames have columns called 0, 1, …."""
    if isinstance(name, bool) or not isinstance(name, str | Integral):
        what = "a label" if option == "unknown" else "the name of a column"
        raise InputError(f"{option} must be {what}, got {name!r}")
    return str(name)
