"""When the nodes and edges of a graph came, and how times divide nodes into roles.

A time is a number, of a date the days since 1970-01-01; NaN is unknown.  All nodes of one time have
one role, so that no role is later than the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gcnii.errors import GraphError
from gcnii.graph.arrays import first, own

Times: TypeAlias = NDArray[np.float64]
Roles: TypeAlias = NDArray[np.object_]
VERBS = {"val": "validate"}


def time_array(values: ArrayLike, count: int, field: str) -> Times:
    """(count,) times as float64."""
    found = own(values, field)
    if found.shape != (count,) or found.dtype.kind not in "iuf":
        raise GraphError(
            f"{field} must hold {count} numbers, NaN where one is unknown, "
            f"got {found.dtype} of shape {found.shape}"
        )
    found = found.astype(np.float64, copy=False)
    if np.isinf(found).any():
        raise GraphError(
            f"{field} must be finite or NaN, got infinity in row {first(np.isinf(found))}"
        )
    return found


def shown(time: float, *, dated: bool) -> str:
    """A time for a message: 2019-12-31 of a date."""
    return str(np.datetime64(int(np.floor(time)), "D")) if dated else f"{time:.15g}"


def refuse_disorder(
    times: Times, masks: Sequence[tuple[str, NDArray[np.bool_]]], *, dated: bool
) -> None:
    """Raise GraphError unless each role, in this order, is earlier than the next one."""
    for role, mask in masks:
        if (unknown := mask & np.isnan(times)).any():
            raise GraphError(
                f"the {role} node in row {first(unknown)} has no time; give it one, or leave it "
                "out of the split"
            )
    for (one, before), (other, after) in combinations(masks, 2):
        if np.array_equal(before, after):  # all labels train, and are measured as well
            continue
        last = times[before].max(initial=-np.inf)
        early = times[after].min(initial=np.inf)
        if last >= early:
            latest, earliest = (shown(time, dated=dated) for time in (last, early))
            raise GraphError(
                f"with times, every {one} node is earlier than every {other} node, but the split "
                f"has a {one} node of {latest} and a {other} node of {earliest}; divide the nodes "
                "by time, or leave the times out"
            )


def roles_by_shares(times: Times, known: NDArray[np.bool_], train: float, val: float) -> Roles:
    """(n,) train, val or test of the known nodes, by the cuts that come closest to these shares."""
    if not (0 < train < 1 and 0 < val < 1 and train + val < 1):
        raise GraphError(
            "the shares to train and to validate on must be above 0 and leave some to test, "
            f"got {train:g} and {val:g}"
        )
    values, done = _in_order(times, known, 3)
    early = _nearest(done[:-2], train)
    late = early + 1 + _nearest(done[early + 1 : -1], train + val)
    return roles_by_cuts(times, known, values[early + 1], values[late + 1])


def roles_by_cuts(times: Times, known: NDArray[np.bool_], val: float, test: float) -> Roles:
    """(n,) train, val or test of the known nodes: from the time `val` on, and from `test` on."""
    roles = np.full(len(times), None, object)
    for role, start, end in (("train", -np.inf, val), ("val", val, test), ("test", test, np.inf)):
        roles[known & (start <= times) & (times < end)] = role
        if not (roles == role).any():
            raise GraphError(
                f"no labelled node has a time to {VERBS.get(role, role)} on; the first cut, where "
                "validation begins, must be later than some of them and earlier than the second, "
                "where testing begins"
            )
    return roles


def latest(times: Times, known: NDArray[np.bool_], share: float) -> NDArray[np.bool_]:
    """(n,) the latest of the known nodes, by the cut that comes closest to this share of them."""
    values, done = _in_order(times, known, 2)
    found: NDArray[np.bool_] = known & (times > values[_nearest(done[:-1], 1 - share)])
    return found


def _in_order(times: Times, known: NDArray[np.bool_], least: int) -> tuple[Times, Times]:
    """The different times of the known nodes, and the share of nodes up to each."""
    known = known & ~np.isnan(times)
    values, counts = np.unique(times[known], return_counts=True)
    if len(values) < least:
        raise GraphError(
            f"the labelled nodes have {len(values)} different times, and dividing them by time "
            f"needs {least}; leave the times out, or give finer ones"
        )
    return values, np.cumsum(counts) / counts.sum()


def _nearest(shares: Times, wanted: float) -> int:
    return int(np.abs(shares - wanted).argmin())


def earliest(
    merged: NDArray[np.int64], edges: NDArray[np.int64], times: Times, *, directed: bool
) -> Times:
    """(m,) the earliest time of each merged edge, of all times at which it is listed.

    One of which a time is unknown counts as known from the first.
    """
    size = int(edges.max(initial=0)) + 1

    def codes(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        low, high = pairs if directed else np.sort(pairs, 0)
        return np.asarray(low * size + high)

    listed = codes(edges)
    order = np.lexsort((np.where(np.isnan(times), -np.inf, times), listed))
    found: Times = times[order[np.searchsorted(listed[order], codes(merged))]]
    return found


def only_times(
    merged: NDArray[np.int64], edges: NDArray[np.int64], times: Times, *, directed: bool
) -> Times:
    """The same of edges with weights; GraphError if one is listed at several times.

    Its weights would be added up to one that was not known before the last of them.
    """
    found, last = (
        sign * earliest(merged, edges, sign * times, directed=directed) for sign in (1, -1)
    )
    if (several := ~((found == last) | np.isnan(last))).any():
        u, v = merged[:, first(several)]
        raise GraphError(
            f"the edge between {u} and {v} has weights of several times, which would be added up; "
            "list each edge once, or leave out the weights or the edge times"
        )
    return found
