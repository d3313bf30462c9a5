"""A rare class: the default beside the trees that a skilled user would write, and what it promises.

python -m gcnii_paper.rare [--seeds 3] [--nodes 20000] [--effort standard] [--out results/rare]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pandas import DataFrame

RARE, USUAL = "fraud", "usual"
CHANNELS = np.array(["app", "web", "branch", "phone"])
EXPOSED = 0.05  # share of the usual accounts that fraud is aimed at
AIMED = 0.7  # share of a fraud's payments that go to these; of others, EXPOSED
PAID, KNOWN = 5, 5  # mean numbers of payments that an account makes, and of acquaintances
MISSING = 0.08  # share of the cells of two columns


def rare_graph(n: int = 20_000, share: float = 0.03, seed: int = 0) -> tuple[DataFrame, DataFrame]:
    """Accounts, of which a share is fraud, and the edges between them: (nodes, edges).

    Frauds pay usual accounts, and often the same exposed ones, which are told from others by their
    columns; whom an account knows says nothing.  So edges of the type `pays` tell more than the
    columns of the account itself, those of the type `knows` blur them, and neighbours are seldom of
    one class.
    """
    import pandas as pd

    random = np.random.default_rng(seed)
    y = np.zeros(n, bool)
    y[random.choice(n, round(share * n), replace=False)] = True
    exposed = ~y & (random.random(n) < EXPOSED)
    nodes = pd.DataFrame(_columns(random, y, exposed))
    ends = [_payments(random, y, exposed), random.integers(n, size=(2, KNOWN * n // 2))]
    kinds = np.repeat(["pays", "knows"], [one.shape[1] for one in ends])
    source, target = np.concatenate(ends, 1)
    edges = pd.DataFrame({"source": source, "target": target, "type": kinds})
    return nodes, edges[source != target].sample(frac=1, random_state=seed, ignore_index=True)


def _columns(
    random: np.random.Generator, y: NDArray[np.bool_], exposed: NDArray[np.bool_]
) -> dict[str, object]:
    """What is known of each account; each column says a little of what it is."""
    n = len(y)
    lure = 1.5 * exposed + 0.35 * y + random.normal(size=n)
    balance = np.exp(6 + 0.8 * lure + 0.5 * random.normal(size=n)).round(2)
    days = random.gamma(2.0, 400 * np.where(y, 0.8, 1.0)).round()
    for column in (balance, days):
        column[random.random(n) < MISSING] = np.nan
    by_phone = random.random(n) < np.where(exposed, 0.5, 0.15)
    return {
        "id": np.arange(n),
        "label": np.where(y, RARE, USUAL),
        "balance": balance,
        "days": days,
        "channel": np.where(by_phone, "phone", random.choice(CHANNELS, n)),
        "verified": np.where(random.random(n) < np.where(y, 0.6, 0.75), "yes", "no"),
        "region": np.char.add("r", random.integers(12, size=n).astype(str)),
    }


def _payments(
    random: np.random.Generator, y: NDArray[np.bool_], exposed: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """(2, m) who pays whom: anyone but a fraud."""
    payer = np.repeat(np.arange(len(y)), random.poisson(PAID, len(y)))
    aimed = random.random(len(payer)) < np.where(y[payer], AIMED, EXPOSED)
    chosen = (random.choice(np.flatnonzero(own), len(payer)) for own in (exposed, ~y))
    return np.stack([payer, np.where(aimed, *chosen)])
