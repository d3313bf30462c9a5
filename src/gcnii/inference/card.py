"""card.md: what a bundle is for, what it was measured on, and how it errs (Mitchell et al., 2019).

Names come from the data, and a card may be shown as HTML: they are written as plain text.
"""

from __future__ import annotations

import re
import unicodedata

import numpy as np

from gcnii.files import json_value
from gcnii.graph import Graph
from gcnii.inference.short import few_validation_nodes, short_form
from gcnii.inference.tables import frequent_confusions
from gcnii.report.tables import markdown_table
from gcnii.results.result import Result
from gcnii.targets.scores import confusion, mean_and_spread, percent
from gcnii.train.recipe import in_force

MOST_CLASSES = 20  # in the table; of more, those that are found least often
MOST_CONFUSIONS = 3
MARKUP = re.compile(r"([\\`*_{}\[\]<>|&~$])")


def card(result: Result) -> str:
    """The card as Markdown; without the graph of the training it has no part on errors."""
    graph = result.trained_on
    device = "cuda" if result.device.startswith("cuda") else "cpu"
    if graph is not None and not result.others:
        result = result.scored(graph, device)
    parts = [_title(result), _purpose(result), _scores(result, device)]
    if graph is not None and graph.splits[_split(result)].test.any():
        parts.append(_errors(result, graph, device))
    parts += [_trust(result), _made(result)]
    return "\n".join(line for part in parts for line in (*part, "")).rstrip() + "\n"


def plain(name: object) -> str:
    """A name as text that is neither Markdown nor HTML, on one line."""
    text = "".join(" " if unicodedata.category(sign)[0] == "C" else sign for sign in str(name))
    return MARKUP.sub(r"\\\1", text).replace("\\<", "&lt;").replace("\\&", "&amp;")


def _split(result: Result) -> int:
    return result.runs[result.best].split


def _title(result: Result) -> list[str]:
    layers = result.plan.model_settings.get("layers")
    deep = f" with {layers} layers" if layers else ""
    return [
        f"# {plain(result.plan.model)} on {plain(result.origin.name)}",
        "",
        f"A node classifier: {plain(result.plan.model)}{deep}, trained by gcnii.",
    ]


def _purpose(result: Result) -> list[str]:
    graph, names = result.origin, result.target.names
    kind = result.target.described
    listed = ", ".join(map(plain, names[:MOST_CLASSES])) + (", …" * (graph.k > MOST_CLASSES))
    return [
        "## What it is for",
        "",
        f"To label the nodes of {plain(graph.name)} ({graph.n:,} nodes, {graph.d:,} features), and "
        "nodes that join it and are like them.",
        "",
        f"- {graph.k} {kind}: {listed}.",
        "- Not for graphs whose features or classes mean something else, and not for nodes of "
        "another kind than those it was measured on.",
        "- What it learnt from the labels, mistakes and prejudice among them, it repeats. Where "
        "labels decide about people, let people check them.",
    ]


def _scores(result: Result, device: str) -> list[str]:
    splits = len({run.split for run in result.runs})
    runs = "1 run" if len(result.runs) == 1 else f"{len(result.runs)} runs"
    on = "1 split" if splits == 1 else f"{splits} splits"
    lines = [
        "## What it was measured on",
        "",
        f"Test nodes that had no part in training or in its choice, {runs} on {on}. In %: "
        f"{plain(result.measured)} {mean_and_spread(result.test)}.",
    ]
    if short := short_form(result, device):
        lines += ["", f"In comparison: {short.lines()[0]}."]
        for sentence in short.warnings:
            lines += ["", f"Warning: {plain(sentence)}."]
    return lines


def _errors(result: Result, graph: Graph, device: str) -> list[str]:
    """By class, of what `predict` answers on the split of the runs that predict."""
    test = graph.splits[_split(result)].test
    P = result.part(result.predicting()).predict_proba(graph, device)[test]
    y, guess = graph.labels[test], result.decide(P)
    counts, names = result.target.counts(y, guess), result.target.names
    order = np.argsort(np.where(counts.support > 0, counts.recall, np.inf), kind="stable")
    few = f", the {MOST_CLASSES} that are found least often" if graph.k > MOST_CLASSES else ""
    found, right = counts.recall, counts.precision
    rows = [
        (plain(names[j]), f"{counts.support[j]:.0f}", percent(found[j]), percent(right[j]))
        for j in sorted(order[:MOST_CLASSES])
    ]
    mistakes = []
    if result.target.exclusive:
        C = confusion(y, guess, graph.k).astype(np.int64)
        mistakes = [
            f"- True class {plain(names[i])}, labelled {plain(names[j])}: {nodes} nodes."
            for i, j, nodes in frequent_confusions(C, MOST_CONFUSIONS)
        ]
    error, rarest = result.target.calibration_error(P, y), int(counts.support.argmin())
    mean, share = P[:, rarest].mean(), counts.support[rarest] / len(y)
    return [
        "## How it errs",
        "",
        f"On the {test.sum():,} test nodes of split {_split(result)}{few}:",
        "",
        markdown_table(("class", "nodes", "found", "right if predicted"), rows).rstrip(),
        "",
        *mistakes,
        f"- Expected calibration error there (15 bins): {error:.3f}.",
        f"- Of the rarest, {plain(names[rarest])}, the mean probability is {percent(mean)} %, and "
        f"{percent(share)} % of the nodes are of it.",
    ]


def _trust(result: Result) -> list[str]:
    T, graph, few = result.runs[result.best].temperature, result.trained_on, ""
    if T is None:
        words = "They are not calibrated: no temperature was looked for on validation nodes."
    else:
        words = f"Scores are divided by a temperature first, in the best run {T:.3g}."
        if result.runs[result.best].weights is not None:
            words += " What the training weighed the classes by is undone in probabilities alone."
        if graph is not None:
            nodes = int(graph.splits[_split(result)].val.sum())
            words += f" It was found on {nodes:,} validation nodes."
        few = few_validation_nodes(result)
    return ["## How far to trust its probabilities", "", words, *(["", few] if few else [])]


def _made(result: Result) -> list[str]:
    made = result.made or {}
    seeds = ", ".join(str(run.seed) for run in result.runs[:MOST_CLASSES])
    more = ", …" if len(result.runs) > MOST_CLASSES else ""
    facts = {
        "command": made.get("command"),
        "git state": made.get("git"),
        "graph": f"{result.origin.source or 'made in Python'} ({result.origin.fingerprint})",
        "seeds": seeds + more,
        "device": result.device,
        **{f"version of {name}": one for name, one in made.get("versions", {}).items()},
        **{name: json_value(one) for name, one in sorted(in_force(result.plan.settings).items())},
    }
    rows = [(plain(name), plain(one)) for name, one in facts.items() if one is not None]
    return ["## How it was made", "", markdown_table(("what", "value"), rows).rstrip()]
