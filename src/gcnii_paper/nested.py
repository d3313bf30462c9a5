"""What nested selection gives where our records chose one setting for all splits of a data set.

    python -m gcnii_paper.nested texas film … [--budget 60s] [--out results/beyond/nested]

runs `gcnii tune`, which chooses for each split by its own validation nodes alone, and writes two
numbers for each split: of the ensemble, and of its network that was best on the split's validation
nodes, as a record is one network, too.  docs/evidence/results.md shows both.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated

from cyclopts import Parameter

import gcnii
from gcnii.errors import InputError
from gcnii.files import Document, write_document
from gcnii.results.ensemble import Ensemble, Member, Networks
from gcnii.targets.target import Floats
from gcnii.tuning.closing import Tuned
from gcnii_paper.documents import made_by, run_script


def main(
    *names: Annotated[str, Parameter(required=True)],
    budget: str = "60s",
    device: str = "auto",
    out: Path = Path("results/beyond/nested"),
) -> None:
    """Tune data sets, one after the other, and write a file for each."""
    graphs = {name: gcnii.load(name) for name in names}
    for name, graph in graphs.items():
        if len(graph.splits) == 1:
            raise InputError(f"nested selection needs several splits, and {name} has one")
    for name, graph in graphs.items():
        made = made_by("nested", name, "--budget", budget)
        best = gcnii.tune(graph, budget=budget, device=device)
        made |= {"day": datetime.now(UTC).date().isoformat(), "device": best.result.device}
        found = about(name, best) | made
        write_document(out / f"{name}.json", found)
        print(
            f"{name}: {found['settings_tried']} settings, single {found['test_mean']:.4f}, "
            f"ensemble {found['ensemble_mean']:.4f}",
            file=sys.stderr,
        )


def about(name: str, best: Tuned) -> Document:
    """The scores of each split, of the ensemble and of its best network there."""
    ensemble = best.result
    assert isinstance(ensemble, Ensemble)
    tests = {one: ensemble.member(one.name).test for one in ensemble.members}
    rows = [_row(ensemble, i, tests) for i in range(len(ensemble.blends))]
    single, combined = [row["test"] for row in rows], [float(one) for one in ensemble.test]
    return {
        "data": name,
        "settings_tried": len(best.trials),
        "splits": rows,
        "test_mean": fmean(single),
        "test_sd": stdev(single),
        "ensemble": combined,
        "ensemble_mean": fmean(combined),
        "ensemble_sd": stdev(combined),
    }


def _row(ensemble: Ensemble, i: int, tests: Mapping[Member, Floats]) -> Document:
    """The member that was best on the validation nodes of a split: a network, if any has a weight.

    Only members with a weight there are candidates.  That another is still in the ensemble was
    decided by other splits, whose validation nodes this one may test.
    """
    blend = ensemble.blends[i]
    weights = ensemble.network_weights(blend)
    networks: list[Member] = [one for one in weights if weights[one]]
    pairs = zip(ensemble.members, blend.weights, strict=True)
    able = networks or [one for one, weight in pairs if weight]
    own = {one: one.runs[blend.rows[0]] for one in able}
    best = max(own, key=lambda one: (own[one].val, -own[one].val_loss))
    return {
        "split": own[best].split,
        "val": own[best].val,
        "test": float(tests[best][i]),
        "member": best.name,
        "model": best.result.plan.model if isinstance(best, Networks) else best.name,
        "settings": best.result.plan.settings if isinstance(best, Networks) else {},
    }


if __name__ == "__main__":
    run_script(main)
