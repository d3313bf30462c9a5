"""Settings that nobody published: the winners of our searches in results/search, by their names.

A cell that is not here yet has the published settings of the nearest cell, at its own depth.
"""

from __future__ import annotations

import json
from pathlib import Path

from gcnii.train.presets import Settings

FILE = Path(__file__).with_name("searched.json")  # made by `gcnii reproduce adopt`

ENOUGH = 10  # tries before a winner is adopted
OURS = f"settings are ours, by validation the best of at least {ENOUGH} tries"

ADOPTED: dict[str, Settings] = json.loads(FILE.read_text("utf-8"))


def whose(cell: str) -> str:
    """A note on the settings of a figure's cell, for which the paper gives none."""
    return OURS if cell in ADOPTED else "settings are Table 2's, not searched for"
