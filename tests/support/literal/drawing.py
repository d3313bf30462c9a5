"""Sampled neighbours, node by node: the rule that every seed's draws are held to.

For each hop, from the last layer to the first, one uniform number per link between different nodes,
row by row, of NumPy's generator seeded by (seed, epoch, step); the links of a row with the smallest
numbers are drawn, in the order of the numbers; its own loop comes after them.
"""

from math import sqrt

import numpy as np


def draw(P, targets, fanouts, random):
    """P dense, fanouts from the first layer to the last → the nodes that X is needed of, and for
    each layer, from the first, its rows: lists of (column, value, value scaled by the root).
    """
    hops, nodes = [], [int(node) for node in targets]
    for fanout in reversed(fanouts):
        links = [[int(j) for j in np.flatnonzero(P[i]) if j != i] for i in nodes]
        if fanout:
            links_drawn = [_smallest(own, fanout, random) for own in links]
        else:
            links_drawn = links
        reached = nodes + sorted({j for own in links_drawn for j in own} - set(nodes))
        place = {node: at for at, node in enumerate(reached)}
        rows = []
        for i, own, drawn in zip(nodes, links, links_drawn, strict=True):
            scale = len(own) / max(len(drawn), 1)
            row = [(place[j], P[i, j] * scale, P[i, j] * sqrt(scale)) for j in drawn]
            rows.append(row + [(place[i], P[i, i], P[i, i])] * bool(P[i, i]))
        hops.insert(0, rows)
        nodes = reached
    return nodes, hops


def _smallest(links, count, random):
    order = np.argsort(random.random(len(links)), kind="stable")
    return [links[at] for at in order[:count]]
