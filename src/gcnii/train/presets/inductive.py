"""GraphSAGE, VR-GCN and Cluster-GCN, which are trained in mini-batches."""

from __future__ import annotations

from collections.abc import Mapping

from gcnii.train.presets.settings import Settings

_GRAPHSAGE = ("graphsage-mean", "graphsage-pool", "graphsage-lstm")
_VR_GCN = ("vr-gcn-cv", "vr-gcn-cvd")

# PPI, as published; batches, norms and step sizes are the models' defaults.
_SAGE_PPI: Settings = {"layers": 2, "width": 128, "dropout": 0.0, "epochs": 10, "monitor": "last"}
_VR_PPI: Settings = {"layers": 2, "width": 512, "dropout": 0.2, "epochs": 800, "monitor": "last"}
_CLUSTER_PPI: Settings = {
    **{"layers": 5, "width": 2048, "dropout": 0.2},
    **{"epochs": 400, "monitor": "last"},
}

# Pubmed: no settings were published; a few were tried by hand.
_SAGE_PUBMED: Settings = {
    **{"layers": 2, "width": 128, "dropout": 0.5},
    **{"epochs": 100, "patience": 10, "monitor": "val_loss"},
}
_CLUSTER_PUBMED: Settings = {
    **{"layers": 3, "width": 128, "dropout": 0.5, "clusters": 50, "batch_size": 5},
    **{"epochs": 200, "patience": 20, "monitor": "val_loss"},
}


def settings_for(name: str) -> Mapping[str, Settings]:
    """model → settings for a data set; empty if none are known."""
    if name == "ppi":
        return (
            dict.fromkeys(_GRAPHSAGE, _SAGE_PPI)
            | dict.fromkeys(_VR_GCN, _VR_PPI)
            | {"cluster-gcn": _CLUSTER_PPI}
        )
    if name == "pubmed-full":
        return dict.fromkeys(_GRAPHSAGE, _SAGE_PUBMED) | {"cluster-gcn": _CLUSTER_PUBMED}
    return {}
