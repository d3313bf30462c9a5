"""What is asked: a node by its name, and the class whose score is to be explained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from gcnii.errors import GraphError, InputError, some_of
from gcnii.graph import Graph

MOST_COMPARED = 200_000  # names that are searched for close ones, in about a second


@dataclass(frozen=True)
class Question:
    """The score of `node` for the class `label`, less that for the class `against`, if any."""

    node: int
    label: int
    against: int | None = None


def find_node(graph: Graph, node: str | int | None) -> int:
    """The row of a node by its name, or by its number if the graph has no names."""
    if node is None:
        raise InputError("which node is to be explained? give its name: node=")
    if graph.nodes is None:
        return _numbered(graph, str(node))
    rows = [i for i, name in enumerate(graph.nodes) if name == str(node)]
    if len(rows) > 1:
        raise GraphError(f"{len(rows)} nodes of {graph.name} are called {str(node)!r}; rename them")
    if not rows:
        raise InputError(
            f"{graph.name} has no node {str(node)!r}; {_close(str(node), graph.nodes)}"
        )
    return rows[0]


def _numbered(graph: Graph, word: str) -> int:
    if not (word.isdecimal() and word.isascii() and len(word) <= 18 and int(word) < graph.n):
        raise InputError(
            f"the nodes of {graph.name} have no names; give a number from 0 to {graph.n - 1}, "
            f"got {word!r}"
        )
    return int(word)


def find_class(classes: Sequence[str], name: str) -> int:
    """The number of a class by its name."""
    if name not in classes:
        raise InputError(f"there is no class {name!r}; {_close(name, classes)}")
    return list(classes).index(name)


def _close(word: str, names: Sequence[str]) -> str:
    """The names that are closest to this one, else some of all."""
    close = get_close_matches(word, names, 3) if len(names) <= MOST_COMPARED else []
    return f"the closest are {some_of(close)}" if close else f"there are {some_of(names)}"
