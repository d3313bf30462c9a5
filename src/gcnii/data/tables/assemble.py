"""From a table of nodes and a table of edges to a Graph, with all that is wrong said at once."""

from __future__ import annotations

from gcnii.data.tables.ids import Ids
from gcnii.data.tables.links import NONE, each_once, read_links
from gcnii.data.tables.nodes import Nodes
from gcnii.data.tables.rows import Rows
from gcnii.errors import DataError
from gcnii.graph import Graph
from gcnii.graph.arrays import freeze


def assemble(nodes: Nodes, edges: Rows, name: str) -> Graph:
    """The graph of two tables; DataError with all problems if there is any."""
    reading, problems = nodes.reading, nodes.problems
    nodes.note_wrong_names(edges.header)
    texts, labels = nodes.ids(), nodes.labels()
    # Before the features are read: both together would be the most memory that is needed.
    links = NONE
    if texts is not None:
        links = read_links(edges, Ids(texts), reading, problems)
        try:
            links = each_once(links, reading, texts.tolist())
        except DataError as error:
            problems.add(str(error))
    table, columns = nodes.features()
    splits = nodes.splits(labels)
    problems.refuse()
    nodes.say_what_is_ignored(columns)
    X, features = columns.encode(table, nodes.rows.name)
    graph = Graph(
        X=freeze(X),
        features=features,
        edges=links.edges,
        weights=links.weights,
        y=labels.y,
        splits=splits,
        directed=reading.directed,
        name=name,
        nodes=tuple(() if texts is None else texts),
        classes=labels.classes,
    )
    return graph._with_table(columns.sharing(table, graph.X), columns)
