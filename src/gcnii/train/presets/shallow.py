"""GCN, APPNP, PPNP and SGC, with their published settings."""

from __future__ import annotations

from collections.abc import Mapping

from gcnii.train.presets.settings import STOP, Settings

# Fey & Lenssen 2019, whose numbers the paper quotes for GCN and APPNP: the epoch of the lowest
# validation loss, of at most 200.
_QUOTED: Settings = {
    **{"dropout": 0.5, "lr": 0.01, "decay_conv": 5e-4, "decay_dense": 5e-4},
    **{"epochs": 200, "patience": 200, "monitor": "val_loss", "window": 10, "window_from": 100},
}

# Wu et al. 2019: epochs, decay
_SGC = {"cora": (100, 1.3027e-5), "citeseer": (150, 2.3546e-5), "pubmed": (100, 7.4039e-5)}

# Table 5's APPNP: alpha, decay
_APPNP = {
    "cora-full": (0.1, 5e-4),
    "citeseer-full": (0.5, 5e-4),
    "pubmed-full": (0.4, 1e-4),
    "chameleon": (0.1, 1e-6),
    "cornell": (0.5, 0.005),
    "cornell-2022": (0.5, 0.005),
    "texas": (0.5, 0.001),
    "wisconsin": (0.5, 0.005),
}


def settings_for(name: str) -> Mapping[str, Settings]:
    """model → settings for a data set; empty if none are known."""
    if name in _APPNP:
        alpha, decay = _APPNP[name]
        model = {"layers": 10, "width": 64, "alpha": alpha, "dropout": 0.5}
        return {"appnp": {**model, **STOP, "decay_conv": decay, "decay_dense": decay}}
    return _public(*_SGC[name]) if name in _SGC else {}


def _public(epochs: int, decay: float) -> Mapping[str, Settings]:
    """All four models on a public split; the two numbers are SGC's."""
    sgc = {"layers": 2, "lr": 0.2, "decay_conv": decay, "decay_dense": decay}
    return {
        "gcn": {"layers": 2, "width": 16, **_QUOTED},
        "appnp": {"layers": 10, "width": 64, "alpha": 0.1, **_QUOTED},
        "ppnp": {"width": 64, "alpha": 0.1, **_QUOTED},
        "sgc": {**sgc, "epochs": epochs, "monitor": "last"},
    }
