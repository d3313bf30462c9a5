"""Small stand-ins, in the published layout, for data that is not available everywhere."""

import json

import numpy as np

PPI_GRAPHS = {"train": (1, 2, 3), "valid": (4,), "test": (5,)}


def write_ppi(folder, nodes=6, features=4, labels=3, seed=0):
    """Write PPI's twelve files: five rings of `nodes` nodes, four with a self-loop; name → path."""
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for part, graphs in PPI_GRAPHS.items():
        n = nodes * len(graphs)
        ring = [
            (g * nodes + i, g * nodes + (i + 1) % nodes)
            for g in range(len(graphs))
            for i in range(nodes)
        ]
        loops = [(g * nodes, g * nodes) for g in range(0, len(graphs), 2)]
        links = [{"source": u, "target": v} for u, v in ring + loops]
        document = {
            "directed": False,
            "graph": {},
            "nodes": [{"id": i} for i in range(n)],
            "links": links,
        }
        (folder / f"{part}_graph.json").write_text(json.dumps(document | {"multigraph": False}))
        np.save(folder / f"{part}_feats.npy", random.normal(size=(n, features)))
        np.save(folder / f"{part}_labels.npy", random.integers(0, 2, (n, labels)))
        np.save(folder / f"{part}_graph_id.npy", np.repeat(graphs, nodes))
    return {path.name: path for path in sorted(folder.iterdir())}
