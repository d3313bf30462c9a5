"""Settings that nobody published, found by our searches: the winners of results/search, by the name of the search.

A cell that is not here yet has the published settings of the nearest cell, at its own depth.
"""

from __future__ import annotations

from typing import Any

FOUND: dict[str, dict[str, Any]] = {}
