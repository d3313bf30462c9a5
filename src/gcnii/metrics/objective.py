"""Loss and score of all replicas at once: scores (r, n, k) → one number per replica."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from gcnii.graph import Graph, Role


@dataclass(frozen=True, eq=False)
class Objective:
    """Cross-entropy and accuracy; with several labels per node, binary cross-entropy and micro-F1.

    y      (n,) or (n, k)
    masks  (r, n) for each role: the nodes that replica r trains on, stops by and is tested on; each
           replica has a split of its own
    part   (n,) the graph that each node belongs to, where there are several: F1 is the mean of the
           graphs' F1, as in the authors' code
    parts  the number of graphs
    """

    y: Tensor
    masks: dict[Role, Tensor]
    part: Tensor
    parts: int

    @classmethod
    def of(cls, graph: Graph, splits: list[int], device: torch.device) -> Objective:
        """Replica r is trained on graph.splits[splits[r]]."""

        def stack(role: Role) -> Tensor:
            return torch.tensor(
                np.stack([getattr(graph.splits[i], role) for i in splits]), device=device
            )

        part = np.zeros(graph.n, np.int64) if graph.part is None else graph.part
        masks: dict[Role, Tensor] = {
            "train": stack("train"),
            "val": stack("val"),
            "test": stack("test"),
        }
        return cls(
            torch.tensor(graph.labels, device=device),
            masks,
            torch.tensor(part, device=device),
            int(part.max()) + 1,
        )

    def at(self, nodes: Tensor | None) -> Objective:
        """The objective on these nodes; on all where `nodes` is None."""
        if nodes is None:
            return self
        masks = {role: mask[:, nodes] for role, mask in self.masks.items()}
        return Objective(self.y[nodes], masks, self.part[nodes], self.parts)

    def narrow(self, rows: Tensor) -> Objective:
        """The objective of these replicas."""
        return Objective(
            self.y, {role: mask[rows] for role, mask in self.masks.items()}, self.part, self.parts
        )

    def loss(self, scores: Tensor, role: Role) -> Tensor:
        """The mean loss over the role's nodes, (r,)."""
        y = self.y.clamp(min=0)
        if y.ndim == 1:
            log_p = scores.log_softmax(-1)
            each = -log_p.gather(-1, y.expand(len(scores), -1)[..., None])[..., 0]
        else:
            target = y.to(scores.dtype).expand_as(scores)
            each = binary_cross_entropy_with_logits(scores, target, reduction="none").mean(-1)
        # `where`, not a product: a node outside the mask must not turn the sum into NaN.
        mask = self.masks[role]
        return torch.where(mask, each, 0).sum(-1) / mask.sum(-1)

    def score(self, scores: Tensor, role: Role) -> Tensor:
        """Accuracy or micro-F1 in [0, 1], (r,); NaN where the role has no nodes."""
        mask = self.masks[role]
        if self.y.ndim == 1:
            right = (scores.argmax(-1) == self.y) & mask
            return right.sum(-1).double() / mask.sum(-1)
        return self._micro_f1(scores > 0, mask)

    def _micro_f1(self, guess: Tensor, mask: Tensor) -> Tensor:
        truth = self.y == 1
        hits = (guess & truth).sum(-1)
        errors = (guess ^ truth).sum(-1)

        def by_part(counts: Tensor) -> Tensor:
            sums = torch.zeros(len(counts), self.parts, dtype=torch.float64, device=counts.device)
            return sums.index_add(1, self.part, torch.where(mask, counts, 0).double())

        f1 = 2 * by_part(hits) / (2 * by_part(hits) + by_part(errors)).clamp(min=1)
        present = by_part(torch.ones_like(hits)) > 0
        return (f1 * present).sum(-1) / present.sum(-1)


def percent(score: float) -> str:
    """0.8534 → 85.3; a dash where there is nothing to grade."""
    return "–" if score != score else f"{100 * score:.1f}"


def mean_and_spread(scores: NDArray[np.float64]) -> str:
    """`85.3 ± 0.4 (10 runs)`: mean and sample standard deviation (ddof 1) over the runs."""
    if len(scores) == 1:
        return f"{percent(scores[0])} (1 run)"
    return f"{percent(scores.mean())} ± {percent(scores.std(ddof=1))} ({len(scores)} runs)"
