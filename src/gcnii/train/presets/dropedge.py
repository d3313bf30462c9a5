"""DropEdge's GCN, JKNet and IncepGCN.

Settings are from the DropEdge authors' scripts for the citation graphs and from the appendix of
the GCNII paper for the web pages.  Without DropEdge they are the same with `drop_edge` 0, as in the
authors' scripts and for the paper's JKNet.
"""

from __future__ import annotations

from collections.abc import Mapping

from gcnii.train.presets.settings import STOP, Settings

# set, model: layers, lr, decay of all weights, share of links kept, dropout, norm, options of the
# convolutions
_CITATIONS: dict[str, dict[str, tuple[int, float, float, float, float, str, str]]] = {
    "cora": {
        "dropedge-gcn": (2, 0.007, 1e-5, 0.4, 0.8, "symmetric", ""),
        "jknet": (4, 0.001, 5e-4, 0.4, 0.8, "walk", ""),
        "incep": (64, 0.004, 5e-5, 0.4, 0.3, "walk", ""),
    },
    "citeseer": {
        "dropedge-gcn": (2, 0.01, 5e-4, 0.2, 0.3, "symmetric", ""),
        "jknet": (16, 0.006, 0.001, 0.5, 0.8, "symmetric", "self_weight"),
        "incep": (4, 0.005, 0.001, 0.05, 0.8, "symmetric", ""),
    },
    "pubmed": {
        "dropedge-gcn": (2, 0.003, 0.005, 0.7, 0.5, "walk", "self_weight"),
        "jknet": (32, 0.001, 0.005, 0.7, 0.8, "symmetric", ""),
        "incep": (4, 0.003, 0.005, 0.8, 0.3, "symmetric", ""),
    },
    # authors: tuned for another split, with 500 nodes for validation and 1,000 for testing; the
    # paper used the same settings.
    "cora-full": {
        "dropedge-gcn": (4, 0.01, 0.005, 0.7, 0.8, "first-order", ""),
        "jknet": (16, 0.008, 5e-4, 0.2, 0.8, "symmetric", ""),
        "incep": (8, 0.01, 0.001, 0.05, 0.5, "symmetric", ""),
    },
    "citeseer-full": {
        "dropedge-gcn": (4, 0.009, 0.001, 0.05, 0.8, "symmetric+I", "self_weight batch_norm"),
        "jknet": (8, 0.004, 5e-5, 0.6, 0.3, "symmetric", "self_weight"),
        "incep": (8, 0.002, 0.005, 0.2, 0.5, "symmetric+I", "self_weight"),
    },
    "pubmed-full": {
        "dropedge-gcn": (4, 0.01, 0.001, 0.3, 0.5, "symmetric+I", "self_weight batch_norm"),
        "jknet": (64, 0.005, 1e-4, 0.5, 0.8, "symmetric", "self_weight batch_norm"),
        "incep": (4, 0.002, 1e-5, 0.5, 0.8, "symmetric+I", "self_weight batch_norm"),
    },
}

# set, model: layers, share of links dropped, decay of all weights
_WEB = {
    "chameleon": {"jknet": (32, 0.7, 1e-4), "incep": (8, 0.9, 5e-4)},
    "cornell": {"jknet": (4, 0.5, 5e-5), "incep": (16, 0.7, 5e-5)},
    "cornell-2022": {"jknet": (4, 0.5, 5e-5), "incep": (16, 0.7, 5e-5)},
    "texas": {"jknet": (32, 0.8, 5e-5), "incep": (8, 0.8, 5e-6)},
    "wisconsin": {"jknet": (8, 0.8, 5e-5), "incep": (8, 0.7, 1e-4)},
}

# Xu et al. 2018 on PPI: two graphs per step; depth, width and step size are GAT's, because none are
# published.
_PPI: dict[str, Settings] = {
    "jknet-lstm": {
        **{"layers": 3, "width": 256, "dropout": 0.0},
        **{"lr": 0.005, "decay_conv": 0.0, "decay_dense": 0.0},
        **{"epochs": 100_000, "patience": 100, "monitor": "val_either"},
        **{"batches": "parts", "batch_size": 2},
    }
}


def settings_for(name: str) -> Mapping[str, Settings]:
    """model → settings for a data set; empty if none are known."""
    if name == "ppi":
        return _PPI
    if name in _WEB:
        return {model: _web(*line) for model, line in _WEB[name].items()}
    return {model: _citations(*line) for model, line in _CITATIONS.get(name, {}).items()}


def _citations(
    layers: int, lr: float, decay: float, kept: float, dropout: float, norm: str, options: str
) -> Settings:
    return {
        **{"layers": layers, "width": 128, "dropout": dropout},
        **{"self_weight": "self_weight" in options, "batch_norm": "batch_norm" in options},
        **{"lr": lr, "decay_conv": decay, "decay_dense": decay},
        **{"norm": norm, "drop_edge": round(1 - kept, 2)},
        **{"epochs": 400, "patience": 400, "monitor": "noisy_loss"},
    }


def _web(layers: int, dropped: float, decay: float) -> Settings:
    # paper: silent on norm, self weight and batch norm; here: P̃ and neither, because that is the
    # plain convolution.
    return {
        **{"layers": layers, "width": 64, "dropout": 0.5},
        **{"self_weight": False, "batch_norm": False},
        **{**STOP, "decay_conv": decay, "decay_dense": decay},
        **{"norm": "symmetric", "drop_edge": dropped},
    }
