"""DropEdge (Rong et al. 2020): each epoch leaves out some links and normalises the rest anew, for any model."""

from __future__ import annotations

from typing import Any, Literal

from gcnii.dropout import LEVELS, keep_mask, site_key
from gcnii.propagation import Links

DropForm = Literal["entries", "pairs"]


def drop_edges(links: Links, rate: float, form: DropForm) -> Any:
    """The propagation matrix of the links that are left, drawn from the key of the forward pass; loops always stay.

    entries  the authors' form: u may lose v while v keeps u, and degrees are counted over what u has left
    pairs    a link is lost at both ends
    """
    # authors: exactly ⌊keep · entries⌋ are drawn; here: each is kept with that probability, which needs no sorting.
    kept = round((1 - rate) * LEVELS)
    if kept == LEVELS:
        return links.whole
    mask = keep_mask(site_key(links.weights.device), len(links.weights), kept)
    return links.matrix(mask if form == "entries" else mask[links.pairs])
