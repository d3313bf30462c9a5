"""Many runs at once: the weights of r seeds, stacked, and one model that vmap runs over them.

Each step may see several random views of the graph, and pull their predictions together: GRAND's
training (Feng et al. 2020), for any model.  A view has dropout masks of its own, and leaves out
links and nodes of its own; while a step is computed, it is one more replica.

Their weights are packed in one tensor for each group of Adam: a step is one operation, not sixty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor
from torch.func import functional_call, vmap
from torch.optim.adam import adam as torch_adam

from gcnii import kernels
from gcnii.dropout import LEVELS, drop_edges, drop_nodes, epoch_key, kept_of, keyed, view_keys
from gcnii.nn import Model
from gcnii.nn.model import numbers_of, set_numbers
from gcnii.targets import as_labels
from gcnii.targets.objective import Objective
from gcnii.train.batches import Batch
from gcnii.train.plan import Plan
from gcnii.train.recipe import Recipe


class Replicas:
    """r models of one shape, each with its own seed's weights and dropout masks.

    The replicas' plans may differ in numeric settings only: see `plan.batch_key`.

    Weights, Adam's moments and the best weights only change in place: a captured epoch holds their
    addresses.
    """

    def __init__(
        self, plans: Sequence[Plan], d: int, k: int, seeds: Sequence[int], device: torch.device
    ):
        models = [plan.build(d, k, seed) for plan, seed in zip(plans, seeds, strict=True)]
        self.model, self.recipe, self.sizes = models[0], plans[0].recipe, (d, k)
        self.seeds = torch.tensor(list(seeds), dtype=torch.int64, device=device)
        self.own_numbers = [numbers_of(model) for model in models]
        self.recipes = [plan.recipe for plan in plans]
        each = [dict(model.named_parameters()) for model in models]
        kinds = {name: _kind(name, self.model) for name in each[0]}
        self.layout = WeightLayout({name: weight.shape for name, weight in each[0].items()}, kinds)
        stack = {name: torch.stack([own[name].detach() for own in each]) for name in each[0]}
        flats = [flat.to(device) for flat in self.layout.pack(stack)]
        self._set_weights(flats, [flat.clone() for flat in flats])

    def _set_weights(
        self,
        flats: list[Tensor],
        best: list[Tensor],
        moments: Sequence[list[Tensor]] = (),
        steps: Sequence[int] = (),
    ) -> None:
        """Continue from these weights, and Adam's moments after these numbers of steps."""
        self.flats, self.best_flats = [flat.detach().requires_grad_() for flat in flats], best
        self.idle_keys = epoch_key(self.seeds, 0)  # for passes that drop nothing
        differing = set_numbers(self.model, self.own_numbers, self.recipe.dtype)
        self.numbers = {name: one.to(self.seeds.device) for name, one in differing.items()}
        self.views = Views(self.recipes, self.seeds.device)
        groups = [Group.of(*kind, self.recipes) for kind in self.layout.groups]
        self.adam = Adam(self.flats, groups, moments, list(steps) or [0] * len(self.seeds))

    @property
    def weights(self) -> Stack:
        """Views of the current weights."""
        return self.layout.named([flat.detach() for flat in self.flats])

    @property
    def best(self) -> Stack:
        """Views of the replicas' weights at their best epochs."""
        return self.layout.named(self.best_flats)

    @property
    def moments(self) -> dict[str, Stack]:
        """Views of Adam's moments, by name."""
        named = map(self.layout.named, self.adam.moments)
        return dict(zip(MOMENTS, named, strict=True))

    def load(
        self, weights: Stack, best: Stack, moments: Sequence[Stack], steps: Sequence[int]
    ) -> None:
        """Continue from these weights, and Adam's moments after these numbers of steps."""
        pack = self.layout.pack
        self._set_weights(pack(weights), pack(best), [pack(moment) for moment in moments], steps)

    def narrow(self, rows: Tensor) -> None:
        """Continue with some of the replicas."""
        steps, which = self.adam.steps, rows.tolist()
        self.seeds, self.own_numbers = self.seeds[rows], [self.own_numbers[i] for i in which]
        self.recipes = [self.recipes[i] for i in which]
        flats, best, *moments = (
            [flat[rows] for flat in each]
            for each in (self.flats, self.best_flats, *self.adam.moments)
        )
        self._set_weights(flats, best, moments, [steps[i] for i in which])

    def join(self, plans: Sequence[Plan], seeds: Sequence[int]) -> None:
        """Add replicas that begin now."""
        others = Replicas(plans, *self.sizes, seeds, self.seeds.device)
        fresh = [torch.zeros_like(flat) for flat in others.flats]
        moments = [_joined(moment, fresh) for moment in self.adam.moments]
        steps = self.adam.steps + [0] * len(seeds)
        self.seeds = torch.cat([self.seeds, others.seeds])
        self.own_numbers += others.own_numbers
        self.recipes += others.recipes
        flats = _joined(self.flats, others.flats)
        self._set_weights(flats, _joined(self.best_flats, others.best_flats), moments, steps)

    def scores(
        self, batch: Batch, epoch: Tensor | int | None = None, step: Tensor | int = 0
    ) -> Tensor:
        """(r, n, k); with an epoch, in training mode with the masks of that epoch and step.

        In training mode each replica has S views, one below the other: (r · S, n, k).
        """
        training = epoch is not None
        views = self.views.count if training else 1
        self.model.train(training)
        adjacency = batch.adjacency if training and self.recipe.drop_edge else None

        def one(weights: Stack, key: Tensor, numbers: Stack, links: Kept, nodes: Kept) -> Tensor:
            with keyed(key, rows=batch.P.at(0).row_numbers):
                form = self.recipe.drop_form
                P = batch.P if adjacency is None else drop_edges(adjacency, links, form)
                X = drop_nodes(batch.X, nodes) if training else batch.X
                return functional_call(self.model, weights | numbers, (P, X))  # type: ignore[no-any-return]

        keys = self.idle_keys if epoch is None else epoch_key(self.seeds, epoch, step)
        keys, kept = view_keys(keys, views), (self.views.links, self.views.nodes)
        # vmap over one replica costs half as much again as the model itself on a CPU
        if len(keys) == 1:
            # `flat[0]` would have a gradient of its own: a tensor of zeros, and a copy into it.
            weights = self.layout.named([flat.squeeze(0) for flat in self.flats])
            single = [share if isinstance(share, int) else share[0] for share in kept]
            numbers = {name: each[0] for name, each in self.numbers.items()}
            return one(weights, keys[0], numbers, *single)[None]
        weights = self.layout.named(repeated(self.flats, views))
        differs = [None if isinstance(share, int) else 0 for share in kept]
        every = vmap(one, (0, 0, 0, *differs))
        numbers = dict(zip(self.numbers, repeated(list(self.numbers.values()), views), strict=True))
        return every(weights, keys, numbers, *repeated(kept, views))

    def differentiate(
        self, batch: Batch, objective: Objective, epoch: Tensor | int, step: Tensor | int = 0
    ) -> tuple[Tensor, Tensor]:
        """Find the gradients; the scores (r, n, k), and the training losses (r,).

        The scores are those of the first view, the losses means over the views, without what pulls
        the views together.
        """
        scores = self.views.split(self.scores(batch, epoch, step))
        loss = self.views.loss(objective, scores)
        pull = self.views.pull(objective, scores, epoch)
        total = loss if pull is None else loss + pull
        gradients = torch.autograd.grad(total, self.flats, torch.ones_like(total))
        for flat, gradient in zip(self.flats, gradients, strict=True):
            flat.grad = objective.total(gradient)  # of all processes, if there are several
        return scores[0].detach(), loss.detach()

    @torch.no_grad()
    def descend(self, scales: Tensor | None = None) -> None:
        """A step of Adam along the gradients.

        scales  (r,) by which each replica's learning rate is multiplied
        """
        if self.recipe.clip:
            for flat in self.flats:
                assert flat.grad is not None
                flat.grad.clamp_(-self.recipe.clip, self.recipe.clip)
        self.adam.step(scales)

    @torch.no_grad()
    def keep(self, which: Tensor) -> None:
        """Take the current weights of these replicas (r,) as their best."""
        for best, flat in zip(self.best_flats, self.flats, strict=True):
            torch.where(which[:, None], flat, best, out=best)


def _kind(name: str, model: Model) -> tuple[str, float]:
    """Which decay a weight has, and the factor by which the model's card shortens its steps."""
    decay = "decay_conv" if name.startswith("convs.") else "decay_dense"
    factors = (one for part, one in model.card.step_sizes.items() if part in name.split("."))
    return decay, next(factors, 1.0)


def _joined(some: Sequence[Tensor], more: Sequence[Tensor]) -> list[Tensor]:
    """Replicas and more replicas of each of these."""
    pairs = zip(some, more, strict=True)
    return [torch.cat([one.detach(), other.detach()]) for one, other in pairs]


Kept = int | Tensor  # of LEVELS; (r,) where the replicas differ
Held = TypeVar("Held", Tensor, Kept)

SHARPEST = 1e-6  # at which all but the most probable class are 0 in any precision


class Views:
    """The views of r replicas.

    count  S, of each replica
    links  how many DropEdge keeps
    nodes  how many DropNode keeps
    """

    def __init__(self, recipes: Sequence[Recipe], device: torch.device):
        self.count = recipes[0].views
        self.links = _share([kept_of(recipe.drop_edge) for recipe in recipes], device)
        self.nodes = _share([_nodes_kept(recipe.drop_node) for recipe in recipes], device)
        self.pulls = any(recipe.consistency for recipe in recipes)

        def each(numbers: list[float]) -> Tensor:
            return torch.tensor(numbers, dtype=torch.float64, device=device)

        self.weight = each([recipe.consistency for recipe in recipes])
        self.warm_up = each([recipe.warm_up for recipe in recipes])
        sharpen = each([max(recipe.sharpen, SHARPEST) for recipe in recipes])
        self.sharpen = sharpen.to(recipes[0].dtype)

    def split(self, scores: Tensor) -> tuple[Tensor, ...]:
        """(r · S, n, k) → S times (r, n, k)."""
        return (scores,) if self.count == 1 else scores.unflatten(0, (-1, self.count)).unbind(1)

    def loss(self, objective: Objective, scores: Sequence[Tensor]) -> Tensor:
        """The training loss (r,): the mean over the views."""
        losses = [objective.loss(view, "train") for view in scores]
        return losses[0] if len(losses) == 1 else torch.stack(losses).mean(0)

    def pull(
        self, objective: Objective, scores: Sequence[Tensor], epoch: Tensor | int
    ) -> Tensor | None:
        """λ_c, as far as it has grown, times the disagreement of the views: (r,); None without."""
        if not self.pulls:
            return None

        target = as_labels(objective.target, "consistency is")
        each = target.disagreement(torch.stack(list(scores), 1), self.sharpen)
        return self._weight(epoch).to(each.dtype) * objective.overall(each)

    def _weight(self, epoch: Tensor | int) -> Tensor:
        """λ_c · min(1, epoch / warm_up), (r,); λ_c where there is no warm-up."""
        begun = epoch.flatten() if isinstance(epoch, Tensor) else epoch
        left = (self.warm_up - begun).clamp(min=0) / self.warm_up.clamp(min=1)
        return self.weight * (1 - left)


def repeated(each: Sequence[Held], views: int) -> list[Held]:
    """For each view what its replica has: (r, …) → (r · views, …); what all share, as it is."""

    def every(one: Tensor) -> Tensor:
        return one[:, None].expand(-1, views, *one.shape[1:]).flatten(0, 1)

    return [one if views == 1 or isinstance(one, int) else every(one) for one in each]


def _nodes_kept(rate: float) -> int:
    """Of LEVELS: all if nothing is dropped, and else neither all nor none."""
    return min(max(kept_of(rate), 1), LEVELS - 1) if rate else LEVELS


def _share(kept: Sequence[int], device: torch.device) -> Kept:
    """One number where the replicas agree, else (r,)."""
    return kept[0] if len(set(kept)) == 1 else torch.tensor(kept, dtype=torch.int32, device=device)


MOMENTS = ("first", "second")  # the names of Adam's moments in a checkpoint
Stack = dict[str, Tensor]  # a parameter's name → its r copies (r, …)
BETAS, EPS = (0.9, 0.999), 1e-8  # torch's own defaults
ALIGNED = 16  # numbers; products are slower on matrices that start at odd addresses


class WeightLayout:
    """Where each weight is stored in the row (size,) of its group.

    shapes  of the weights, by name
    groups  for each group of Adam, of one decay and factor, the names of its weights, in order
    """

    def __init__(
        self, shapes: Mapping[str, Sequence[int]], groups: Mapping[str, tuple[str, float]]
    ):
        self.shapes = {name: tuple(shape) for name, shape in shapes.items()}
        self.sizes = {name: prod(shape) for name, shape in self.shapes.items()}
        self.groups: dict[tuple[str, float], list[str]] = {}
        # Those of odd sizes (biases of the last layer) come last, where they shift no other weight.
        for name in sorted(self.shapes, key=lambda name: self.sizes[name] % ALIGNED > 0):
            self.groups.setdefault(groups[name], []).append(name)

    def pack(self, stack: Stack) -> list[Tensor]:
        """A new tensor (r, size) for each group; zeros that pad a row stay zeros under Adam."""
        groups = self.groups.values()
        return [self._row([stack[name].flatten(1) for name in names]) for names in groups]

    def _row(self, weights: list[Tensor]) -> Tensor:
        filled = sum(weight.shape[1] for weight in weights)
        return torch.cat([*weights, weights[0].new_zeros(len(weights[0]), -filled % ALIGNED)], 1)

    def named(self, flats: Sequence[Tensor]) -> Stack:
        """The weights (…, *shape) as views of tensors (…, size), one of each group."""
        views = {}
        for flat, names in zip(flats, self.groups.values(), strict=True):
            sizes = [self.sizes[name] for name in names]
            # One split, whose gradient is one concatenation; a slice for each weight would be sixty
            # additions.
            padding = flat.shape[-1] - sum(sizes)
            # Without an empty piece, whose gradient would make a GPU's concatenation seven times as
            # long.
            pieces = flat.split([*sizes, padding] if padding else sizes, -1)
            for name, piece in zip(names, pieces, strict=False):
                views[name] = piece.view(*flat.shape[:-1], *self.shapes[name])
        return {name: views[name] for name in self.shapes}


class Group(NamedTuple):
    """The decay and the learning rate of a group of weights, one number for each replica."""

    decay: tuple[float, ...]
    lr: tuple[float, ...]

    @classmethod
    def of(cls, decay: str, factor: float, recipes: Sequence[Recipe]) -> Group:
        """The decay of this name, and the learning rate times the factor, of replicas' recipes."""
        decays = (getattr(recipe, decay) for recipe in recipes)
        return cls(tuple(decays), tuple(recipe.lr * factor for recipe in recipes))

    @property
    def alike(self) -> bool:
        """Whether all replicas agree in both numbers."""
        return len(set(self.decay)) == len(set(self.lr)) == 1


class Adam:
    """Adam for replicas (r, size), each with a learning rate, a decay and a number of steps.

    flats    the weights of each group
    taken    (r, 1) float64, the number of steps so far
    first, second  each group's moments: running means of the gradient and of its square
    """

    def __init__(
        self,
        flats: Sequence[Tensor],
        groups: Sequence[Group],
        moments: Sequence[list[Tensor]],
        steps: Sequence[int],
    ):
        def column(numbers: Sequence[float]) -> Tensor:
            return torch.tensor(numbers, dtype=torch.float64, device=flats[0].device)[:, None]

        self.flats, self.groups, self.taken = list(flats), groups, column(steps)
        self.decays = [column(group.decay).to(flats[0].dtype) for group in groups]
        self.sizes = [column(group.lr) for group in groups]
        zeros = ([torch.zeros_like(flat) for flat in flats] for _ in MOMENTS)
        self.first, self.second = moments or zeros
        self.agree = all(group.alike for group in groups) and len(set(steps)) == 1
        # as torch's own takes them
        self.counts = [torch.tensor(float(steps[0]), device=flat.device) for flat in flats]

    @property
    def moments(self) -> tuple[list[Tensor], list[Tensor]]:
        """The two moments of each group of weights, in the order of MOMENTS."""
        return self.first, self.second

    @property
    def steps(self) -> list[int]:
        """The number of steps so far, of each replica."""
        return [int(steps) for steps in self.taken[:, 0].tolist()]

    def step(self, scales: Tensor | None) -> None:
        """Descend along the gradients; the learning rates are multiplied by scales (r,)."""
        self.taken.add_(1)
        for i, flat in enumerate(self.flats):
            # Torch's own takes one learning rate for a whole tensor, and on a GPU it gives four
            # programs to what a hundred could do.
            if kernels.usable(flat):
                self._on_gpu(i, scales)
            elif self.agree:
                self._by_torch(i, scales)
            else:
                self._each(i, scales)
            flat.grad = None

    def _on_gpu(self, i: int, scales: Tensor | None) -> None:
        from gcnii.kernels.adam import adam

        flat, moments = self.flats[i], (self.first[i], self.second[i])
        assert flat.grad is not None
        lr = self._lr(i, scales)
        adam(flat, flat.grad, moments, self.decays[i], lr, self.taken, BETAS, EPS)

    def _by_torch(self, i: int, scales: Tensor | None) -> None:
        flat, group, gradient = self.flats[i], self.groups[i], self.flats[i].grad
        assert gradient is not None
        before = None if scales is None else flat.clone()
        # The class of the same name imports torch's compiler, which takes a second.
        torch_adam(
            [flat],
            [gradient],
            [self.first[i]],
            [self.second[i]],
            [],
            [self.counts[i]],
            fused=True,
            amsgrad=False,
            maximize=False,
            beta1=BETAS[0],
            beta2=BETAS[1],
            eps=EPS,
            lr=group.lr[0],
            weight_decay=group.decay[0],  # L2 in the gradient, not AdamW
        )
        if before is not None and scales is not None:
            # The step is proportional to the learning rate: a smaller one goes part of the way.
            flat.copy_(torch.lerp(before, flat, scales.to(flat)[:, None]))

    def _each(self, i: int, scales: Tensor | None) -> None:
        flat, first, second = self.flats[i], self.first[i], self.second[i]
        assert flat.grad is not None
        slow, fast = (1 - beta**self.taken for beta in BETAS)
        gradient = torch.addcmul(flat.grad, flat, self.decays[i])
        first.lerp_(gradient, 1 - BETAS[0])
        second.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        below = torch.sqrt(second, out=gradient).div_(fast.sqrt().to(flat.dtype)).add_(EPS)
        length = self._lr(i, scales) / slow
        flat.addcmul_(torch.div(first, below, out=below), -length.to(flat.dtype))

    def _lr(self, i: int, scales: Tensor | None) -> Tensor:
        """(r, 1) each replica's learning rate."""
        return self.sizes[i] if scales is None else self.sizes[i] * scales[:, None]
