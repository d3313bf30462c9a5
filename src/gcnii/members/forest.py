"""Forest: boosted trees that LightGBM trains and answers with, kept as its text.

A text may come from a stranger's bundle, and LightGBM trusts what it reads.  So each tree is read
and checked here, and LightGBM is given a text that is written anew from the numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gcnii.errors import BundleError, InputError
from gcnii.graph.arrays import Labels
from gcnii.targets.target import Floats, Ints

if TYPE_CHECKING:
    from lightgbm import Booster

Table = NDArray[np.float32]

PATIENCE = 30  # rounds without a lower log loss on the validation nodes
# Of a split on a number: whether one may be missing (8), and goes to the left (2).
DECISIONS = (0, 2, 8, 10)
ENTRIES = {  # of a tree, and whether each of its splits has one, or each of its leaves
    "split_feature": ("split", int),
    "threshold": ("split", float),
    "decision_type": ("split", int),
    "left_child": ("split", int),
    "right_child": ("split", int),
    "leaf_value": ("leaf", float),
}


def available() -> str:
    """What is missing before trees can be grown, and what to install; "" if nothing is."""
    try:
        import lightgbm  # noqa: F401
    except ImportError:
        return "trees need LightGBM, which is not installed; pip install lightgbm"
    except OSError as error:  # such as of a missing OpenMP library
        return f"trees need LightGBM, which cannot be loaded ({error}); reinstall lightgbm"
    return ""


@dataclass(frozen=True)
class Forest:
    """Trees whose leaves add up to scores.

    columns  of the tables that it takes
    outputs  scores of each row: 1 for yes or no, or a number; else one for each class
    trees    in the order in which they grew, `outputs` of them in each round
    """

    columns: int
    outputs: int
    trees: tuple[Mapping[str, Ints | Floats], ...]

    @classmethod
    def fit(
        cls,
        X: Table,
        y: Labels,
        val: tuple[Table, Labels],
        *,
        settings: Mapping[str, float | int],
        rounds: int,
        seed: int,
        threads: int = 1,
    ) -> Forest:
        """Trees for classes y = 0, 1, …, or numbers, of as many rounds as suit `val` best."""
        if missing := available():
            raise InputError(missing)
        import lightgbm as lgb

        k = 1 if y.dtype.kind == "f" else int(y.max()) + 1
        kind: dict[str, object] = {"objective": "multiclass", "num_class": k}
        if k <= 2:
            kind = {"objective": "regression" if k == 1 else "binary"}
        # The same trees whatever the number of threads.
        same = {"deterministic": True, "force_row_wise": True, "num_threads": threads, "seed": seed}
        params = {**kind, **settings, **same, "verbosity": -1}
        seen = lgb.Dataset(X, y)
        judged = [lgb.Dataset(*val, reference=seen)] if len(val[1]) else []
        calls = [lgb.early_stopping(PATIENCE, verbose=False)] if judged else []
        booster = lgb.train(params, seen, rounds, judged, callbacks=[*calls])
        text = booster.model_to_string(num_iteration=booster.best_iteration)
        return cls.of(text, X.shape[1], 1 if k == 2 else k)

    @classmethod
    def of(cls, text: str, columns: int, outputs: int) -> Forest:
        """The trees of LightGBM's text; BundleError if they take or give other columns."""
        head, *blocks = text.split("\nTree=")
        said = dict(_lines(head))
        wanted = {"max_feature_idx": columns - 1, "num_tree_per_iteration": outputs}
        for name, number in wanted.items():
            if said.get(name) != str(number):
                raise _damaged(
                    f"the trees have {name} {said.get(name)!r}, where {number} is expected"
                )
        trees = tuple(_tree(dict(_lines(block)), i, columns) for i, block in enumerate(blocks))
        if len(trees) % outputs:
            raise _damaged(f"there are {len(trees)} trees, which is not a multiple of {outputs}")
        return cls(columns, outputs, trees)

    @cached_property
    def text(self) -> str:
        """What LightGBM reads; `of` gives the same trees back."""
        places = range(self.columns)
        head = {
            "version": "v4",
            "num_class": self.outputs,
            "num_tree_per_iteration": self.outputs,
            "label_index": 0,
            "max_feature_idx": self.columns - 1,
            "feature_names": " ".join(f"Column_{j}" for j in places),
            "feature_infos": " ".join("none" for _ in places),
        }
        lines = ["tree", *(f"{name}={value}" for name, value in head.items()), ""]
        for i, tree in enumerate(self.trees):
            lines += [f"Tree={i}", f"num_leaves={len(tree['leaf_value'])}", "num_cat=0"]
            lines += [f"{one}={' '.join(map(repr, v.tolist()))}" for one, v in tree.items()]
            lines += ["is_linear=0", "shrinkage=1", "", ""]
        return "\n".join([*lines, "end of trees", ""])

    @cached_property
    def booster(self) -> Booster:
        if missing := available():
            raise InputError(missing)
        from lightgbm import Booster

        return Booster(model_str=self.text)

    def scores(self, X: Table, threads: int = 1) -> Floats:
        """(n, outputs) the sums of the leaves that each row falls into."""
        if not self.trees:
            return np.zeros((len(X), self.outputs))
        found = self.booster.predict(X, raw_score=True, num_threads=threads)
        return np.asarray(found, np.float64).reshape(len(X), self.outputs)


def _damaged(what: str) -> BundleError:
    return BundleError(f"{what}; restore the bundle, or train again")


def _lines(block: str) -> Iterator[tuple[str, str]]:
    """The `name=value` of each line."""
    for line in block.splitlines():
        name, equals, value = line.partition("=")
        if equals:
            yield name, value


def _tree(said: Mapping[str, str], i: int, columns: int) -> dict[str, Ints | Floats]:
    """The arrays of a tree over these columns; BundleError if it is not a valid one."""
    try:
        leaves = int(said["num_leaves"])
        count = {"leaf": leaves, "split": leaves - 1}
        entries = ENTRIES if leaves > 1 else {"leaf_value": ENTRIES["leaf_value"]}
        tree: dict[str, Ints | Floats] = {}
        tree |= {one: np.array(said[one].split(), kind) for one, (_, kind) in entries.items()}
        sizes = all(len(tree[one]) == count[each] for one, (each, _) in entries.items())
        finite = np.isfinite(tree["leaf_value"]).all()
        right = sizes and finite and (leaves == 1 or _grows(tree, columns))
    except (KeyError, ValueError, OverflowError):
        right = False
    if not right or said.get("num_cat", "0") != "0" or said.get("is_linear", "0") != "0":
        raise _damaged(f"tree {i} is not one that gcnii has written")
    return tree


def _grows(tree: Mapping[str, Ints | Floats], columns: int) -> bool:
    """Whether each split leads to later ones or to leaves, and to every one of them once."""
    left, right, column = tree["left_child"], tree["right_child"], tree["split_feature"]
    splits = len(left)
    each = np.sort(np.concatenate([left, right]))
    order = np.arange(splits)
    later = all(((side < 0) | (side > order)).all() for side in (left, right))
    inside = bool(((column >= 0) & (column < columns)).all())
    # What is missing can be told from all else by a threshold that is infinite.
    known = (
        np.isin(tree["decision_type"], DECISIONS).all() and not np.isnan(tree["threshold"]).any()
    )
    once = np.array_equal(each, np.r_[np.arange(-splits - 1, 0), np.arange(1, splits)])
    return bool(later and inside and known and once)
