"""Geom-GCN and its GCN, with the settings of Pei et al. (2020), whose numbers the paper quotes."""

from __future__ import annotations

from collections.abc import Mapping

from gcnii.train.presets.settings import Settings

# set: width, decay of all weights; the rest is in the models' default recipe
_GEOM_GCN = {
    "cora-full": (16, 5e-6),
    "citeseer-full": (16, 5e-6),
    "pubmed-full": (64, 5e-6),
    "chameleon": (48, 5e-6),
    "cornell": (32, 5e-5),
    "texas": (32, 5e-5),
    "wisconsin": (32, 5e-5),
}

# Their GCN gathers from in-neighbours only, while Geom-GCN's neighbourhoods go both ways.
_GCN: Settings = {
    **{"lr": 0.05, "epochs": 5000, "patience": 100, "monitor": "val_either"},
    **{"plateau": 50, "plateau_factor": 0.8},
    **{"direction": "in", "loops": "remove"},
}


def settings_for(name: str) -> Mapping[str, Settings]:
    """model → settings for a data set; empty if none are known."""
    if name not in _GEOM_GCN:
        return {}
    width, decay = _GEOM_GCN[name]
    model = {"layers": 2, "width": width, "dropout": 0.5}
    settings = {**model, "decay_conv": decay, "decay_dense": decay}
    return {
        **dict.fromkeys(("geom-gcn-i", "geom-gcn-p", "geom-gcn-s"), settings),
        "gcn": {**settings, **_GCN},
    }
