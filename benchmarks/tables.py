"""Five tables as users have them: gcnii against logistic regression and gradient boosting.

    python benchmarks/tables.py [--seeds 3] [--only churn,fraud] [--models gcnii,default]
                                [--effort quick] [--budget 60s] [--folder DIR]

makes the tables of tests/support/tables.py, fits the comparators of tests/support/comparators.py
and gcnii's models on the same splits, and grades all by the nodes that none of them was fitted to
or chosen by: by accuracy, or by the average precision of the rarer class, in %.  It prints the mean
over the seeds and their standard deviation, the difference to the comparator that is best on these
nodes with its standard error over the nodes, and the seconds and CPU seconds of a fit.
Probabilities are kept in DIR, and not computed again.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support import comparators
from support.tables import TABLES, Table

import gcnii

Found = dict[str, np.ndarray]  # model → (n, classes) probabilities; "seconds" → wall and CPU time
COMPARATORS, DEFAULT = "comparators", "default"


def fitted(table: Table, graph: gcnii.Graph, model: str, given: dict[str, str]) -> Found:
    """The probabilities of one model, or of all comparators."""
    wall, work = time.perf_counter(), time.process_time()
    if model == COMPARATORS:
        found = comparators.fitted(table, graph)
    else:
        asked = given if model == DEFAULT else {"model": model}
        result = gcnii.fit(graph, **asked, device="cpu", verbose=False)
        found = {model: result.predict_proba(graph)}
    spent = (time.perf_counter() - wall, time.process_time() - work)
    return found | {"seconds": np.array(spent)}


def kept(
    file: Path | None, table: Table, graph: gcnii.Graph, model: str, given: dict[str, str]
) -> Found:
    """What `fitted` finds, from the file if it is there."""
    if file and file.exists():
        return dict(np.load(file))
    found = fitted(table, graph, model, given)
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, **found)
    return found


def measure(name: str, asked: argparse.Namespace) -> None:
    """Print a line for each model on one table."""
    grades: dict[str, list[float]] = {}
    seconds: dict[str, list[np.ndarray]] = {}
    behind: dict[str, list[tuple[float, float]]] = {}
    for seed in range(asked.seeds):
        table = TABLES[name](seed=seed)
        graph = table.graph(seed)
        nodes = np.flatnonzero(comparators.graded_nodes(table, graph))
        found: Found = {}
        for model in (COMPARATORS, *asked.models):
            words = [name, str(seed), model, *(asked.given.values() if model == DEFAULT else ())]
            file = asked.folder / f"{'-'.join(words)}.npz" if asked.folder else None
            one = kept(file, table, graph, model, asked.given)
            seconds.setdefault(model, []).append(one.pop("seconds"))
            found |= one
        grade = {m: comparators.grade(table, graph, P, nodes) for m, P in found.items()}
        best = max((m for m in found if m not in asked.models), key=grade.__getitem__)
        for model, P in found.items():
            grades.setdefault(model, []).append(grade[model])
            if model in asked.models:
                error = comparators.standard_error(table, graph, P, found[best])
                behind.setdefault(model, []).append((grade[model] - grade[best], error))
    print(f"{name}: {len(nodes):,} graded nodes, {table.metric}")
    for model, values in grades.items():
        line = f"  {model:24}{100 * np.mean(values):6.1f} ± {100 * np.std(values):.1f}"
        if model in behind:
            differences, errors = 100 * np.array(behind[model]).T
            error = np.sqrt((errors**2).mean() / len(errors))
            wall, work = np.mean(seconds[model], 0)
            each = ", ".join(f"{one:+.1f}" for one in differences)
            line += f"  {differences.mean():+5.1f} ± {error:.1f} ({each})"
            line += f"  {wall:5.1f} s, {work:5.1f} s of CPU"
        print(line, flush=True)


def main() -> None:
    """Read the flags, and measure each table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(TABLES))
    parser.add_argument("--models", type=lambda text: text.split(","), default=["gcnii", DEFAULT])
    parser.add_argument("--effort", help="of the default")
    parser.add_argument("--budget", help="of the default")
    parser.add_argument("--folder", type=Path, help="keep probabilities here, and use them again")
    asked = parser.parse_args()
    options = {"effort": asked.effort, "budget": asked.budget}
    asked.given = {name: value for name, value in options.items() if value}
    for name in asked.only:
        measure(name, asked)


if __name__ == "__main__":
    main()
