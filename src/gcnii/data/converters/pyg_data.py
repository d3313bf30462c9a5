"""from_pyg: a Graph of a torch_geometric.data.Data, or of a HeteroData of one type of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.data.converters.scipy_matrix import edges_of, is_symmetric
from gcnii.data.labels import (
    Labels,
    Tensor,
    array_labels,
    array_numbers,
    as_array,
    splits_or_stratified,
    target_names,
)
from gcnii.errors import GraphError, notice
from gcnii.graph import ROLES, Graph, Split
from gcnii.graph.arrays import Labels as Values
from gcnii.graph.arrays import known_rows, merged, true_or_false
from gcnii.graph.types import apart, together, type_array
from gcnii.graph.weights import check_weights

if TYPE_CHECKING:
    from torch_geometric.data import Data, HeteroData

Edges = NDArray[np.int64]
Weights = NDArray[np.float64]
Masks = dict[str, NDArray[np.bool_]]  # role → (n, splits)


def from_pyg(
    data: Data | HeteroData,
    *,
    directed: bool | None = None,
    seed: int = 0,
    name: str = "graph",
    targets: Sequence[str] | None = None,
) -> Graph:
    """Make a graph from a `torch_geometric.data.Data`, or a `HeteroData` of one type of nodes.

    Attributes are used as follows.

    - `x`: the features, dense or sparse.
    - `edge_index`: the edges.  The graph is undirected if every edge is listed in both directions,
      with the same weight.
    - `edge_type`: the type of each edge; of a `HeteroData`, the names of its relations.
    - `edge_weight`, `weight`, or `edge_attr` if it is a vector: the weights.
    - `y`: (n,) or (n, 1) class ids, or (n, k) zeros and ones; -1 and NaN are unknown.  Fractions
      are numbers to predict, NaN where unknown.
    - `train_mask`, `val_mask`, `test_mask`: the split, or s splits if they are (n, s).  Without
      `val_mask`, a fifth of the training nodes is used for validation; without `test_mask` either,
      the labelled nodes outside `train_mask` are divided between validation and test.  Without any
      mask, the labelled nodes of each class are split 60/20/20.
    - `batch`: the number of the graph that a node belongs to, if there are several.

    Parameters
    ----------
    data : Data or HeteroData
        The graph.
    directed : bool or None
        Whether edges are one-way; None: whether some edge is listed in one direction only.
    seed : int
        The seed of splits that are drawn.
    name : str
        The name of the graph.
    targets : list of str, optional
        The names of the numbers in `y`, which are then predicted even if all are whole; default:
        classes, or of fractions y, or y0, y1, ….

    Returns
    -------
    Graph

    Examples
    --------
    >>> import gcnii, torch
    >>> from torch_geometric.data import Data
    >>> ring = torch.arange(12)
    >>> edges = torch.stack([torch.cat([ring, ring.roll(1)]), torch.cat([ring.roll(1), ring])])
    >>> gcnii.from_pyg(Data(x=torch.ones(12, 2), edge_index=edges, y=ring % 2))
    Graph(graph: 12 nodes, 12 undirected edges, 2 features, 2 classes)
    """
    data = _of_one_type(data)
    X = _features(data.x)
    n = X.shape[0]
    edges = _edges(data, n)
    m = edges.shape[1]
    types, names = _types(data, m)
    if types is not None:
        edges = apart(edges, types, n)
    A = _adjacency(edges, _weights(data, m), n, 1 if types is None else len(names))
    one_way = not is_symmetric(A) if directed is None else true_or_false(directed, "directed")
    edges, weights = edges_of(A, directed=one_way)
    if types is not None:
        edges, types = together(edges, n)
    labels = _labels(data.y, n, target_names(targets))
    batch = getattr(data, "batch", None)
    return Graph(
        X=X,
        edges=edges,
        weights=weights,
        edge_types=types,
        edge_type_names=names or None,
        **labels._asdict(),
        splits=_splits(data, labels, seed),
        directed=one_way,
        name=name,
        part=None if batch is None else as_array(batch),
    )


def _labels(y: Tensor | None, n: int, targets: Sequence[str]) -> Labels:
    """Classes, or numbers where they are named or y holds fractions."""
    values = None if y is None else as_array(y)
    if values is None or (not targets and not _has_fractions(values)):
        return array_labels(y, n)
    q = values[0].size if len(values) else 0
    return array_numbers(y, n, targets or (["y"] if q == 1 else [f"y{j}" for j in range(q)]))


def _has_fractions(values: Values) -> bool:
    """Whether they are floats, and not all of them whole."""
    if values.dtype.kind != "f":
        return False
    known = values[np.isfinite(values)]
    return bool((known != np.floor(known)).any())


def _of_one_type(data: Data | HeteroData) -> Data:
    """The data as a Data, with types of edges where there are several; others are refused."""
    kinds = getattr(data, "node_types", ())  # of a HeteroData
    if len(kinds) > 1:
        raise GraphError(
            "data has several types of nodes; from_pyg takes a graph of one: "
            "data.to_homogeneous(), with the features of all types in one x"
        )
    if kinds:
        data = data.to_homogeneous()
    if not (hasattr(data, "x") and hasattr(data, "edge_index")):
        raise GraphError(
            f"from_pyg takes a torch_geometric.data.Data with x and edge_index, got "
            f"{type(data).__name__}; of a data set, pass one graph: dataset[0]"
        )
    if data.x is None:
        raise GraphError(
            "data.x is None: the nodes have no features; set data.x to a matrix with one row per "
            "node, such as torch.eye(data.num_nodes)"
        )
    if data.edge_index is None:
        raise GraphError("data.edge_index is None; set it to the (2, m) sources and targets")
    return data


def _features(x: Any) -> NDArray[np.generic] | sp.csr_array:
    if hasattr(x, "to_scipy"):  # torch_sparse.SparseTensor
        return sp.csr_array(x.to_scipy(layout="csr"))
    if str(getattr(x, "dtype", "")) in ("torch.bfloat16", "torch.float16"):
        x = x.float()
    if _is_sparse(x):
        x = x.detach().cpu().to_sparse_coo().coalesce()
        return sp.csr_array((x.values().numpy(), x.indices().numpy()), shape=tuple(x.shape))
    X = as_array(x)
    return X[:, None] if X.ndim == 1 else X


def _is_sparse(values: object) -> bool:
    return str(getattr(values, "layout", "")).startswith("torch.sparse")


def _edges(data: Data, n: int) -> Edges:
    if _is_sparse(data.edge_index) or hasattr(data.edge_index, "to_scipy"):
        raise GraphError(
            "data.edge_index must hold whole numbers in the shape (2, m), got a sparse matrix; "
            "torch_geometric.utils.to_edge_index makes edges and weights of one"
        )
    edges = as_array(data.edge_index)
    if edges.ndim != 2 or len(edges) != 2 or edges.dtype.kind not in "iu":
        raise GraphError(
            "data.edge_index must hold whole numbers in the shape (2, m), "
            f"got {edges.dtype} of shape {edges.shape}"
        )
    if edges.size and not 0 <= edges.min() <= edges.max() < n:
        raise GraphError(
            f"data.edge_index has node ids from {edges.min()} to {edges.max()}, "
            f"but data.x has rows 0 to {n - 1}"
        )
    return edges.astype(np.int64)


def _types(data: Data, m: int) -> tuple[Edges | None, tuple[str, ...]]:
    """The types of the edges and their names; None for the types where all are of one."""
    given = getattr(data, "edge_type", None)
    if given is None:
        return None, ()
    # As to_homogeneous notes them: (type of nodes, relation, type of nodes).
    listed = getattr(data, "_edge_type_names", None) or ()
    relations = [name for _, name, _ in listed]
    names = relations if len(set(relations)) == len(relations) else map(" ".join, listed)
    types, called = type_array(as_array(given), tuple(names) or None, m)
    return types, called or ()


def _weights(data: Data, m: int) -> Weights | None:
    for name in ("edge_weight", "weight"):  # the second is what PyG's from_networkx makes
        if getattr(data, name, None) is not None:
            return _vector(getattr(data, name), name, m)
    if getattr(data, "edge_attr", None) is None:
        return None
    shape = np.shape(as_array(data.edge_attr))
    if np.prod(shape) != m:
        notice(f"data.edge_attr of shape {shape} is not used: edges have weights, not features")
        return None
    notice("data.edge_attr is taken as the weights of the edges; if it is not, remove it")
    return _vector(data.edge_attr, "edge_attr", m)


def _vector(values: Tensor, name: str, m: int) -> Weights:
    array = as_array(values)
    texts = array.dtype == object and any(isinstance(one, str) for one in array.flat)
    if array.dtype.kind not in "iubfO" or texts:
        raise GraphError(f"data.{name} must hold one number per edge, got {array.dtype}")
    try:
        weights = np.asarray(array, np.float64).reshape(-1)
    except (TypeError, ValueError) as error:
        raise GraphError(f"data.{name} must hold one number per edge ({error})") from None
    if len(weights) != m:
        raise GraphError(f"data.{name} has {len(weights)} entries for {m} edges")
    return weights


def _adjacency(edges: Edges, weights: Weights | None, n: int, copies: int) -> sp.csr_array:
    """A[u, v]: the sum of the weights of the edges u → v, or 1 if edges have none.

    copies  of the n nodes, one for each type of edges
    """
    if weights is None:
        edges = merged(edges, directed=True)
        values = np.ones(edges.shape[1])
    else:
        values = check_weights(weights, edges, range(n))
    A = sp.csr_array((values, tuple(edges)), (copies * n, copies * n))
    A.eliminate_zeros()
    return A


def _splits(data: Data, labels: Labels, seed: int) -> tuple[Split, ...]:
    masks = _masks(data, len(labels.y))
    if "train" not in masks:
        if masks:
            raise GraphError("data has no train_mask; add one, or remove the other masks")
        return splits_or_stratified((), labels, seed)
    count = max(mask.shape[1] for mask in masks.values())
    return tuple(
        _split({role: mask[:, i % mask.shape[1]] for role, mask in masks.items()}, labels, seed)
        for i in range(count)
    )


def _masks(data: Data, n: int) -> Masks:
    masks: Masks = {}
    for role in ROLES:
        mask = getattr(data, f"{role}_mask", None)
        if mask is None:
            continue
        array = as_array(mask)
        if array.ndim not in (1, 2) or len(array) != n or array.dtype.kind not in "biu":
            raise GraphError(
                f"data.{role}_mask must be true or false for each of {n} nodes, in one column per "
                f"split, got {array.dtype} of shape {array.shape}"
            )
        if array.dtype.kind != "b" and not np.isin(array, (0, 1)).all():
            odd = array[~np.isin(array, (0, 1))][0]
            raise GraphError(f"data.{role}_mask must be true or false (1 or 0), got {odd}")
        masks[role] = array.reshape(n, -1).astype(bool)
    widths = {mask.shape[1] for mask in masks.values()} - {1}
    if len(widths) > 1:
        raise GraphError(f"the masks of data have {sorted(widths)} columns; give all as many")
    return masks


def _split(masks: Masks, labels: Labels, seed: int) -> Split:
    """The split of these masks (n,); what is lacking is drawn."""
    random, train = np.random.default_rng(seed), masks["train"]
    nothing = np.zeros(len(train), bool)
    if "val" in masks or "test" in masks:
        val, test = masks.get("val", nothing), masks.get("test", nothing)
        return Split(train=train, val=val, test=test)
    rest = known_rows(labels.y) & ~train
    val = _half(rest, random)
    notice(
        f"data has no val_mask and no test_mask: of the other labelled nodes, {val.sum()} "
        f"validate and {(rest & ~val).sum()} test"
    )
    return Split(train=train, val=val, test=rest & ~val)


def _half(members: NDArray[np.bool_], random: np.random.Generator) -> NDArray[np.bool_]:
    """A random half of the members, rounded up."""
    rows = random.permutation(np.flatnonzero(members))
    drawn = np.zeros(len(members), bool)
    drawn[rows[: (len(rows) + 1) // 2]] = True
    return drawn
