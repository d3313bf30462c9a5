"""GAT, GaAN and GeniePath, with the settings behind the numbers that the paper quotes."""

from __future__ import annotations

from collections.abc import Mapping

from gcnii.train.presets.settings import Settings

# Fey & Lenssen 2019: lr, decay, out_heads
_CITATIONS = {"cora": (0.005, 5e-4, 1), "citeseer": (0.005, 5e-4, 1), "pubmed": (0.01, 1e-3, 8)}

# Geom-GCN's GAT: width of each of the 8 heads, out_heads, decay
_FULL = {
    "cora-full": (8, 1, 5e-6),
    "citeseer-full": (8, 1, 5e-6),
    "pubmed-full": (8, 8, 5e-6),
    "chameleon": (48, 1, 5e-6),
    "cornell": (32, 1, 5e-5),
    "cornell-2022": (32, 1, 5e-5),
    "texas": (32, 1, 5e-5),
    "wisconsin": (32, 1, 5e-5),
}

_NO_DECAY: Settings = {"decay_conv": 0.0, "decay_dense": 0.0}

_GENIEPATH: Settings = {
    **{"layers": 4, "width": 256, "lr": 0.005, **_NO_DECAY},
    **{"epochs": 100, "patience": 100, "monitor": "val_score", "batches": "parts", "batch_size": 1},
}

_GAT_PPI: Settings = {
    **{"layers": 3, "width": 256, "heads": 4, "out_heads": 6, "dropout": 0.0},
    **{"lr": 0.005, **_NO_DECAY, "epochs": 100_000, "patience": 100, "monitor": "val_either"},
    **{"batches": "parts", "batch_size": 2},
}

_GAAN: Settings = {
    **{"layers": 2, "width": 128, "heads": 8, "dropout": 0.1, "lr": 0.01, **_NO_DECAY},
    # authors: 100,000 steps, validated every 100; here: the same number in epochs of 88 steps.
    **{"epochs": 1136, "patience": 30, "monitor": "val_score"},
    **{"plateau": 15, "plateau_factor": 0.5, "plateau_floor": 1e-3},
    **{"batches": "neighbours", "batch_size": 512, "fanout": (0, 0)},
}

_PPI: dict[str, Settings] = {
    "gat-ppi": _GAT_PPI,
    "gaan": _GAAN,
    "geniepath": _GENIEPATH,
    "geniepath-lazy": _GENIEPATH,
}


def settings_for(name: str) -> Mapping[str, Settings]:
    """model → settings for a data set; empty if none are known."""
    if name == "ppi":
        return _PPI
    if name in _CITATIONS:
        return {"gat": _citations(*_CITATIONS[name])}
    return {"gat": _full(*_FULL[name])} if name in _FULL else {}


def _citations(lr: float, decay: float, out_heads: int) -> Settings:
    return {
        **{"layers": 2, "width": 8, "heads": 8, "out_heads": out_heads, "dropout": 0.6},
        **{"lr": lr, "decay_conv": decay, "decay_dense": decay},
        **{"epochs": 1000, "patience": 1000, "monitor": "val_loss"},
        **{"window": 100, "window_from": 500},
    }


def _full(width: int, out_heads: int, decay: float) -> Settings:
    return {
        **{"layers": 2, "width": width, "heads": 8, "out_heads": out_heads, "dropout": 0.5},
        **{"lr": 0.05, "decay_conv": decay, "decay_dense": decay},
        # The window of Fey & Lenssen, which is the model's default, is not Geom-GCN's.
        **{"epochs": 5000, "patience": 100, "monitor": "val_either", "window": 0},
        **{"plateau": 50, "plateau_factor": 0.8},
        **{"direction": "in", "loops": "remove"},
    }
