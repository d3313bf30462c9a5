"""The type of a preset, and what many of them share."""

from typing import Any

Settings = dict[str, Any]

# the paper's step size and stopping rule
STOP: Settings = {"lr": 0.01, "epochs": 1500, "patience": 100, "monitor": "val_loss"}
