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


@pytest.mark.filterwarnings("ignore:the attributes graphics hold several values:UserWarning")
def test_nodes_are_called_by_their_labels_if_all_differ(write):
    graph = load(write(FOOTBALL), label="value")
    assert graph.nodes == ("Brigham & Young", "Iowa", "Utah", "Ohio")
    assert (graph.classes, graph.y.tolist()) == (("1", "2"), [0, 0, 1, 0])
    assert graph.features == ("size", "size (missing)")
    assert graph.X[:, 0].tolist() == [25, -0.5, 4, 4]
    assert graph.edges.T.tolist() == [[0, 1], [0, 2]]


@pytest.mark.filterwarnings("ignore:the attributes graphics hold several values:UserWarning")
def test_labels_that_repeat_are_classes_and_nodes_are_called_by_their_ids(write):
    text = FOOTBALL.replace('"Utah"', '"Iowa"').replace('"Ohio"', '"Iowa"')
    graph = load(write(text))
    assert graph.nodes == ("7", "3", "9", "1")
    assert graph.classes == ("Brigham & Young", "Iowa")


def test_nested_and_repeated_attributes_are_named_as_not_used(write):
    text = FOOTBALL.replace('"Iowa"', '"Iowa" tag 1 tag 2')
    with pytest.warns(UserWarning, match="the attributes graphics, tag hold several values"):
        assert load(write(text), label="value").features == ("size", "size (missing)")


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
        (b"graph [ \xff\xfe ]", "is not UTF-8 text"),
        (f"graph [ node [ id {'9' * 9999} ] ]", "digits"),
        ("[" * 100_000, "cannot stand there"),
        ("a [ " * 100_000, "ends inside a record"),
    ],
)
def test_a_broken_file_is_one_sentence(write, text, sentence):
    with pytest.raises(DataError, match=rf"^football\.gml.*{sentence}"):
        load(write(text), label="value")
