"""Published settings by data set and model; one file for each family of models."""

from __future__ import annotations

from collections.abc import Mapping

from gcnii.data.catalog import CATALOG
from gcnii.train.presets import attention, dropedge, gcnii, geometry, inductive, shallow
from gcnii.train.presets.settings import Settings

FAMILIES = (gcnii, shallow, dropedge, attention, geometry, inductive)
SHARED = {"ppi-like": "ppi"}  # a stand-in is trained like the data set it stands for
PRESETS: dict[str, dict[str, Settings]] = {
    name: {
        model: settings
        for family in FAMILIES
        for model, settings in family.settings_for(SHARED.get(name, name)).items()
    }
    for name in CATALOG
}


def presets_of(name: str) -> Mapping[str, Settings]:
    """model → settings for a data set of the catalog; empty if none were published."""
    return PRESETS.get(name, {})


def preset(name: str, model: str) -> Settings:
    """A new dict of the settings for a model on a data set; empty if none were published."""
    return dict(presets_of(name).get(model, {}))
