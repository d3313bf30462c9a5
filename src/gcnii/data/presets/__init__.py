"""Published settings: for a data set, those of each model.  One file for each family of models."""

from __future__ import annotations

from collections.abc import Mapping

from gcnii.data.presets import attention, dropedge, gcnii, geometry, inductive, shallow
from gcnii.data.presets.settings import Settings

FAMILIES = (gcnii, shallow, dropedge, attention, geometry, inductive)


def of(name: str) -> Mapping[str, Settings]:
    """model → settings for a data set; empty where none are known."""
    return {model: settings for family in FAMILIES for model, settings in family.of(name).items()}
