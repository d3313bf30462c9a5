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


def uses_own_default(name: str) -> bool:
    """Whether a graph of this catalog name is trained with the default of own.py.

    So are your own graphs, whose name is empty, and downloaded ones without published settings.  A
    generated graph keeps the defaults of the model and of Recipe, on which earlier results rest.
    """
    return not name or (name in CATALOG and bool(CATALOG[name].files) and not PRESETS[name])


def presets_of(name: str) -> Mapping[str, Settings]:
    """model → settings for a data set of the catalog; empty if none were published."""
    return PRESETS.get(name, {})


def preset(name: str, model: str) -> Settings:
    """A new dict of the settings for a model on a data set; empty if none were published."""
    return dict(presets_of(name).get(model, {}))
