"""Explanation: why a node has its label, as a sentence, a JSON document and a drawing."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, pstdev

from gcnii.files import Document


@dataclass(frozen=True)
class NodeShare:
    """What a node's features add to the score.

    hop  links between it and the explained node, None if no path joins them
    """

    node: str | int
    label: str
    known: str | None
    hop: int | None
    share: float


@dataclass(frozen=True)
class FeatureShare:
    """What a feature adds to the score, over all nodes."""

    feature: str | int
    share: float


@dataclass(frozen=True)
class HopShare:
    """What the nodes at one distance add together."""

    hop: int | None
    nodes: int
    share: float


@dataclass(frozen=True)
class LinkEffect:
    """By how much the log-probability of the label would fall without a link, by a gradient.

    An undirected link is named from its far end to the one nearer to the explained node.
    """

    source: str | int
    target: str | int
    effect: float


@dataclass(frozen=True)
class Proof:
    """The probability of the label with all links, without some, and without random ones.

    links   that were dropped
    random  probabilities, one for each draw of as many links from the neighbourhood
    """

    links: tuple[LinkEffect, ...]
    before: float
    after: float
    random: tuple[float, ...]

    @property
    def random_mean(self) -> float:
        """The mean over the draws."""
        return fmean(self.random)

    @property
    def random_deviation(self) -> float:
        """The standard deviation over the draws."""
        return pstdev(self.random)

    def document(self) -> Document:
        """As JSON."""
        drawn = {"after_mean": self.random_mean, "after_std": self.random_deviation}
        return {
            "links": [asdict(link) for link in self.links],
            "before": self.before,
            "after": self.after,
            "random": {**drawn, "draws": len(self.random)},
        }


@dataclass(frozen=True)
class Explanation:
    """Why a node has its label: the shares of its score, the links that matter, and a proof.

    label        whose score is explained, and its probability
    predicted    the label that the best run predicts; of several labels, joined by `;`
    holds        whether the label is predicted, or one of them
    known        its label in the graph, None if unknown
    against      the class whose score was subtracted, if any
    score        = sum of all shares of nodes (or of features, or of hops) + bias + residual
    nodes, features   those with the largest shares
    reasons      what adds most to the score, and how much: nodes, or the bias
    residual     what is left over: of rounding where `exact`, else because the model is not
                 piecewise linear
    links        those that support the label most; empty if `unranked` says why there are none
    removal      None where there is no link to remove
    surroundings, groups, joined   the nodes of the drawing, what their colours say, and the links
                 among them, which name places in surroundings
    notes        what else one should know, a sentence each
    """

    graph: str
    model: str
    seed: int
    split: int
    node: str | int
    label: str
    probability: float
    predicted: str
    holds: bool
    known: str | None
    against: str | None
    score: float
    nodes: tuple[NodeShare, ...]
    features: tuple[FeatureShare, ...]
    hops: tuple[HopShare, ...]
    bias: float
    reasons: tuple[tuple[str, float], ...]
    residual: float
    exact: bool
    links: tuple[LinkEffect, ...]
    unranked: str
    removal: Proof | None
    surroundings: tuple[NodeShare, ...]
    groups: tuple[str, ...]
    joined: tuple[tuple[int, int, float], ...]
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """`17 is labelled b (0.93) mostly because of …`."""
        verb = "is labelled" if self.holds else "is not labelled"
        head = f"{self.node} {verb} {self.label} ({self.probability:.2f})"
        # What rounds to +0.00 is not a reason that counts, unless there is no other.
        clear = [one for one in self.reasons if one[1] >= 0.005] or self.reasons[:1]
        named = [f"{name} ({share:+.2f})" for name, share in clear]
        if not named:
            return f"{head}; no node and no bias speaks for it"
        last = f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else named[0]
        why = " mostly because of" if self.holds else "; what speaks for it most is"
        whole = "a score" if self.against is None else f"a lead over {self.against}"
        return f"{head}{why} {last} of {whole} of {self.score:.2f}"

    def __str__(self) -> str:
        """The sentence."""
        return self.sentence

    def document(self) -> Document:
        """As JSON."""
        parts = ("nodes", "features", "hops")
        shares = {name: [asdict(one) for one in getattr(self, name)] for name in parts}
        about = ("graph", "model", "node", "label", "probability", "predicted", "known", "against")
        return {
            **{name: getattr(self, name) for name in about},
            "run": {"seed": self.seed, "split": self.split},
            "score": self.score,
            "shares": {**shares, "bias": self.bias, "residual": self.residual},
            "exact": self.exact,
            "links": [asdict(link) for link in self.links],
            "unranked": self.unranked or None,
            "removal": self.removal and self.removal.document(),
            "sentence": self.sentence,
            "notes": list(self.notes),
        }

    def draw(self, path: Path | str, *, overwrite: bool = False) -> Path:
        """Write a drawing of the neighbourhood to a .png or .svg file.

        overwrite  whether to replace a file that gcnii did not write
        """
        from gcnii.inference.explaining.drawing import write_drawing

        return write_drawing(self, Path(path), overwrite=overwrite)
