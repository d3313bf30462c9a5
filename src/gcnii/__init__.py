"""Deep graph convolutional networks for node classification: GCNII (Chen et al., ICML 2020).

The names below are loaded when first used, so that `gcnii --help` need not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from gcnii import data as data
    from gcnii import nn as nn
    from gcnii.data import load as load
    from gcnii.graph import Graph as Graph
    from gcnii.graph import Split as Split
    from gcnii.graph import join as join
    from gcnii.report.watching import watch as watch
    from gcnii.train import Recipe as Recipe
    from gcnii.train import Result as Result
    from gcnii.train import fit as fit
    from gcnii.train import open_bundle as open_bundle

_ROOMS = {"load": "data", "Graph": "graph", "Split": "graph", "join": "graph"}
_ROOMS |= dict.fromkeys(("Recipe", "Result", "fit", "open_bundle"), "train") | {"watch": "report.watching"}


def __getattr__(name: str) -> Any:
    if name in ("data", "nn"):
        return import_module(f"gcnii.{name}")
    if name in _ROOMS:
        return getattr(import_module(f"gcnii.{_ROOMS[name]}"), name)
    raise AttributeError(f"gcnii has no {name!r}; it has data, nn, {', '.join(_ROOMS)}")


def __dir__() -> list[str]:
    return ["data", "nn", *_ROOMS]
