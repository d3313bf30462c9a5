"""Settings: what each one means, and the values it takes.

A setting is declared once, as a keyword argument of a model or as a field of Recipe, with its help
text and its bounds, which the command line prints and `check_settings` enforces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from numbers import Integral, Real
from operator import index
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin

from gcnii.errors import InputError

Settings: TypeAlias = dict[str, Any]
LARGEST_INT = 2**31 - 1  # any tensor's size and any clock can hold it
LARGEST_SEED = 2**63 - 1  # dropout masks are made of seeds as int64


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The interval of a number: `least` and `most` belong to it, `above` and `below` do not."""

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None

    def __contains__(self, value: float) -> bool:
        return (
            (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def __str__(self) -> str:
        """` ≥ 1`, ` in [0, 1)`; nothing where there is no bound."""
        low, high = _first(self.least, self.above), _first(self.most, self.below)
        if low is not None and high is not None:
            opens, closes = "[("[self.least is None], "])"[self.most is None]
            return f" in {opens}{low:g}, {high:g}{closes}"
        if low is not None:
            return f" {'≥' if self.above is None else '>'} {low:g}"
        return "" if high is None else f" {'≤' if self.below is None else '<'} {high:g}"


ANY = Bounds()


@dataclass(frozen=True)
class Range:
    """What a search tries of a number: low to high, in equal steps or on a logarithmic scale."""

    low: float
    high: float
    step: float | None = None

    @property
    def log(self) -> bool:
        """Whether factors count, not differences."""
        return self.step is None


@dataclass(frozen=True)
class Choice:
    """What a search tries of a setting: one of these values."""

    values: tuple[str | int | bool, ...]


@dataclass(frozen=True)
class Setting:
    """What is declared of a setting beside its type and its default.

    help         what it does, for `--help`
    bounds       the numbers it may take
    neutral      the value at which it changes nothing: a run's key then leaves it out, so that runs
                 from before the setting existed keep their key
    unused_when  another setting, and its values at which this one is not used
    ignored      whether no result depends on it
    search       what `tune` tries; None: it leaves the setting alone
    batched      whether replicas of one batch may differ in it: numeric settings of Recipe only
    """

    help: str
    bounds: Bounds = ANY
    neutral: object = None
    unused_when: tuple[str, tuple[object, ...]] | None = None
    ignored: bool = False
    search: Range | Choice | None = None
    batched: bool = False


DEPTH = "number of convolutions, the two dense layers not counted"
MOST_LAYERS = Bounds(least=1, most=100_000)  # more take minutes to make, and memory without end
Layers = Annotated[int, Setting(DEPTH, MOST_LAYERS, search=Choice((2, 4, 8, 16, 32)))]
FewLayers = Annotated[int, Setting(DEPTH, MOST_LAYERS, search=Choice((2, 3, 5)))]
Width = Annotated[
    int, Setting("number of hidden units", Bounds(least=1), search=Choice((64, 128, 256)))
]
Alpha = Annotated[
    float,
    Setting(
        "share of H0 in every layer (α)", Bounds(least=0, most=1), search=Range(0.0, 0.9, 0.05)
    ),
]
Lam = Annotated[
    float,
    Setting(
        "strength of the weights (λ): β_l = log(λ/l + 1)",
        Bounds(least=0),
        search=Range(0.1, 2.0, 0.1),
    ),
]
Rate = Annotated[
    float,
    Setting(
        "share of entries set to zero while training, before every layer",
        Bounds(least=0, below=1),
        search=Range(0.0, 0.8, 0.05),
    ),
]
HeadWidth = Annotated[
    int, Setting("number of hidden units per head", Bounds(least=1), search=Choice((8, 16, 32)))
]
Heads = Annotated[
    int, Setting("number of attention heads, whose outputs are concatenated", Bounds(least=1))
]
OutHeads = Annotated[
    int,
    Setting("number of attention heads of the last layer, which are averaged", Bounds(least=1)),
]
SelfWeight = Annotated[
    bool,
    Setting(
        "give every convolution a second weight, for the node itself",
        search=Choice((False, True)),
    ),
]
BatchNorm = Annotated[
    bool,
    Setting(
        "normalise each convolution's output to mean 0 and variance 1 over the nodes",
        search=Choice((False, True)),
    ),
]


def setting_of(hint: object) -> tuple[Any, Setting]:
    """The type and the Setting of an annotation."""
    kind, setting = get_args(hint)
    return kind, setting


def check_settings(hints: Mapping[str, object], values: Mapping[str, object]) -> Settings:
    """The values, with numbers as Python's own; InputError for the first that is not allowed."""
    plain = {}
    for name, value in values.items():
        kind, setting = setting_of(hints[name])
        if expected := _expected(kind, setting, value):
            raise InputError(f"{name} must be {expected}, got {value!r}")
        plain[name] = _plain(kind, value)
    return plain


def whole(name: str, value: object, least: int) -> int | None:
    """The value of an argument that counts something, or None; InputError if it is neither."""
    setting = Setting("", Bounds(least=least))
    if value is None:
        return None
    return int(check_settings({name: Annotated[int, setting]}, {name: value})[name])


def whole_seeds(seeds: Iterable[int] | None) -> list[int] | None:
    """Seeds as Python's own integers, which a file can hold; None for None."""
    if seeds is None:
        return None
    try:
        plain = [index(seed) for seed in seeds]
    except TypeError:
        raise InputError(f"seeds must be a list of integers, got {seeds!r}") from None
    if any(seed > LARGEST_SEED for seed in plain):
        raise InputError(f"seeds must be integers ≤ {LARGEST_SEED}, got {max(plain)}")
    return plain


def _expected(kind: object, setting: Setting, value: object) -> str:
    """What the value should have been; empty where it is allowed."""
    if get_origin(kind) is Literal:
        words = get_args(kind)
        return "" if value in words else f"one of {', '.join(words)}"
    if get_origin(kind) is tuple:
        items = list(value) if isinstance(value, Iterable) else []
        fits = items and all(_is(int, setting, one) for one in items)
        return "" if fits else f"one or more integers{setting.bounds}"
    if kind is bool:
        return "" if isinstance(value, bool) else "true or false"
    if kind is str:
        named = isinstance(value, str | Integral) and not isinstance(value, bool)
        return "" if named else "a name"
    noun = "an integer" if kind is int else "a number"
    if _is(kind, setting, value):
        return ""
    large = kind is int and isinstance(value, Integral) and int(value) > LARGEST_INT
    return f"{noun} ≤ {LARGEST_INT:,}" if large else f"{noun}{setting.bounds}"


def _is(kind: object, setting: Setting, value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        number = float(value)
    except OverflowError:  # an integer of hundreds of digits
        return False
    fits = kind is float or (number.is_integer() and number <= LARGEST_INT)
    return isfinite(number) and fits and number in setting.bounds


def _plain(kind: object, value: Any) -> object:
    """A number of numpy, or 2.0 for an integer, as JSON can hold it; else the value itself."""
    if get_origin(kind) is tuple:
        return tuple(int(one) for one in value)
    if kind is int or (kind is float and isinstance(value, Integral)):
        return int(value)  # an integer stays one where a number is asked for: keys are made of it
    if kind is str:
        return str(value)  # classes without names are numbers
    return float(value) if kind is float else value


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)
