"""Train several plans in one process of several, and let rank 0 write what they gave.

    torchrun train_together.py PLANS.json OUT.json [DEVICE]

PLANS.json: a list of {"graph": {…of csbm…}, "model": …, "settings": {…}}; a graph may also be the
folder of its parts.
"""

import json
import sys
from pathlib import Path

import torch

from gcnii.data import load_share
from gcnii.train.distributed.world import joined
from support.together import graph_of, trained


def opened(graph, world):
    """A graph that every process makes, or this one's parts of it."""
    return (
        load_share(graph, world.rank, world.size) if isinstance(graph, str) else graph_of(**graph)
    )


if __name__ == "__main__":
    plans, out = map(Path, sys.argv[1:3])
    device = sys.argv[3] if sys.argv[3:] else "cpu"
    with joined(torch.device(device)) as world:
        found = [
            trained(opened(one.pop("graph"), world), **one, world=world, device=device)
            for one in json.loads(plans.read_text())
        ]
        if world is None or world.rank == 0:
            out.write_text(json.dumps(found))
