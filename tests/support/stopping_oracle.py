"""The stopping rules once more, in plain Python and for one replica: what the tensors of
`StoppingState` must agree with.
"""

from math import inf
from statistics import fmean

import torch

from gcnii.train.stopping import Measures, Run, StoppingState

CPU = torch.device("cpu")


def update(state, epoch):
    """Which replicas keep their weights after an epoch with these Measures, one per replica."""
    return state.update(torch.tensor(epoch, dtype=torch.float64).T).tolist()


def numbers(state, runs):
    """The runs' records, as the table has them."""
    for run, new in zip(runs, state.fetch(1)[1], strict=True):
        run.stand(new)
    return runs


def follow(recipe, epochs):
    """The run after these (loss, score, test), some of which may come after it has stopped."""
    state = StoppingState([recipe], [Run(0)], CPU, 1)
    for loss, score, *test in epochs:
        update(state, [Measures(1.0, loss, score, *(test or [0.5]))])
    return numbers(state, [Run(0)])[0]


KEEP = {  # this epoch's (loss, score), those of the weights kept, and the best of each ever seen
    "val_loss": lambda now, kept, best: now[0] < kept[0],
    "val_score": lambda now, kept, best: now[1] > kept[1],
    "val_score_ties": lambda now, kept, best: now[1] >= kept[1],
    "val_score_loss": lambda now, kept, best: (now[1], -now[0]) > (kept[1], -kept[0]),
    **dict.fromkeys(("val_f1", "val_auc", "val_ap"), lambda now, kept, best: now[1] > kept[1]),
    "val_either": lambda now, kept, best: now[0] <= best[0] and now[1] >= best[1],
    "noisy_loss": lambda now, kept, best: now[0] <= kept[0],
    "last": lambda now, kept, best: True,
}


class Oracle:
    """One replica."""

    def __init__(self, recipe):
        self.recipe, self.run, self.losses = recipe, Run(0), []

    def take(self, now):
        """Take in an epoch; whether its weights are kept."""
        run, recipe = self.run, self.recipe
        if run.stopped:
            return False
        new, best = (now.val_loss, now.val), (run.lowest, run.highest)
        kept = (run.val_loss, run.val) if run.best_epoch >= 0 else (inf, -inf)
        keep = KEEP[recipe.monitor](new, kept, best)
        if recipe.monitor in ("val_either", "val_score_loss"):
            reset = new[0] <= best[0] or new[1] >= best[1]
        else:
            reset = keep
        if reset:
            run.fresh_epoch = run.epochs
        if keep:
            run.test, run.val, run.val_loss, run.best_epoch = (
                now.test,
                now.val,
                now.val_loss,
                run.epochs,
            )
        self._follow_plateau(new, best)
        run.lowest, run.highest = min(best[0], now.val_loss), max(best[1], now.val)
        run.epochs += 1
        self.losses.append(now.val_loss)
        run.stopped = self._finished()
        return keep

    def _follow_plateau(self, new, best):
        run, recipe = self.run, self.recipe
        if not recipe.plateau:
            return
        by_loss = recipe.monitor in ("val_loss", "val_either", "noisy_loss", "last")
        better = new[0] < best[0] if by_loss else new[1] > best[1]
        stale = 0 if better else run.stale + 1
        if stale > recipe.plateau:
            lower = run.lr_scale * recipe.plateau_factor
            run.lr_scale = max(lower, recipe.plateau_floor / recipe.lr)
            stale = 0
        run.stale = stale

    def _finished(self):
        run, recipe = self.run, self.recipe
        recent = run.epochs - 1 - run.best_epoch < recipe.patience
        goes_on = run.epochs < recipe.longest and recent
        if run.epochs >= recipe.epochs and not goes_on:
            return True
        if run.epochs - 1 - run.fresh_epoch >= recipe.patience:
            return True
        if not recipe.window or run.epochs <= max(recipe.window, recipe.window_from):
            return False
        return self.losses[-1] > fmean(self.losses[-recipe.window - 1 : -1])
