"""Published settings: for a data set, those of each model.  One file for each family of models."""

from __future__ import annotations

from collections.abc import Mapping

from gcnii.train.presets import attention, dropedge, gcnii, geometry, inductive, shallow
from gcnii.train.presets.settings import Settings

FAMILIES = (gcnii, shallow, dropedge, attention, geometry, inductive)
SHARED = {"ppi-like": "ppi"}  # a stand-in is trained as what it stands for


def presets_of(name: str) -> Mapping[str, Settings]:
    """model → settings for a data set of the catalog; empty where none were published."""
    name = SHARED.get(name, name)
    return {model: settings for family in FAMILIES for model, settings in family.of(name).items()}


def preset(name: str, model: str) -> Settings:
    """The settings for a model on a data set of the catalog, as a new dict; empty where none were
    published.
    """
    return dict(presets_of(name).get(model, {}))
