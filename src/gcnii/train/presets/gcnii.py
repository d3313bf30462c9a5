"""GCNII, its variants and its ablation: Tables 6 and 7, which agree with the authors' scripts."""

from __future__ import annotations

from collections.abc import Mapping

from gcnii.train.presets.settings import STOP, Settings

# set: layers, width, alpha, lam, dropout, decay_conv, decay_dense
_SEMI = {
    "cora": (64, 64, 0.1, 0.5, 0.6, 0.01, 5e-4),
    "citeseer": (32, 256, 0.1, 0.6, 0.7, 0.01, 5e-4),
    "pubmed": (16, 256, 0.1, 0.4, 0.5, 5e-4, 5e-4),
}

# set: layers, alpha, lam, decay of all weights; width 64 and dropout 0.5 throughout
_FULL = {
    "cora-full": (64, 0.2, 0.5, 1e-4),
    "citeseer-full": (64, 0.5, 0.5, 5e-6),
    "pubmed-full": (64, 0.1, 0.5, 5e-6),
    "chameleon": (8, 0.2, 1.5, 5e-4),
    "cornell": (16, 0.5, 1.0, 1e-3),
    "cornell-2022": (16, 0.5, 1.0, 1e-3),
    "texas": (32, 0.5, 1.5, 1e-4),
    "wisconsin": (16, 0.5, 1.0, 5e-4),
}

_CITATIONS = {"cora", "citeseer", "pubmed", "cora-full", "citeseer-full", "pubmed-full"}

_PPI: Settings = {
    **{"layers": 9, "width": 2048, "alpha": 0.5, "lam": 1.0, "dropout": 0.2},
    **{"lr": 0.001, "decay_conv": 0.0, "decay_dense": 0.0},
    **{"epochs": 8000, "patience": 2000, "monitor": "val_score"},
    **{"batches": "parts", "batch_size": 1},
}

# Not in the paper and not searched: one of three settings tried by hand, for the demo only.
_DIGITS: Settings = {
    **{"layers": 64, "width": 64, "dropout": 0.3},
    **{"lr": 0.02, "decay_conv": 1e-3, "decay_dense": 5e-4},
    **{"epochs": 200, "patience": 30, "monitor": "val_loss"},
}
_OTHERS = {
    "digits": dict.fromkeys(("gcnii", "gcnii-star", "gcnii-star-printed", "deep-gcn"), _DIGITS)
}


def settings_for(name: str) -> Mapping[str, Settings]:
    """model → settings for a data set; empty if none are known."""
    if name == "ppi":
        return {"gcnii-ppi": _PPI, "gcnii-star-ppi": _PPI}
    if name in _SEMI:
        layers, width, alpha, lam, dropout, conv, dense = _SEMI[name]
    elif name in _FULL:
        layers, alpha, lam, conv = _FULL[name]
        width, dropout, dense = 64, 0.5, conv
    else:
        return _OTHERS.get(name, {})
    model = {"layers": layers, "width": width, "dropout": dropout}
    training = {**STOP, "decay_conv": conv, "decay_dense": dense}
    settings = {**model, "alpha": alpha, "lam": lam, **training}
    presets = {"gcnii": settings, "gcnii-star": settings, "gcnii-star-printed": settings}
    return presets | (_ablation(model, training, alpha, lam) if name in _CITATIONS else {})


def _ablation(model: Settings, training: Settings, alpha: float, lam: float) -> dict[str, Settings]:
    """The same network with other convolutions, or without any."""
    # paper: silent on their decay; here: L2_d for all weights where β = 1, because L2_c = 0.01 is
    # meant for β W, not W.
    plain = {**model, **training, "decay_conv": training["decay_dense"]}
    return {
        "deep-gcn": plain,
        "gcn-residual": plain,
        "gcn-initial": {**plain, "alpha": alpha},
        "gcn-identity": {**model, **training, "lam": lam},
        "mlp": {name: value for name, value in plain.items() if name != "layers"},
    }
