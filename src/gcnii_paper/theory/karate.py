"""Zachary's karate club (1977): 34 people, 78 friendships and two hubs."""

from __future__ import annotations

import numpy as np

from gcnii.graph import Graph

FRIENDS = {  # of each person, those with a higher number
    0: (1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31),
    1: (2, 3, 7, 13, 17, 19, 21, 30),
    2: (3, 7, 8, 9, 13, 27, 28, 32),
    3: (7, 12, 13),
    4: (6, 10),
    5: (6, 10, 16),
    6: (16,),
    8: (30, 32, 33),
    9: (33,),
    13: (33,),
    14: (32, 33),
    15: (32, 33),
    18: (32, 33),
    19: (33,),
    20: (32, 33),
    22: (32, 33),
    23: (25, 27, 29, 32, 33),
    24: (25, 27, 31),
    25: (31,),
    26: (29, 33),
    27: (33,),
    28: (31, 33),
    29: (32, 33),
    30: (32, 33),
    31: (32, 33),
    32: (33,),
}


def karate_club() -> Graph:
    """The club as a graph without labels; the features are one-hot node numbers."""
    edges = np.array([(one, other) for one, others in FRIENDS.items() for other in others]).T
    return Graph(X=np.eye(34), edges=edges, name="karate")
