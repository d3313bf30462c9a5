"""Train several plans in one process of several, and let rank 0 write what they gave.

    torchrun train_together.py PLANS.json OUT.json

PLANS.json: a list of {"graph": {…of csbm…}, "model": …, "settings": {…}}.
"""

import json
import sys
from pathlib import Path

import torch

from gcnii.train.distributed.world import joined
from support.together import graph_of, trained

if __name__ == "__main__":
    plans, out = map(Path, sys.argv[1:])
    with joined(torch.device("cpu")) as world:
        found = [
            trained(graph_of(**one["graph"]), one["model"], one["settings"], world)
            for one in json.loads(plans.read_text())
        ]
        if world is None or world.rank == 0:
            out.write_text(json.dumps(found))
