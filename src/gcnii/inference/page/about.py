"""What was trained on what, the verdict in a sentence, and how to train it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import isnan

from gcnii.files import Document
from gcnii.graph import Graph
from gcnii.inference.evaluation import Evaluation
from gcnii.inference.evaluation.baselines import MAJORITY
from gcnii.inference.evaluation.tables import called
from gcnii.targets.interval import Estimate
from gcnii.targets.objective import percent
from gcnii.train.plan import make_plan
from gcnii.train.results.result import Result

SEEDS = 12  # that are named one by one


def verdict(result: Result, evaluation: Evaluation) -> str:
    """The score with its interval, and what naming the largest class would give."""
    metric, own = evaluation.metric, evaluation.scores[evaluation.metric]
    runs = len(evaluation.runs)
    mean = f" as the mean of {runs} runs" if runs > 1 else ""
    nodes = f"{evaluation.nodes:,} test {'node' if evaluation.nodes == 1 else 'nodes'}"
    sentence = f"{_capital(called(evaluation, metric))} {shown(own)}{mean} on {nodes}"
    usual = evaluation.baselines[MAJORITY][metric].mean
    beside = f"; the most frequent labels alone give {percent(usual)} %"
    unfinished = " The training was interrupted." if result.interrupted else ""
    return f"{sentence}{'' if isnan(usual) else beside}.{unfinished}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def shown(estimate: Estimate) -> str:
    """`81.3 % (79.0 to 83.6)`."""
    number = f"{percent(estimate.mean)} %"
    ends = f"{percent(estimate.low)} to {percent(estimate.high)}"
    return number if isnan(estimate.low) else f"{number} ({ends})"


def predicting(result: Result) -> str:
    """Whose predictions the page shows, where there are several runs."""
    runs = result.predicting()
    if len(result.runs) == 1:
        return ""
    split = result.runs[runs[0]].split
    if len(runs) == 1:
        return (
            f"the run of seed {result.runs[runs[0]].seed} on split {split}, the best by validation"
        )
    return f"the mean of the {len(runs)} runs on split {split}, which predicts"


def about(result: Result, graph: Graph) -> dict[str, str]:
    """Facts by their names: the model, the graph, the nodes of each role, the runs."""
    best = result.runs[result.best]
    split = graph.splits[best.split]
    sizes = (f"{int(getattr(split, role).sum()):,} {role}" for role in ("train", "val", "test"))
    other = int((~(split.train | split.val | split.test)).sum())
    facts = {
        "model": _model(result),
        "graph": _graph(graph),
        "nodes": ", ".join([*sizes, *([f"{other:,} in no role"] if other else [])]),
        "runs": _runs(result),
        "best run": f"seed {best.seed}, epoch {best.best_epoch} of {best.epochs}, by validation",
        "device": result.device,
    }
    if best.temperature is not None:
        facts["temperature"] = f"{best.temperature:.3g}, by which its scores are divided"
    made = result.made or {}
    if made.get("versions"):
        pairs = made["versions"].items()
        facts["versions"] = ", ".join(f"{name} {version}" for name, version in pairs)
    return facts | ({"commit": made["git"]} if made.get("git") else {})


def _model(result: Result) -> str:
    own = result.plan.model_settings
    sizes = [f"{own[name]} {word}" for name, word in (("layers", "layers"),) if name in own]
    sizes += [f"{name} {value}" for name, value in own.items() if name != "layers"]
    return ", ".join([result.plan.model, *sizes])


def _graph(graph: Graph) -> str:
    links = "directed links" if graph.directed else "links"
    kind = "labels, several a node" if graph.multilabel else "classes"
    sizes = (
        f"{graph.n:,} nodes",
        f"{graph.m:,} {links}",
        f"{graph.d:,} features",
        f"{graph.k:,} {kind}",
    )
    return f"{graph.name}: {', '.join(sizes)}"


def _runs(result: Result) -> str:
    count = len(result.runs)
    seeds = _listed([run.seed for run in result.runs])
    splits = Counter(run.split for run in result.runs)
    on = f"split {next(iter(splits))}" if len(splits) == 1 else f"{len(splits)} splits"
    word = "seed" if count == 1 else "seeds"
    return f"{count} ({word} {seeds}) on {on}; {sum(run.seconds for run in result.runs):.1f} s"


def _listed(numbers: Sequence[int]) -> str:
    """`0 to 9` of neighbours, else one by one, or the first and the last of many."""
    first, last = numbers[0], numbers[-1]
    if len(numbers) > 2 and list(numbers) == list(range(first, last + 1)):
        return f"{first} to {last}"
    return ", ".join(map(str, numbers)) if len(numbers) <= SEEDS else f"{first} … {last}"


def settings(result: Result, graph: Graph) -> list[Document]:
    """Every setting, and whether it differs from what this model has on this graph by default."""
    own, pairs = given(result, graph), result.plan.settings.items()
    return [{"name": name, "value": value, "given": name in own} for name, value in pairs]


def given(result: Result, graph: Graph) -> Document:
    """The settings that differ from the defaults on this graph."""
    model, own = result.plan.model, result.plan.settings
    usual = make_plan(model, {}, graph).settings
    # `longest` follows from whether `epochs` is given.
    longest = make_plan(model, {"epochs": own["epochs"]}, graph).settings["longest"]
    usual = {**usual, "longest": longest if own["epochs"] != usual["epochs"] else usual["longest"]}
    return {name: value for name, value in own.items() if value != usual.get(name)}


def again(result: Result, graph: Graph) -> str:
    """The Python that trains the same."""
    seeds = [run.seed for run in result.runs]
    one = f"range({seeds[0]}, {seeds[-1] + 1})"
    seed_words = one if seeds == list(range(seeds[0], seeds[-1] + 1)) else str(seeds)
    source = result.graph.source
    made = f"gcnii.load({str(source)!r})" if source else "graph"
    words = [made, repr(result.plan.model), f"seeds={seed_words}"]
    words += [f"{name}={value!r}" for name, value in given(result, graph).items()]
    return f"gcnii.fit({', '.join(words)})"
