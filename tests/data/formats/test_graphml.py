"""GraphML files: what the file says is what the graph has."""

import itertools

import networkx as nx
import numpy as np
import pytest

import gcnii
from gcnii.data import load
from gcnii.errors import DataError, InputError

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="node" attr.name="age" attr.type="int"/>
<key id="d1" for="node" attr.name="good" attr.type="boolean"/>
<key id="d2" for="node" attr.name="kind" attr.type="string"><default>cat</default></key>
<key id="d3" for="edge" attr.name="weight" attr.type="double"><default>1</default></key>
<key id="d4" for="node" attr.name="id" attr.type="string"/>
<key id="d5" for="node" attr.name="shape"/>
"""
NODES = """
<node id="a"><data key="d0">3</data><data key="d1">true</data></node>
<node id="b"><data key="d1">false</data><data key="d2">dog</data></node>
<node id="c"><data key="d0">5</data></node>
<node id="d"><data key="d0">7</data><data key="d2"></data></node>
<node id="e"><data key="d0">8</data><data key="d1">1</data></node>
"""
EDGES = """
<edge source="a" target="b"><data key="d3">2.5</data></edge>
<edge id="e1" source="b" target="c"/>
"""


@pytest.fixture
def write(tmp_path):
    """`write(text)` → the file."""

    def file(nodes=NODES, edges=EDGES, head=HEAD, kind="undirected"):
        graph = f'<graph edgedefault="{kind}">{nodes}{edges}</graph></graphml>'
        path = tmp_path / "pets.graphml"
        path.write_text(head + graph)
        return path

    return file


def test_attributes_keep_their_types_and_have_their_defaults(write):
    graph = load(write(), label="kind")
    assert (graph.name, graph.nodes, graph.directed) == ("pets", tuple("abcde"), False)
    assert graph.classes == ("cat", "dog")
    assert graph.y.tolist() == [0, 1, 0, -1, 0]  # c has the default; d has an empty text
    assert graph.features == ("age", "age (missing)", "good", "good (missing)")
    # a truth value that is missing is neither true nor false
    assert graph.X[:, 3].tolist() == [0, 0, 1, 1, 0]
    assert graph.edges.T.tolist() == [[0, 1], [1, 2]]
    assert graph.weights.tolist() == [2.5, 1]


def test_the_file_says_whether_edges_are_one_way(write):
    path = write(kind="directed")
    assert load(path, label="kind").directed
    assert load(path, label="kind", directed=True).directed
    with pytest.raises(InputError, match="says that its edges are directed"):
        load(path, label="kind", directed=False)
    with pytest.raises(InputError, match="has nodes and edges, not columns; leave out id"):
        load(path, id="name")


def test_an_attribute_called_id_does_not_hide_the_ids(write):
    nodes = NODES.replace('<node id="a">', '<node id="a"><data key="d4">x</data>')
    nodes = nodes.replace('<node id="b">', '<node id="b"><data key="d4">x</data>')
    graph = load(write(nodes), label="kind")
    assert graph.nodes == tuple("abcde")
    assert "id=x" in graph.features


def test_markup_in_an_attribute_is_named_as_not_used(write):
    nodes = NODES.replace(
        '<node id="a">', '<node id="a"><data key="d5"><y:Box xmlns:y="yed"><node/></y:Box></data>'
    )
    with pytest.warns(UserWarning, match="the attributes shape hold markup and are not used"):
        assert load(write(nodes), label="kind").n == 5


def clubs():
    """A graph with numbers, texts, truth values, missing ones, weights and odd names."""
    G = nx.Graph()
    for i in range(12):
        G.add_node(f"node & {i}", age=i * 1.5, count=i % 5, tall=i % 3 == 0, club="xyz"[i % 3])
        if i % 4:
            G.nodes[f"node & {i}"]["town"] = ("Ulm", "Köln")[i % 2]
    for u, v in itertools.pairwise(G.nodes):
        G.add_edge(u, v, weight=float(len(u) + len(v) - 15))
    return G


@pytest.mark.parametrize("suffix", ["graphml", "gml"])
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_a_file_of_networkx_is_the_graph_that_from_networkx_makes(tmp_path, suffix, kind):
    G, path = kind(clubs()), tmp_path / f"clubs.{suffix}"
    getattr(nx, f"write_{suffix}")(G, path)
    there, here = load(path, label="club"), gcnii.from_networkx(G, label="club")
    assert there.fingerprint == here.fingerprint
    assert (there.nodes, there.classes, there.features) == (here.nodes, here.classes, here.features)


@pytest.mark.parametrize("suffix", ["graphml", "gml"])
def test_a_file_of_igraph_is_read_as_igraph_reads_it(tmp_path, suffix):
    igraph = pytest.importorskip("igraph")
    G = clubs()
    for node in G:
        G.nodes[node].setdefault("town", "Bonn")  # igraph has no missing texts
    theirs, path = igraph.Graph.from_networkx(G), tmp_path / f"clubs.{suffix}"
    theirs.vs["label"] = theirs.vs["_nx_name"]
    del theirs.vs["_nx_name"], theirs.vs["tall"]
    getattr(theirs, f"write_{suffix}")(str(path))
    again = igraph.Graph.Read(str(path))
    graph = load(path, label="club", drop=["label"] if suffix == "graphml" else [])
    assert graph.edges.T.tolist() == [sorted(edge) for edge in again.get_edgelist()]
    assert graph.weights.tolist() == again.es["weight"]
    assert [graph.classes[c] for c in graph.y] == again.vs["club"]
    column = graph.features.index("age")
    assert graph.X[:, column].tolist() == again.vs["age"]


def test_options_give_other_names(write, tmp_path):
    G = clubs()
    for i, node in enumerate(G):
        G.nodes[node]["role"] = ("train", "val", "test")[i % 3]
    nx.write_graphml(G, tmp_path / "c.graphml")
    graph = load(tmp_path / "c.graphml", label="club", split="role", categorical=["count"])
    assert graph.splits[0].val.sum() == 4
    assert "count=3" in graph.features
    with pytest.raises(DataError, match="no column 'clubb' to take labels from"):
        load(tmp_path / "c.graphml", label="clubb")


LAUGHS = """<?xml version="1.0"?>
<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>
<graphml><graph><node id="&b;"/></graph></graphml>
"""
EXTERNAL = """<!DOCTYPE g SYSTEM "file:///etc/passwd"><graphml><graph/></graphml>"""


@pytest.mark.parametrize("text", [LAUGHS, EXTERNAL])
def test_a_document_type_is_refused_before_its_entities_expand(tmp_path, text):
    (tmp_path / "bomb.graphml").write_text(text)
    with pytest.raises(DataError, match=r"line \d of bomb\.graphml: a document type is not read"):
        load(tmp_path / "bomb.graphml")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"nodes": ""}, "edge 0 of pets.graphml names 'a', which is no node|has no nodes"),
        ({"edges": '<edge source="a" target="z"/>'}, "edge 0 .* names 'z', which is no node"),
        ({"edges": '<edge source="a"/>'}, "line .* <edge> has no target"),
        ({"nodes": NODES + '<node id="a"/>'}, r"line 15 .* 'a' is there twice"),
        ({"nodes": NODES.replace(">3<", ">three<")}, "age is 'three', which is not of type int"),
        ({"nodes": NODES.replace("true", "maybe")}, "good is 'maybe'"),
        ({"nodes": '<node id="a"><data key="d9">1</data></node>'}, "'d9', which is not declared"),
        ({"edges": "<hyperedge/>"}, "hyperedges are not read"),
        ({"edges": "<graph/>"}, "a second graph begins"),
        ({"edges": '<edge source="a" target="b" directed="true"/>'}, "some edges are one-way"),
        ({"edges": '<edge source="a" target="b" directed="so"/>'}, "true or false, got 'so'"),
        ({"kind": "Directed"}, "edgedefault must be directed or undirected, got 'Directed'"),
        ({"kind": ""}, "edgedefault must be directed or undirected, got ''"),
        ({"head": HEAD + '<key id="d0" attr.name="x"/>'}, "the key 'd0' is declared twice"),
        ({"head": HEAD + '<key id="d9" attr.name="age"/>'}, "declares 2 keys called 'age'"),
        (
            {"head": HEAD.replace("<default>cat</default>", "<default>a</default>" * 2)},
            "the key 'kind' has two defaults",
        ),
        (
            {
                "nodes": NODES.replace(
                    '<data key="d1">true', '<data key="d0">4</data><data key="d1">1'
                )
            },
            "line 10 .* this node has two attributes 'age'",
        ),
        (
            {"edges": EDGES.replace("</edge>", '<data key="d3">3</data></edge>')},
            "this edge has two",
        ),
        ({"nodes": NODES.replace(">3<", ">1_000<")}, "age is '1_000', which is not of type int"),
        ({"nodes": NODES.replace(">3<", ">\u0663<")}, "age is '\u0663', which is not of type int"),
        ({"edges": EDGES.replace("2.5", "2_5")}, "weight is '2_5', which is not of type double"),
        ({"edges": EDGES.replace("2.5", "\u0662")}, "weight is .*, which is not of type double"),
        ({"edges": EDGES.replace("2.5", "-1")}, "weight -1"),
        ({"edges": EDGES.replace("2.5", "nan")}, "weight nan"),
        ({"edges": "<edge"}, r"pets\.graphml is not a complete XML document"),
        ({"head": ""}, "the key .d0., which is not declared"),
        ({"head": "\x00\xff"}, "not a complete XML document"),
        ({"head": HEAD.replace("UTF-8", "klingon")}, "not a complete XML document"),
        ({"nodes": NODES.replace(">3<", ">1e999<").replace('"int"', '"double"')}, "age"),
    ],
)
def test_a_broken_file_is_one_sentence(write, change, sentence):
    with pytest.raises(InputError, match=sentence):
        load(write(**change), label="kind")


def test_a_file_cut_anywhere_is_one_sentence(write):
    path = write()
    whole = path.read_bytes()
    for length in range(0, len(whole) - 1, 97):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError):
            load(path, label="kind")


def test_features_of_another_file_are_encoded_as_in_training(write):
    graph = load(write(), label="kind")
    other = load(write(NODES.replace(">3<", ">9<")), label="kind", columns=graph.columns)
    assert other.features == graph.features
    assert np.isclose(other.X[0, 0], 9)


def test_an_undirected_edge_given_both_ways_is_one_edge_as_in_a_table(write):
    both = '<edge source="a" target="b"/><edge source="b" target="a"/>'
    head = HEAD.replace("<default>1</default>", "")
    graph = load(write(edges=both, head=head), label="kind")
    assert (graph.edges.tolist(), graph.weights) == ([[0], [1]], None)
    graph = load(write(edges=both, head=head), label="kind", duplicates="add")
    assert graph.weights.tolist() == [2]


def test_an_undirected_edge_with_two_weights_is_refused_until_it_is_said_what_they_become(write):
    there, here = (f"<data key='d3'>{weight}</data></edge>" for weight in (5, 7))
    path = write(edges=f'<edge source="a" target="b">{there}<edge source="b" target="a">{here}')
    with pytest.raises(DataError, match=r"weight 5 in one direction and 7 .*--duplicates"):
        load(path, label="kind")
    assert load(path, label="kind", duplicates="mean").weights.tolist() == [6]


@pytest.mark.parametrize("suffix", ["graphml", "gml"])
def test_files_of_one_graph_in_another_order_have_the_same_features(tmp_path, suffix):
    G, path = clubs(), tmp_path / f"clubs.{suffix}"
    H = nx.Graph()
    for node in reversed(list(G)):
        H.add_node(node, **dict(reversed(G.nodes[node].items())))
    H.add_edges_from(G.edges(data=True))
    features = []
    for one in (G, H):
        getattr(nx, f"write_{suffix}")(one, path)
        features.append(load(path, label="club").features)
    assert features[0] == features[1] == gcnii.from_networkx(H, label="club").features
