"""The table of labels: one row per node, with what is predicted and what is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gcnii.errors import notice, some_of
from gcnii.graph import Graph
from gcnii.inference.sets import predict_sets
from gcnii.inference.training_graph import is_training_graph
from gcnii.inference.unlinked import MODEL, answered
from gcnii.targets.calibration import Sets
from gcnii.train.results.result import Result

if TYPE_CHECKING:
    from pandas import DataFrame

DECIMALS = 6  # of a probability


def label_table(
    result: Result,
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
    basis        model, or features: of a node without links, where the model was trained on linked
                 ones, the answer is by its features alone; or guess, where the graph of the
                 training, which that needs, is not there.  There is no such column if it would hold
                 `model` alone, except for new nodes
    p(name)      the probability of each class
    """
    _say_unknown_classes(result, graph)
    if is_training_graph(result, graph):
        P, basis = result.predict_proba(graph, device, ensemble=ensemble), None
    else:
        P, basis = answered(result, graph, None, device, ensemble=ensemble)
        basis = None if set(basis) == {MODEL} else basis
    nodes = graph.nodes or range(graph.n)
    roles = _roles(result, graph, ensemble)
    about = (nodes, known_labels(graph), roles)
    sets = None
    if coverage is not None:
        sets = predict_sets(result, graph, coverage, device, kind=kind, ensemble=ensemble)
    return table_of(result, P, *about, basis, ensemble=ensemble, sets=sets)


def _say_unknown_classes(result: Result, graph: Graph) -> None:
    """Warn if known labels are others than the model's, as where classes were renamed."""
    own = set(result.graph.classes or ())
    if own and (other := [name for name in graph.classes or () if name not in own]):
        notice(
            f"{graph.name} has the classes {some_of(other)}, which the model was not trained on; "
            f"it knows {some_of(result.graph.classes or ())}"
        )


def table_of(
    result: Result,
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

    classes, several = _names(result.graph.classes, result.graph.k), result.graph.multilabel
    ids = result.decide(P, ensemble=ensemble)
    # As objects: pandas would replace None by NaN, and its text cannot hold all of Python's.
    text = {"node": nodes, "label": _labels(ids, classes), "known": known, "split": split}
    if sets is not None:
        text["set"] = _labels(sets, classes)
    if basis is not None:
        text["basis"] = basis
    front = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in text.items()})
    if isinstance(nodes, range):
        front["node"] = nodes
    if not several:
        front.insert(2, "probability", P[np.arange(len(P)), ids].round(DECIMALS))
    chances = pd.DataFrame(P.round(DECIMALS), columns=[f"p({name})" for name in classes])
    return pd.concat([front, chances], axis=1)


def known_labels(graph: Graph) -> list[str | None]:
    """The known label of each node as `label_table` shows labels; None if unknown."""
    shown = _labels(graph.labels, _names(graph.classes, graph.k))
    return [label if known else None for label, known in zip(shown, graph.labelled, strict=True)]


def _names(classes: tuple[str, ...] | None, k: int) -> tuple[str, ...]:
    return classes or tuple(map(str, range(k)))


def _labels(ids: NDArray[np.int64] | NDArray[np.bool_], classes: Sequence[str]) -> list[str]:
    """Names of class ids (n,), or of the ones in (n, k); anything for an unknown label."""
    if ids.ndim == 1:
        return [classes[i] if i >= 0 else "" for i in ids]
    quoted = [_quoted(name) for name in classes]
    return [";".join(quoted[j] for j in np.flatnonzero(row == 1)) for row in ids]


def _quoted(name: str) -> str:
    """The name as a cell of a CSV row whose cells are separated by semicolons."""
    plain = name and not any(sign in name for sign in ';"\r\n')
    return name if plain else '"' + name.replace('"', '""') + '"'


def _roles(result: Result, graph: Graph, ensemble: bool) -> list[str | None]:
    """The role of each node in the split of the runs that predict, if it is their graph."""
    if not is_training_graph(result, graph):
        return [None] * graph.n
    split = graph.splits[result.runs[result.predicting(ensemble)[0]].split]
    roles = np.full(graph.n, None, dtype=object)
    for role in ("train", "val", "test"):
        roles[getattr(split, role)] = role
    return list(roles)
