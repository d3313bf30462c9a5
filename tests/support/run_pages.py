"""Small graphs of every kind that the page of a run has to show, and names that want to run."""

import numpy as np

from gcnii.graph import Graph, Split
from gcnii.results.fit import fit

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "</style><style>main{display:none}</style>",
    "\x1b[31mred\x1b[0m",
    "\u202eevil\u200f txt",
    "{{ 7 * 7 }} &lt; 'quoted' onfocus=alert(3)",
    "long " * 100,
)
SMALL = {"layers": 2, "width": 8, "epochs": 25, "threads": 1, "device": "cpu", "verbose": False}


def a_graph(n=160, k=4, d=10, *, several=False, names=(), unknown=0):
    """Communities with features of their own, and some links and features that mislead.

    several  whether a node can have several labels
    names    of nodes, classes, features and the graph, in turn, each with a number after it
    unknown  nodes without a label and a role
    """
    random = np.random.default_rng(0)
    kind = random.integers(0, k, n)
    X = random.normal(size=(k, d))[kind] + 1.5 * random.normal(size=(n, d))
    u, v = random.integers(0, n, (2, 5 * n))
    members = [np.flatnonzero(kind == one) for one in range(k)]
    alike = np.array([random.choice(members[one]) for one in kind[u]])
    v = np.where(random.random(5 * n) < 0.6, alike, v)
    parts = ["train"] * (n // 2) + ["val"] * (n // 4) + ["test"] * (n - n // 2 - n // 4)
    roles = np.array(random.permutation(parts), dtype=object)
    y = (X @ random.normal(size=(d, k)) > 0).astype(np.int64) if several else kind
    lost = np.flatnonzero(roles == "test")[:unknown]
    y[lost], roles[lost] = -1, None

    def called(count):
        return tuple(f"{names[i % len(names)]} {i}" for i in range(count)) if names else None

    return Graph(
        X=X,
        edges=np.stack([u, v])[:, u != v],
        y=y,
        splits=(Split.of_roles(roles),),
        nodes=called(n),
        classes=called(k),
        features=called(d),
        name=names[0] if names else "made-up",
    )


def trained(graph, model="gcnii", seeds=(0,), **settings):
    """A result of a short training."""
    given = {name: one for name, one in SMALL.items() if name != "layers" or model != "mlp"}
    return fit(graph, model, seeds=list(seeds), **given | settings)
