"""The model of the best run on a graph whose links can be weakened or dropped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra
from torch import Tensor
from torch.nn.functional import logsigmoid

from gcnii.errors import GraphError
from gcnii.graph import Graph
from gcnii.inference.explaining.question import Question
from gcnii.nn import Model
from gcnii.propagation import Sparse
from gcnii.targets.calibration import probabilities
from gcnii.train.plan import Plan
from gcnii.train.results.predictor import Predictor, calibrated
from gcnii.train.results.run import Run
from gcnii.train.task import Task

# What the models call the weights that they add; a score is homogeneous in these and X together.
BIASES = frozenset({"bias", "b", "shift", "offset"})


@dataclass(frozen=True, eq=False)
class Network:
    """The model of the best run, and the graph made ready for it.

    plan         of that run
    run          that one, whose probabilities are calibrated
    """

    model: Model
    task: Task
    plan: Plan
    multilabel: bool
    run: Run

    @classmethod
    def of(cls, result: Predictor, graph: Graph, device: str = "auto") -> Network:
        """The best run of a result; only its biases can be differentiated by."""
        model, task = result.network(graph, device)
        for name, weight in model.named_parameters():
            weight.requires_grad_(name.rpartition(".")[2] in BIASES)
        run = result.runs[result.best]
        plan = result.plans[run.setting]
        return cls(model, task, plan, result.graph.multilabel, run)

    @property
    def biases(self) -> list[Tensor]:
        """The weights that the model adds."""
        return [weight for weight in self.model.parameters() if weight.requires_grad]

    def scores(self, P: Sparse | None = None, X: Tensor | Sparse | None = None) -> Tensor:
        """Scores (n, k) of the graph, or with another P or X."""
        task = self.task
        return self.model(task.P if P is None else P, task.X if X is None else X)

    @torch.no_grad()
    def predict_proba(self, kept: Tensor | None = None) -> NDArray[np.float64]:
        """(n, k) probabilities, of the links that `kept` (entries,) marks.

        The others are dropped, and the rest is normalised anew.
        """
        scores = self.scores() if kept is None else self.scores(self.task.adjacency.matrix(kept))
        warm = calibrated(scores.cpu().double(), self.run)
        return probabilities(warm, multilabel=self.multilabel)

    def probability(self, question: Question, kept: Tensor | None = None) -> float:
        """The probability of the class in question."""
        return float(self.predict_proba(kept)[question.node, question.label])

    def log_probability(self, question: Question, kept: Tensor) -> Tensor:
        """() its logarithm, with a gradient to `kept`."""
        row = calibrated(self.scores(self.task.adjacency.matrix(kept))[question.node], self.run)
        logs = logsigmoid(row) if self.multilabel else row.log_softmax(0)
        return logs[question.label]

    def paths(self, node: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """(n,) hops from each node to this one, and the next node on the way there, -1 if none.

        Along the links that information takes; infinitely many hops if there is no way.
        """
        pattern = self.task.adjacency.pattern
        rows, columns = pattern.rows.cpu().numpy(), pattern.columns.cpu().numpy()
        A = sp.csr_array((np.ones(len(columns)), columns, rows), pattern.shape)
        hops, before = dijkstra(A, indices=node, unweighted=True, return_predecessors=True)
        return hops, np.maximum(before, -1).astype(np.int64)


def refuse_infinite(P: NDArray[np.float64], graph: Graph, node: int) -> None:
    """Raise GraphError if a node's probabilities are not numbers."""
    if not np.isfinite(P[node]).all():
        raise GraphError(
            f"the scores of node {node} of {graph.name} are not finite; its features may be far "
            "larger than those of the training"
        )
