"""`gcnii.watch`: the hidden states of any model, as a table and as a figure."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from torch import nn

from gcnii.analysis.checkup import Diagnosis, LayerReport, Probe, ProbeBaseline, diagnose, examine
from gcnii.analysis.report import draw_layers
from gcnii.analysis.smoothing import SmoothnessMeter
from gcnii.analysis.states import HiddenStates
from gcnii.errors import InputError
from gcnii.files import Document
from gcnii.graph import Graph
from gcnii.nn import MODELS, Model
from gcnii.nn.model import numbers_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def watch(
    model: nn.Module, graph: Graph | None = None, *, layers: Iterable[nn.Module] | None = None
) -> Watch:
    """Record the hidden states of a model's last forward pass, in a `with` block.

    Call `model.eval()` first: dropout would change the states.

    Parameters
    ----------
    model : torch.nn.Module
        A model of `gcnii.nn`, of PyG, or your own.
    graph : Graph, optional
        The graph, whose labels and split the probes need.  Without it, the edges are taken from the
        model's inputs, and there are no probes.
    layers : list of modules, optional
        The layers of a model that is not in the registry; default: PyG's convolutions, or else the
        members of the longest ModuleList or Sequential.

    Returns
    -------
    Watch
        `table()` returns a data frame with one row per layer, `plot()` a figure, `diagnose()` a
        verdict.

    Examples
    --------
    >>> import gcnii
    >>> graph = gcnii.load("csbm", n=60)
    >>> P, X = gcnii.propagation_matrix(graph), gcnii.feature_matrix(graph)
    >>> model = gcnii.nn.GCNII(graph.d, graph.k, layers=4, width=8).eval()
    >>> with gcnii.watch(model, graph) as states:
    ...     scores = model(P, X)
    >>> len(states.table())
    5
    """
    return Watch(model, graph, layers)


class Watch(HiddenStates):
    """The hidden states of one forward pass, with what can be measured of them."""

    def __init__(
        self,
        model: nn.Module,
        graph: Graph | None = None,
        layers: Iterable[nn.Module] | None = None,
    ):
        super().__init__(model, layers)
        self.graph = graph

    def table(self) -> pd.DataFrame:
        """One row per layer; sampled numbers have their standard error in a column beside them."""
        import pandas as pd  # takes a third of a second to import

        return pd.DataFrame([_flat(row) for row in self.examine()]).rename_axis("layer")

    def plot(self) -> Figure:
        """A matplotlib figure with one panel per number, against the layer."""
        names = (name for name, kind in MODELS.items() if type(self.model) is kind)
        return draw_layers(self.examine(), next(names, ""))

    def diagnose(self) -> Diagnosis:
        """The verdict on the model, and what to try."""
        baseline = ProbeBaseline.of(self.graph, self._probe) if self.graph and self._probe else None
        about = {"edges": self._meter.m, "baseline": baseline, "settings": _known(self.model)}
        return diagnose(self.examine(), **about)

    def examine(self) -> tuple[LayerReport, ...]:
        return examine(self, self._meter, self._probe)

    @cached_property
    def _probe(self) -> Probe | None:
        return Probe(self.graph) if self.graph and self.graph.splits else None

    @property
    def _meter(self) -> SmoothnessMeter:
        if self.graph:
            return SmoothnessMeter.of(self.graph)
        if self.edges is None:
            raise InputError(
                "no edges were seen among the model's inputs; pass the graph: watch(model, graph)"
            )
        return SmoothnessMeter(self.edges.cpu(), len(self.layers[0].H))


def _flat(row: LayerReport) -> Document:
    numbers: Document = {}
    for name, value in row.summary().items():
        if isinstance(value, list):
            numbers[name], error = value
            numbers |= {f"{name} ±": error} if error else {}
        else:
            numbers[name] = value
    return numbers


def _known(model: nn.Module) -> dict[str, float]:
    """α, if a model of `gcnii.nn` has one, and β_1, which stands for its λ, for the advice."""
    if not isinstance(model, Model):
        return {}
    numbers = ((name.rpartition(".")[2], value) for name, value in numbers_of(model).items())
    return {name: value for name, value in reversed([*numbers]) if name in ("alpha", "beta")}
