"""What a trained model predicts for a graph: a table of labels, which a file can hold, and sets."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.analysis.regression import regression
from gcnii.errors import InputError, notice, some_of
from gcnii.files import atomic_write, first_bytes, refuse_replacing
from gcnii.graph import Graph
from gcnii.inference.training_graph import is_training_graph, load_training_graph, training_graph
from gcnii.members.linear import affordable
from gcnii.results.trained import Trained
from gcnii.targets import LabelTarget, SeveralLabels, as_labels, target_of
from gcnii.targets.target import Sets, conformal_sets, refuse_coverage

if TYPE_CHECKING:
    from pandas import DataFrame


Floats = NDArray[np.float64]

ENOUGH = 10  # training nodes without links, from which a model has learnt what they are like
RIDGE = 0.01  # of the regression, on features whose mean square is 1
STEPS = 500
# What the column `basis` says: the model, which knows such nodes; the features alone; or the model,
# which does not, where the training graph is not at hand.
MODEL, FEATURES, GUESS = "model", "features", "guess"


def unknown_kind(result: Trained, graph: Graph, known: Graph) -> NDArray[np.bool_]:
    """(n,) the nodes without links, if the training on the graph `known` had next to none such."""
    found = result.unlinked(graph)
    if knows_unlinked(result, known):
        found[:] = False
    return found


def knows_unlinked(result: Trained, known: Graph) -> bool:
    """Whether the training on the graph `known` had nodes without links to learn from."""
    alike = result.unlinked(known) & result.roles(known)["train"]
    return int(alike.sum()) >= ENOUGH


def answered(
    result: Trained, graph: Graph, known: Graph | None, device: str, *, ensemble: bool
) -> tuple[Floats, list[str]]:
    """(n, k) probabilities of the nodes of a graph, or values, and the basis of each.

    known  the training graph, whose nodes come first in this one and are not answered; None:
           this is another graph, and that of the training is loaded if it is needed
    """
    first = 0 if known is None else known.n
    result = result if known is None else result.knowing(known)
    P = result.answers(graph, device, ensemble=ensemble)[first:]
    if not result.unlinked(graph)[first:].any():
        return P, [MODEL] * len(P)
    known = _at_hand(result) if known is None else known
    if known is None:
        found = result.unlinked(graph)[first:]
        notice(
            f"{_have(int(found.sum()))} no edges, and the training graph, which an answer by the "
            "features needs, is not there; take the model's answer for a guess (basis: guess)"
        )
        return P, [GUESS if one else MODEL for one in found]
    found = unknown_kind(result, graph, known)
    found[:first] = False
    if found.any():
        own = result.answers(known, device, ensemble=ensemble)
        by_features = FeaturesOnly.of(result, known, own, np.ones(known.n, bool))
        P[found[first:]] = by_features(graph, found)
        say_by_features(int(found.sum()))
    return P, [FEATURES if one else MODEL for one in found[first:]]


def _have(count: int) -> str:
    return "1 node has" if count == 1 else f"{count:,} nodes have"


def say_by_features(count: int) -> None:
    """Warn of how many answers are by the features alone."""
    notice(
        f"{_have(count)} no edges, unlike the nodes that the model was trained on; "
        "the answer is by the features alone (basis: features)"
    )


def _at_hand(result: Trained) -> Graph | None:
    """The training graph, if it can be loaded and has not changed."""
    try:
        known = load_training_graph(result, offline=True)
    except InputError:
        return None
    return known if is_training_graph(result, known) else None


@dataclass(frozen=True)
class FeaturesOnly:
    """Probabilities of nodes without links, where a model was trained on linked ones.

    What a network of graph convolutions says of a node that gathers from nobody rests on a case
    that it never saw, and may be sure of anything.  A softmax regression on the features is fitted
    to what the model says of the nodes of its training graph, and answers instead.  Its optimum has
    the mean probability of each class that the model has, so that nodes like those of the training
    get, on average, what they would get with links.  Of values, it is a linear regression.
    """

    result: Trained
    weights: Floats
    bias: Floats

    @classmethod
    def of(cls, result: Trained, known: Graph, P: Floats, rows: NDArray[np.bool_]) -> FeaturesOnly:
        """Fitted to probabilities P (n, k) of these nodes of the training's graph."""
        X = result.features(known)
        nodes = affordable(np.flatnonzero(rows), X, P.shape[1])
        X, P = X[nodes].astype(np.float64), P[nodes]
        square = float((X.data**2 if isinstance(X, sp.csr_array) else X**2).sum())
        ridge = RIDGE * (square / (X.shape[0] * X.shape[1]) or 1.0)
        if not isinstance(result.target, LabelTarget):
            from sklearn.linear_model import Ridge

            fitted = Ridge(alpha=ridge * len(P)).fit(X, P)
            return cls(result, np.atleast_2d(fitted.coef_).T, np.atleast_1d(fitted.intercept_))
        one = result.target.exclusive
        return cls(result, *regression(X, P, one, over=len(P), ridge=ridge, steps=STEPS))

    def __call__(self, graph: Graph, rows: NDArray[np.bool_]) -> Floats:
        """(rows, k) the probabilities of these nodes of a graph."""
        scores = np.asarray(self.result.features(graph)[rows] @ self.weights + self.bias)
        target = self.result.target
        return target.link(scores) if isinstance(target, LabelTarget) else scores


HALVING = 0  # the seed that divides the validation nodes


def predict_sets(
    result: Trained,
    graph: Graph | None = None,
    coverage: float = 0.9,
    device: str = "auto",
    *,
    kind: Sets = "lac",
    ensemble: bool = True,
    trained_on: Graph | None = None,
) -> NDArray[np.bool_]:
    """(n, k) whether a class is in a node's set; a set may be empty, or hold all classes.

    Half of the validation nodes of the runs that predict set the temperature, the other half the
    bound of `targets.target`: the promise rests on nodes that had no part in the
    probabilities, but for the epoch at which training stopped.  It is made on average over nodes
    that are drawn as the validation nodes were: not for each class or each node, and not for new
    nodes of another kind.  Nodes without links, which are answered by their features alone, have a
    bound of their own.

    graph     default: that of the training
    coverage  the probability that a set holds the true class
    kind      lac: the smallest sets; aps: sets that are larger where the model is unsure
    trained_on  the training graph, whose validation labels are needed, if `graph` is not it;
              default: the one in memory, or from where it was
    """
    known = training_graph(result, graph if trained_on is None else trained_on)
    rule = SetRule.of(result, known, coverage, device, kind=kind, ensemble=ensemble)
    if graph is None or graph is known:
        return rule(rule.P)
    return rule.of_graph(graph, device)


@dataclass(frozen=True, eq=False)
class SetRule:
    """Which classes are in a node's set: `predict_sets`, once and for many nodes.

    calibrated  what predicts, with temperatures that the first half of the validation nodes set
    known       the training graph
    P           (n, k) what it says of that graph
    second      (n,) the other half, which sets the bound
    """

    calibrated: Trained
    known: Graph
    P: Floats
    second: NDArray[np.bool_]
    coverage: float
    kind: Sets

    @classmethod
    def of(
        cls,
        result: Trained,
        known: Graph,
        coverage: float,
        device: str = "auto",
        *,
        kind: Sets = "lac",
        ensemble: bool = True,
    ) -> SetRule:
        """As `predict_sets`, whose arguments these are; InputError where there are no sets."""
        refuse_coverage(coverage, kind)
        if not as_labels(result.target, "sets are").exclusive:
            raise InputError(
                f"sets are of one true class, but a node of {result.origin.name} can have "
                "several labels"
            )
        if result.refitted:
            raise InputError(
                "sets rest on labels that the members were not trained on, and these were trained "
                "on every label; ask the bundle that was measured for sets"
            )
        part = result.knowing(known).part(result.predicting(ensemble)).scored(known, device)
        first, second = halves(part.held_out(known))
        _refuse_few(second, coverage)
        # The temperature of the first half alone, in the place of that of all validation nodes.
        calibrated = part.recalibrated(first)
        P = calibrated.predict_proba(known, device)
        return cls(calibrated, known, P, second, coverage, kind)

    def __call__(self, P: Floats) -> NDArray[np.bool_]:
        """(nodes, k) the sets of nodes of which `calibrated` gives probabilities P (nodes, k)."""
        return self._sets(P, self.P[self.second])

    def of_graph(self, graph: Graph, device: str) -> NDArray[np.bool_]:
        """(n, k) those of the nodes of another graph."""
        sets = self(self.calibrated.predict_proba(graph, device))
        alone = unknown_kind(self.calibrated, graph, self.known)
        if alone.any():
            sets[alone] = self.by_features(graph, alone)
        return sets

    def by_features(self, graph: Graph, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(rows, k) those of nodes that are answered by their features alone.

        The bound is that of the features alone, on nodes that the answer was not fitted to.
        """
        answer = self._features_only
        return self._sets(answer(graph, rows), answer(self.known, self.second))

    @cached_property
    def _features_only(self) -> FeaturesOnly:
        return FeaturesOnly.of(self.calibrated, self.known, self.P, ~self.second)

    def _sets(self, P: Floats, held_out: Floats) -> NDArray[np.bool_]:
        y = self.known.labels[self.second]
        return conformal_sets(P, held_out, y, self.coverage, self.kind)


def halves(val: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Two masks of n, by chance: the first and the second half of the validation nodes."""
    nodes = np.random.default_rng(HALVING).permutation(np.flatnonzero(val))
    first = np.zeros_like(val)
    first[nodes[: len(nodes) // 2]] = True
    return first, val & ~first


def _refuse_few(held_out: NDArray[np.bool_], coverage: float) -> None:
    least = ceil(coverage / (1 - coverage) - 1e-9)
    if (count := int(held_out.sum())) < least:
        raise InputError(
            f"sets of coverage {coverage} need {2 * least} validation nodes or more, half of them "
            f"for the temperature; there are {count} for the bound; ask for less, or label more"
        )


DECIMALS = 6  # of a probability


def label_table(
    result: Trained,
    graph: Graph,
    device: str = "auto",
    *,
    ensemble: bool = True,
    coverage: float | None = None,
    kind: Sets = "lac",
) -> DataFrame:
    """One row per node, in the order of the graph.

    node         its name, or its number if the graph has no names
    label        the most probable class, with the weights of the classes in the training; of
                 several labels per node, those above one half, or the
                 runs' thresholds: joined by `;`, a name that holds `;` or `"` in quotes, as in CSV
    probability  of that class; there is no such column if a node can have several labels
    set          the classes that `predict_sets` gives, joined like labels; only with a coverage
    known        its label in the graph, None if unknown
    split        train, val or test: its role in the split that the predicting runs were trained on.
                 None for other nodes, and for any graph but that of the training
    basis        model, or features: of a node without edges, where the model was trained on linked
                 ones, the answer is by its features alone; or guess, where the training
                 graph, which that needs, is not there.  There is no such column if it would hold
                 `model` alone, except for new nodes
    p(name)      the probability of each class

    Of numbers, `value(name)` and `known(name)`, and with a coverage `low(name)` and `high(name)`,
    are in the place of all that is said of labels.
    """
    _say_unknown_classes(result, graph)
    basis, roles = None, np.full(graph.n, None, dtype=object)
    if is_training_graph(result, graph):
        P = result.answers(graph, device, ensemble=ensemble)
        for role, nodes in result.roles(graph).items():
            roles[nodes] = role
    else:
        P, basis = answered(result, graph, None, device, ensemble=ensemble)
        basis = None if set(basis) == {MODEL} else basis
    if result.origin.targets:
        ends = None
        if coverage is not None:
            from gcnii.inference.intervals import IntervalRule  # which builds on this

            known = training_graph(result, graph)
            ends = IntervalRule.of(result, known, coverage, device, ensemble=ensemble)(P, graph)
        return value_table(result, P, graph, list(roles), basis, ends)
    sets = None
    if coverage is not None:
        sets = predict_sets(result, graph, coverage, device, kind=kind, ensemble=ensemble)
    about = (graph.nodes or range(graph.n), known_labels(graph), list(roles))
    return table_of(result, P, *about, basis, ensemble=ensemble, sets=sets)


def _say_unknown_classes(result: Trained, graph: Graph) -> None:
    """Warn if known labels are others than the model's, as where classes were renamed."""
    own = set(result.origin.classes or ())
    if own and (other := [name for name in graph.classes or () if name not in own]):
        notice(
            f"{graph.name} has the classes {some_of(other)}, which the model was not trained on; "
            f"it knows {some_of(result.origin.classes or ())}"
        )


def table_of(
    result: Trained,
    P: NDArray[np.float64],
    nodes: Sequence[str | int],
    known: Sequence[str | None],
    split: Sequence[str | None],
    basis: Sequence[str] | None = None,
    *,
    ensemble: bool = True,
    sets: NDArray[np.bool_] | None = None,
) -> DataFrame:
    """The table of `label_table`, of probabilities (n, k) and n values of the other columns."""
    import pandas as pd

    target, ids = result.label_target, result.decide(P, ensemble=ensemble)
    # As objects: pandas would replace None by NaN, and its text cannot hold all of Python's.
    text = {"node": nodes, "label": target.shown(ids), "known": known, "split": split}
    if sets is not None:
        text["set"] = SeveralLabels(target.k, target.classes).shown(sets)
    if basis is not None:
        text["basis"] = basis
    front = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in text.items()})
    if isinstance(nodes, range):
        front["node"] = nodes
    if target.exclusive:
        front.insert(2, "probability", P[np.arange(len(P)), ids].round(DECIMALS))
    chances = pd.DataFrame(P.round(DECIMALS))
    names = [*front, *(f"p({name})" for name in target.names)]
    return pd.concat([front, chances], axis=1).set_axis(pd.Index(names, dtype=object), axis=1)


def value_table(
    result: Trained,
    values: Floats,
    graph: Graph,
    split: Sequence[str | None],
    basis: Sequence[str] | None = None,
    ends: Floats | None = None,
) -> DataFrame:
    """The table of `label_table` of numbers: `value(name)` and, in the graph, `known(name)`.

    ends  (n, q, 2) of their intervals, for the columns `low(name)` and `high(name)`
    """
    import pandas as pd

    names = result.target.names
    known = graph.labels if graph.targets == names else np.full(values.shape, np.nan)
    cells: dict[str, object] = {"node": pd.Series(graph.nodes or range(graph.n), dtype=object)}
    cells |= {f"value({name})": values[:, j] for j, name in enumerate(names)}
    if ends is not None:
        for i, end in enumerate(("low", "high")):
            cells |= {f"{end}({name})": ends[:, j, i] for j, name in enumerate(names)}
    cells |= {f"known({name})": known[:, j] for j, name in enumerate(names)}
    cells["split"] = pd.Series(split, dtype=object)
    if basis is not None:
        cells["basis"] = pd.Series(basis, dtype=object)
    return pd.DataFrame(cells)


def unlabelled(table: DataFrame) -> DataFrame:
    """The rows of nodes whose label, or one of whose numbers, is not known."""
    known = [name for name in table if name == "known" or name.startswith("known(")]
    return table[table[known].isna().any(axis=1)]


def known_labels(graph: Graph) -> list[str | None]:
    """The known label of each node as `label_table` shows labels; None if unknown."""
    shown = target_of(graph).shown(graph.labels)
    return [label if known else None for label, known in zip(shown, graph.labelled, strict=True)]


# What spreadsheets take for the start of a formula, after OWASP's page on CSV injection; a number
# with a sign is not one.
FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
NUMBER = re.compile(r"[+-](\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
LATER = re.compile(r"(?<=[;\r\n])[^;\r\n]+")  # what may become a cell of its own
TEXT = ("node", "label", "known", "set")  # columns that hold names from the data


def harmless(table: DataFrame) -> tuple[DataFrame, int]:
    """The table with `'` before each name that a spreadsheet would run, and the number of these."""
    import pandas as pd

    safe, count = table.copy(), 0
    for column in _texts(table):
        place = safe.columns.get_loc(column)
        for i, cell in enumerate(table[column]):
            if isinstance(cell, str) and (changed := _defused(cell)) != cell:
                safe.iat[i, place] = changed
                count += 1
    # Classes have a column each; as objects, because Arrow's text cannot hold all of Python's.
    safe.columns = pd.Index([_defused(name) for name in table], dtype=object)
    return safe, count


def _texts(table: DataFrame) -> list[str]:
    return [name for name in TEXT if name in table]


def _defused(cell: str) -> str:
    """The cell with `'` before each formula in it.

    A spreadsheet whose cells semicolons separate sees no quotes within `x,"a;=1+1"`, and takes what
    follows a semicolon or the end of a line for a cell of its own.
    """
    whole = f"'{cell}" if _is_formula(cell.lstrip("'")) else cell

    def later(found: re.Match[str]) -> str:
        return f"'{found[0]}" if _is_formula(found[0].lstrip("'\"")) else found[0]

    return LATER.sub(later, whole)


def _is_formula(bare: str) -> bool:
    """Whether a spreadsheet would run it, or would if the `'` before it were taken away.

    The latter get a `'` more, so that '=x differs from what becomes of =x.
    """
    return bool(FORMULA.match(bare)) and not NUMBER.fullmatch(bare)


def csv_text(table: DataFrame) -> str:
    """The table as CSV."""
    return str(table.to_csv(index=False, lineterminator="\n", quoting=_quoting(table)))


def write_table(
    table: DataFrame,
    path: Path,
    *,
    overwrite: bool = False,
    is_ours: Callable[[Sequence[str]], bool] | None = None,
) -> None:
    """Write a .csv or .parquet file, atomically; in place of no other but a table of labels.

    is_ours  whether a table with these columns may be replaced, instead of a table of labels
    """
    mine = is_ours or are_labels
    refuse_format(path)
    refuse_replacing(path, lambda there: mine(column_names(there)), overwrite=overwrite)
    try:
        with atomic_write(path) as temporary:
            _write(table, temporary, path.suffix)
    except UnicodeEncodeError as error:
        raise InputError(
            f"{path} cannot hold {error.object[error.start]!a}, which is half of a character; "
            "rename what has it in its name"
        ) from None


def _write(table: DataFrame, path: Path, suffix: str) -> None:
    if suffix == ".csv":
        table.to_csv(path, index=False, lineterminator="\n", quoting=_quoting(table))
        return
    typed(table).to_parquet(path, engine="pyarrow", index=False)


def typed(table: DataFrame) -> DataFrame:
    """The same, where all names are of the type text: without it, a column of None has none."""
    text = [name for name in table if table[name].dtype == object]
    return table.astype(dict.fromkeys(text, "string"))


def column_names(path: Path) -> list[str]:
    """The columns of a .csv or .parquet file; none if it cannot be read as one."""
    if path.suffix == ".csv":
        text = first_bytes(path, 100_000).decode("utf-8", "replace")
        return next(csv.reader(text.splitlines(keepends=True)), [])
    from pyarrow.parquet import read_schema

    try:
        return list(read_schema(path).names)
    except (OSError, ValueError):  # which Arrow's errors are
        return []


def are_labels(names: Sequence[str]) -> bool:
    """Whether a table with these columns is one of labels, or of numbers."""
    if len(names) > 1 and names[0] == "node" and names[1].startswith("value("):
        return "split" in names
    return list(names[:2]) == ["node", "label"] and {"known", "split"} <= {*names}


def refuse_format(path: Path, what: str = "the file", otherwise: str = "") -> None:
    """Raise InputError if no table can be written under this name.

    otherwise  what else may be given
    """
    if path.suffix not in (".csv", ".parquet"):
        raise InputError(f"{what} must end in .csv or .parquet{otherwise}, got {path.name}")
    if path.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise InputError(
            "writing .parquet needs pyarrow: pip install 'gcnii[parquet]', or use a .csv file"
        )


def _quoting(table: DataFrame) -> int:
    """Which cells go into quotes: text, if a name holds a carriage return, else as few as possible.

    Python before 3.13 leaves a carriage return without quotes, and readers end the row there.
    """
    names = [*table.columns, *(cell for name in _texts(table) for cell in table[name].unique())]
    returns = any("\r" in name for name in names if isinstance(name, str))
    return csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
