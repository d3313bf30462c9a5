"""GML files, whose other cases are in test_graphml.py."""

import pytest

from gcnii.data import load
from gcnii.errors import DataError

FOOTBALL = """Creator "Mark Newman"
# a comment
graph
[
  directed 0
  node [ id 7 label "Brigham &amp; Young" value 1 size 2.5e1 ]
  node [ id 3 label "Iowa" value 1 size -.5 graphics [ x 1 y 2 ] ]
  node [ id 9 label "Utah" value 2 size 4. ]
  node [ id 1 label "Ohio" value 1 ]
  edge [ source 7 target 9 ]
  edge [ source 3 target 7 ]
]
"""


@pytest.fixture
def write(tmp_path):
    """`write(text)` → the file."""

    def file(text):
        path = tmp_path / "football.gml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return file


@pytest.mark.filterwarnings("ignore:the attributes graphics hold records:UserWarning")
def test_nodes_are_called_by_their_labels_if_all_differ(write):
    graph = load(write(FOOTBALL), label="value")
    assert graph.nodes == ("Brigham & Young", "Iowa", "Utah", "Ohio")
    assert (graph.classes, graph.y.tolist()) == (("1", "2"), [0, 0, 1, 0])
    assert graph.features == ("size", "size (missing)")
    assert graph.X[:, 0].tolist() == [25, -0.5, 4, 4]
    assert graph.edges.T.tolist() == [[0, 1], [0, 2]]


@pytest.mark.filterwarnings("ignore:the attributes graphics hold records:UserWarning")
def test_labels_that_repeat_are_classes_and_nodes_are_called_by_their_ids(write):
    text = FOOTBALL.replace('"Utah"', '"Iowa"').replace('"Ohio"', '"Iowa"')
    graph = load(write(text))
    assert graph.nodes == ("7", "3", "9", "1")
    assert graph.classes == ("Brigham & Young", "Iowa")


def test_nested_attributes_are_named_as_not_used(write):
    with pytest.warns(UserWarning, match="the attributes graphics hold records and are not used"):
        assert load(write(FOOTBALL), label="value").features == ("size", "size (missing)")


@pytest.mark.filterwarnings("ignore:the attributes graphics hold records:UserWarning")
def test_an_attribute_given_twice_is_refused_unless_it_is_left_out(write):
    path = write(FOOTBALL.replace('"Iowa"', '"Iowa" tag 1 tag 2'))
    with pytest.raises(DataError, match=r"'tag' holds values of type list.*--drop tag"):
        load(path, label="value")
    assert load(path, label="value", drop=["tag"]).features == ("size", "size (missing)")
    weighted = FOOTBALL.replace("target 7", "target 7 weight 1")
    path = write(weighted.replace("target 9", "target 9 weight 1 weight 2"))
    with pytest.raises(DataError, match=r"weight of the edge from .* is \[1, 2\]; it must be a"):
        load(path, label="value")
    path = write(FOOTBALL.replace("value 2", "value 2 value 1"))
    with pytest.raises(DataError, match="'value' holds values of type list"):
        load(path, label="value")


def test_a_directed_graph_says_so(write):
    text = FOOTBALL.replace("directed 0", "directed 1").replace("graphics [ x 1 y 2 ]", "")
    assert load(write(text), label="value").edges.T.tolist() == [[0, 2], [1, 0]]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "must hold one graph, but this one holds 0"),
        (FOOTBALL + FOOTBALL, "this one holds 2"),
        ("graph [ ]", "no nodes"),
        (FOOTBALL[:-3], "ends inside a record"),
        (FOOTBALL + "]", r"line 13 is not GML: '\]' cannot stand there"),
        ("graph [ node 3 ", "ends inside a record"),
        ("graph [ node [ id id ] ]", "line 1 is not GML: 'id' cannot stand there"),
        ('graph [ node [ id "a" ] ]', "node 0 must have a whole number as its id, got 'a'"),
        ("graph [ node [ x 1 ] ]", "node 0 must have a whole number as its id, got None"),
        ("graph [ node [ id 1 ] node [ id 1 ] ]", "node 1 has the id of another"),
        ("graph [ node [ id 1 ] edge [ source 1 ] ]", "edge 0 .* target, got None"),
        ("graph [ node [ id 1 ] edge [ source 1 target -4 ] ]", "names the node -4"),
        ("graph [ node [ id {} ] ]", r"line 1 is not GML: '\{\} \] \]'"),
        ('graph [ node [ id 1 label "open ] ]', "is not GML"),
        ('graph [ directed "1" node [ id 1 ] ]', "directed must be 0 or 1, .*got '1'"),
        ("graph [ directed 2 node [ id 1 ] ]", "directed must be 0 or 1, .*got 2"),
        ("graph [ directed 1 directed 0 node [ id 1 ] ]", "graph has the key directed 2 times"),
        ("graph [ node [ id 1 id 2 ] ]", "node 0 has the key id 2 times; keep one"),
        ('graph [ node [ id 1 label "a" label "b" ] ]', "node 0 has the key label 2 times"),
        ("graph [ node [ id 1 label [ x 1 ] ] ]", "one number or text as its label, got a record"),
        (f"graph [ node [ id {'[ a ' * 9999} 1 {']' * 9999} ] ]", "as its id, got a record"),
        (
            "graph [ node [ id 1 ] edge [ source 1 target 1 source 1 ] ]",
            "edge 0 has the key source 2 times",
        ),
        (b"graph [ \xff\xfe ]", "is not UTF-8 text"),
        (f"graph [ node [ id {'9' * 9999} ] ]", "digits"),
        ("[" * 100_000, "cannot stand there"),
        ("a [ " * 100_000, "ends inside a record"),
    ],
)
def test_a_broken_file_is_one_sentence(write, text, sentence):
    with pytest.raises(DataError, match=rf"^football\.gml.*{sentence}"):
        load(write(text), label="value")


def test_a_weight_in_quotes_is_a_number_as_tables_write_it(write):
    text = FOOTBALL.replace("target 9", 'target 9 weight "{}"').replace(
        "target 7", 'target 7 weight "2"'
    )
    text = text.replace("graphics [ x 1 y 2 ]", "")
    assert load(write(text.format("1.5")), label="value").weights.tolist() == [2, 1.5]
    with pytest.raises(DataError, match=r"weight of the edge from .* is '1_000'"):
        load(write(text.format("1_000")), label="value")
