"""Graphs that need no download: csbm, customers, digits and ppi-like.

csbm       the contextual stochastic block model (Deshpande et al. 2018): of m = n·degree/2 edges
           the share `homophily` joins equal labels, and x_i = μ_{y_i} + N(0, I), where the class
           means μ lie `signal` apart
customers  a phone company's customers and their calls, as tables.  Customers leave for reasons of
           their own, which their columns tell, and with the circle that they call, of which the
           columns of its other members tell more than their own
digits     scikit-learn's handwritten digits as a k-nearest-neighbour graph
ppi-like   a stand-in that has PPI's shape, not its content.  Every node has a function z = the
           centre of its community + noise, in 24 dimensions.  Edges join nodes of the same
           community more often than others; the 50 features are a noisy linear view of z, and each
           of the 121 labels says on which side of a plane z lies.  Centres, view and planes are the
           same in all graphs, so what is learnt on some holds for the others
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gcnii.data.converters.frames import from_frames
from gcnii.data.converters.join import join
from gcnii.data.splits import per_class
from gcnii.data.tables.reading import Reading
from gcnii.errors import DataError, check_number
from gcnii.graph import Graph, Role
from gcnii.graph.arrays import merged

if TYPE_CHECKING:
    import pandas as pd

VAL_SHARE = 0.3  # share of all nodes that is for validation

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def csbm(
    n: int = 1000,
    degree: float = 10,
    classes: int = 2,
    homophily: float = 0.8,
    features: int = 16,
    signal: float = 1.0,
    seed: int = 0,
    labels_per_class: int = 20,
) -> Graph:
    """A graph of n nodes in classes of equal size (give or take one node).

    degree            mean number of neighbours
    homophily         share of the edges that join nodes of the same class
    signal            distance between two class means, in standard deviations of the noise
    labels_per_class  training nodes per class; 30 % of all nodes are for validation, and the rest
                      for testing
    """
    _check_nodes(n, classes, seed, labels_per_class)
    check_number("degree of csbm", degree, 0)
    check_number("homophily of csbm", homophily, 0, 1)
    check_number("features of csbm", features, 1, whole=True)
    check_number("signal of csbm", signal, 0)
    random = np.random.default_rng(seed)
    y = random.permutation(np.arange(n) % classes)
    edges = draw_edges(y, round(n * degree / 2), homophily, random)
    X = _means(classes, features, signal, random)[y] + random.standard_normal((n, features))
    split = per_class(y, labels_per_class, random, val=_validation_nodes(n))
    return Graph(X=X.astype(np.float32), edges=edges, y=y, splits=(split,), name="csbm")


def _check_nodes(n: int, classes: int, seed: int, labels_per_class: int) -> None:
    check_number("n of csbm", n, 2, whole=True)
    check_number("classes of csbm", classes, 2, n, whole=True)
    check_number("seed of csbm", seed, 0, whole=True)
    check_number("labels_per_class of csbm", labels_per_class, 1, n // classes, whole=True)
    train, val = classes * labels_per_class, _validation_nodes(n)
    if train + val > n:
        raise DataError(
            f"csbm of {n} nodes keeps {val} for validation, but {train} are for training; "
            "lower labels_per_class or raise n"
        )


def _validation_nodes(n: int) -> int:
    return max(1, round(VAL_SHARE * n))


def draw_edges(y: Ints, m: int, homophily: float, random: np.random.Generator) -> Ints:
    """m distinct edges, round(homophily·m) of them between equal labels, in O(n + m)."""
    n, sizes = len(y), np.bincount(y)
    order, starts = np.argsort(y, kind="stable"), np.cumsum(sizes) - sizes

    def same(u: Ints) -> Ints:
        return np.asarray(order[starts[y[u]] + random.integers(sizes[y[u]])])

    def other(u: Ints) -> Ints:
        place = random.integers(n - sizes[y[u]])
        return np.asarray(order[place + (place >= starts[y[u]]) * sizes[y[u]]])

    equal = round(homophily * m)
    pairs = int((sizes * (sizes - 1)).sum()) // 2
    drawn = [
        _draw(equal, pairs, n, same, random),
        _draw(m - equal, n * (n - 1) // 2 - pairs, n, other, random),
    ]
    return np.concatenate(drawn, axis=1)


def _draw(
    m: int, pairs: int, n: int, partner: Callable[[Ints], Ints], random: np.random.Generator
) -> Ints:
    """m distinct edges u < v, u drawn from all nodes and v from its possible partners."""
    if m > pairs / 2:  # drawing until m are distinct would take long
        raise DataError(
            f"csbm draws at most half of the {pairs} possible edges of a kind, "
            f"got {m}; lower degree"
        )
    codes = np.zeros(0, np.int64)
    while len(codes) < m:
        u = random.integers(n, size=2 * (m - len(codes)) + 16)
        v = partner(u)
        fresh = np.minimum(u, v) * n + np.maximum(u, v)
        codes = np.concatenate([codes, fresh[u != v]])
        codes = codes[np.sort(np.unique(codes, return_index=True)[1])]  # in the order of drawing
    return np.stack(np.divmod(codes[:m], n))


def _means(classes: int, features: int, signal: float, random: np.random.Generator) -> Floats:
    """(classes, features) means on a sphere: orthogonal, so `signal` apart, if they fit."""
    directions = random.standard_normal((classes, features))
    if classes <= features:
        directions = np.linalg.qr(directions.T)[0].T
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return np.asarray(directions * signal / np.sqrt(2))


CUSTOMERS, CIRCLE, CALLED = 1500, 75, 5  # how many, of a circle, and whom one of them calls
STRANGERS = 0.1  # share of the calls that leave the circle, unless by chance
PULL = 1.2  # of a circle, in standard deviations of a customer's own reasons
LEAVING, KNOWN = 0.4, 0.6  # shares of the customers
COMPLAINTS = ("bill too high", "no signal", "asked how to cancel", "compared prices")
PRAISE = ("quick help, thanks", "bought a phone", "second number", "renewed")


class CustomerTables(NamedTuple):
    """The tables of `customers`, as they would be in nodes.csv and edges.csv.

    truth  (n,) what each customer does, also those whose label is not told
    """

    nodes: pd.DataFrame
    edges: pd.DataFrame
    truth: NDArray[np.object_]


def customers(**reading: object) -> Graph:
    """The graph of `customer_tables`, with the options of `from_frames`; its notes are text."""
    given = Reading.of(**reading)
    if "note" not in given.said:
        given = replace(given, text=(*given.text, "note"))
    nodes, edges, _ = customer_tables()
    return from_frames(nodes, edges, **given.given, name="customers")  # type: ignore[arg-type]


def customer_tables() -> CustomerTables:
    """1,500 customers of a phone company, and how many minutes they call each other.

    The label says who leaves and who stays, and is told of three in five.
    """
    import pandas as pd

    n, random = CUSTOMERS, np.random.default_rng(5)
    circle = random.integers(n // CIRCLE, size=n)
    pull = random.choice([-1.0, 1.0], n // CIRCLE, p=[0.6, 0.4])[circle]
    plan = random.choice(["basic", "family", "business"], n, p=[0.5, 0.35, 0.15])
    age = random.normal(44, 14, n).clip(18, 90).round()
    months, support = random.gamma(2, 14, n).round(), random.poisson(1.5, n)
    mood = random.standard_normal(n)  # told by the notes alone
    own = 0.7 * support - 0.7 * np.log1p(months) + 0.5 * mood
    own += 1.0 * (plan == "basic") - 0.5 * (plan == "family")
    risk = PULL * pull + (own - own.mean()) / own.std()
    truth = np.where(risk > np.quantile(risk, 1 - LEAVING), "leaves", "stays").astype(object)
    quiet = random.gamma(2, 8 * np.exp(0.5 * pull)).round()
    cross = random.random(n) < 1 / (1 + np.exp(-3 * mood))
    note = np.where(cross, random.choice(COMPLAINTS, n), random.choice(PRAISE, n)).astype(object)
    note[random.random(n) < 0.2] = None
    age[random.random(n) < 0.1] = np.nan
    names = np.array([f"c{i:04d}" for i in range(n)], object)
    nodes = pd.DataFrame(
        {
            "id": names,
            "age": pd.array(age, "Int64"),
            "plan": plan,
            "months": months.astype(int),
            "support_calls": support,
            "days_quiet": quiet.astype(int),
            "note": note,
            "label": np.where(random.random(n) < KNOWN, truth, np.array(None)),
        }
    )
    (u, v), minutes = _calls(circle, random)
    edges = pd.DataFrame({"source": names[u], "target": names[v], "weight": minutes})
    return CustomerTables(nodes, edges, truth)


def _calls(circle: Ints, random: np.random.Generator) -> tuple[Ints, Ints]:
    """Undirected edges and their minutes: long calls within a circle, and some to others."""
    n, sizes = len(circle), np.bincount(circle)
    order, starts = np.argsort(circle, kind="stable"), np.cumsum(sizes) - sizes
    u = random.integers(n, size=n * CALLED // 2)
    friend = order[starts[circle[u]] + random.integers(sizes[circle[u]])]
    v = np.where(random.random(len(u)) < STRANGERS, random.integers(n, size=len(u)), friend)
    edges = merged(np.stack([u, v])[:, u != v])
    near = circle[edges[0]] == circle[edges[1]]
    minutes = 1 + random.gamma(np.where(near, 3, 2), np.where(near, 20, 8)).round()
    return edges, minutes.astype(np.int64)


TRAIN_PER_CLASS, VAL, TEST = 20, 500, 1000
SCANNED = "datasets/data/digits.csv.gz"  # in the package of scikit-learn


def digits(neighbours: int = 8, seed: int = 0) -> Graph:
    """1797 images of 8×8 pixels in 0…1, each joined to its `neighbours` nearest others.

    By `seed`, 20 images per class are drawn for training, 500 for validation and 1000 for testing;
    97 are in no mask.
    """
    images, y = _scanned_digits()
    check_number("neighbours of digits", neighbours, 1, len(y) - 1, whole=True)
    check_number("seed of digits", seed, 0, whole=True)
    random = np.random.default_rng(seed)
    return Graph(
        X=(images / 16).astype(np.float32),
        edges=nearest(images, neighbours),
        y=y,
        splits=(per_class(y, TRAIN_PER_CLASS, random, val=VAL, test=TEST),),
        name="digits",
        classes=tuple("0123456789"),
    )


def _scanned_digits() -> tuple[Floats, Ints]:
    """What scikit-learn's `load_digits` returns, without its import, which takes a second."""
    package = Path(str(find_spec("sklearn").origin)).parent  # type: ignore[union-attr]
    if not (package / SCANNED).exists():  # in a later version
        from sklearn.datasets import load_digits

        return load_digits(return_X_y=True)  # type: ignore[no-any-return]
    table = np.loadtxt(package / SCANNED, delimiter=",")
    return table[:, :-1], table[:, -1].astype(np.int64)


def nearest(points: Floats, neighbours: int) -> Ints:
    """Undirected edges from every point to its nearest others; ties go to the first.

    Distances of whole numbers are exact, so that the graph is the same on every machine.
    """
    n, squares = len(points), (points**2).sum(1)
    distances = squares[:, None] - 2 * (points @ points.T) + squares
    np.fill_diagonal(distances, np.inf)
    ranks = distances * n + np.arange(n)  # distinct, and a tenth of the time of a stable sort
    targets = np.argpartition(ranks, neighbours - 1, axis=1)[:, :neighbours]
    sources = np.repeat(np.arange(n), neighbours)
    return merged(np.stack([sources, targets.ravel()]))


FEATURES, LABELS = 50, 121
COMMUNITIES, DIMENSIONS = 20, 24
SPREAD = 0.6  # standard deviation of z around its centre; that of the centres is 1
NOISE = 20.0  # standard deviation of the features' noise; their signal's is about √24
HOMOPHILY = 0.7
RARE, COMMON = 0.1, 0.65  # lowest and highest share of nodes with a label; PPI's mean is 0.37


def ppi_like(graphs: int = 24, n: int = 2373, degree: float = 28, seed: int = 0) -> Graph:
    """`graphs` graphs of n nodes: 1/12 for validation, 1/12 for testing, the rest for training."""
    check_number("graphs of ppi-like", graphs, 3, whole=True)
    check_number("n of ppi-like", n, 2 * COMMUNITIES, whole=True)
    check_number("degree of ppi-like", degree, 0)
    check_number("seed of ppi-like", seed, 0, whole=True)
    random = np.random.default_rng(seed)
    centres = random.standard_normal((COMMUNITIES, DIMENSIONS))
    view = random.standard_normal((DIMENSIONS, FEATURES))
    planes = random.standard_normal((DIMENSIONS, LABELS)) / DIMENSIONS**0.5
    nodes = [_functions(n, centres, random) for _ in range(graphs)]
    bars = _bars(np.concatenate([z @ planes for _, z in nodes]), random)
    each = [
        _graph(community, z @ view, z @ planes > bars, round(n * degree / 2), random)
        for community, z in nodes
    ]
    return join(each, _roles(graphs), name="ppi-like")


def _functions(n: int, centres: Floats, random: np.random.Generator) -> tuple[Ints, Floats]:
    """(n,) communities and (n, 24) z."""
    community = random.permutation(np.arange(n) % COMMUNITIES)
    return community, centres[community] + SPREAD * random.standard_normal((n, DIMENSIONS))


def _bars(heights: Floats, random: np.random.Generator) -> Floats:
    """For each label the height z·plane above which a node has it, so that RARE to COMMON do."""
    shares = random.uniform(RARE, COMMON, LABELS)
    return np.array([np.quantile(heights[:, i], 1 - share) for i, share in enumerate(shares)])


def _graph(
    community: Ints, seen: Floats, y: NDArray[np.bool_], m: int, random: np.random.Generator
) -> Graph:
    X = seen + NOISE * random.standard_normal(seen.shape)
    edges = draw_edges(community, m, HOMOPHILY, random)
    return Graph(X=X.astype(np.float32), edges=edges, y=y.astype(np.int64))


def _roles(graphs: int) -> list[Role]:
    held_out = max(1, graphs // 12)
    counts: dict[Role, int] = {"train": graphs - 2 * held_out, "val": held_out, "test": held_out}
    return [role for role, count in counts.items() for _ in range(count)]
