"""What the presets are made of."""

from typing import Any

Settings = dict[str, Any]

# of the paper
STOP: Settings = {"lr": 0.01, "epochs": 1500, "patience": 100, "monitor": "val_loss"}
