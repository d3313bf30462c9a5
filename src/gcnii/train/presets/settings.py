"""What the presets are made of."""

from typing import Any

Settings = dict[str, Any]

STOP: Settings = {"lr": 0.01, "epochs": 1500, "patience": 100, "monitor": "val_loss"}  # of the paper
