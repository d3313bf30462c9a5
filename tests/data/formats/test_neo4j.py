"""Folders of CSV files for Neo4j."""

import pytest

from gcnii.data import load
from gcnii.errors import DataError, InputError

PEOPLE = """personId:ID(Person),name:string,age:int,zip:string,born:date,tags:string[],:LABEL
1,Ann,31,00123,1990-01-31,a;b,Person
2,"Bob, jr",,00123,1985-12-01,,Person
3,Cat,44,99999,2001-05-17,c,Robot
4,Dan,27,00123,1999-09-09,,Robot
5,Eve,27,99999,1999-09-09,,Person
6,Fay,60,99999,1970-01-01,,Robot
"""
KNOWS = """:START_ID(Person),since:int,weight:double,:END_ID(Person),:TYPE
1,1999,2.5,2,KNOWS
3,2001,1,1,KNOWS
5,2001,4,6,KNOWS
"""
PLAIN = ":START_ID,:END_ID\n1,2\n"
LEFT_OUT = [
    "ignore:nodes. left out of the features:UserWarning",
    "ignore:edges. the columns? since:UserWarning",
]
pytestmark = [pytest.mark.filterwarnings(one) for one in LEFT_OUT]


@pytest.fixture
def write(tmp_path):
    """`write(name=text)` → the folder with name.csv."""

    def files(**texts):
        folder = tmp_path / "people"
        folder.mkdir(exist_ok=True)
        for name, text in texts.items():
            content = text if isinstance(text, bytes) else text.encode()
            (folder / f"{name}.csv").write_bytes(content)
        return folder

    return files


def test_typed_headers_are_a_graph(write):
    graph = load(write(nodes=PEOPLE, relationships=KNOWS))
    assert (graph.name, graph.n, graph.directed) == ("people", 6, False)
    assert graph.nodes == tuple("123456")
    assert (graph.classes, graph.y.tolist()) == (("Person", "Robot"), [0, 0, 1, 1, 0, 1])
    assert graph.features == ("age", "age (missing)", "zip=00123", "zip=99999", "born")
    assert graph.X[0, 0] == 31
    assert graph.edges.T.tolist() == [[0, 1], [0, 2], [4, 5]]
    assert graph.weights.tolist() == [2.5, 1, 4]


def test_a_property_can_be_the_label(write):
    graph = load(write(nodes=PEOPLE, relationships=KNOWS), label="zip")
    assert graph.classes == ("00123", "99999")
    assert {":LABEL=Person", ":LABEL=Robot"} <= set(graph.features)


def test_a_property_can_be_a_number_to_predict_or_a_time(write):
    folder = write(nodes=PEOPLE.replace(",,00123", ",26,00123"), relationships=KNOWS)
    graph = load(folder, target="Age")
    assert graph.targets == ("age",)
    assert {"zip=00123", "born", ":LABEL=Person"} < set(graph.features)
    assert "age" not in graph.features
    assert graph.y[:2, 0].tolist() == [31, 26]
    with pytest.warns(UserWarning, match="people is divided by 'born': train up to 1990-01-31"):
        graph = load(folder, time="born")
    assert "born" not in graph.features
    assert graph.dated


def test_relationships_are_one_way_if_asked(write):
    graph = load(write(nodes=PEOPLE, relationships=KNOWS), directed=True)
    assert graph.edges.T.tolist() == [[0, 1], [2, 0], [4, 5]]


def test_what_is_not_used_is_named(write):
    folder = write(nodes=PEOPLE, relationships=KNOWS)
    with pytest.warns(UserWarning, match="not used|left out") as warned:
        load(folder)
    texts = [str(warning.message) for warning in warned]
    assert texts[0] == "nodes: left out of the features: tags:string[]"
    assert any("the column since is not used" in text for text in texts)


def test_several_files_are_one_graph_and_groups_keep_ids_apart(write):
    cities = "id:ID(City),size:double,:LABEL\n1,3.5,City\n2,4.5,City\n3,8,City\n"
    lives = ":START_ID(Person),:END_ID(City),:TYPE\n1,1,LIVES\n2,2,LIVES\n"
    text = PEOPLE.replace("Robot", "Person")
    with pytest.warns(UserWarning, match=":TYPE makes 2 types of edges: KNOWS 3, LIVES 2"):
        graph = load(write(a=text, b=cities, c=KNOWS.replace("weight", "heavy"), d=lives))
    assert graph.n == 9
    assert graph.nodes[:2] == ("Person/1", "Person/2")
    assert graph.nodes[6:] == ("City/1", "City/2", "City/3")
    assert [0, 6] in graph.edges.T.tolist()
    assert graph.classes == ("City", "Person")


def test_ids_need_no_group_and_columns_can_be_ignored(write):
    nodes = ":ID,size:float,x:IGNORE,y:IGNORE,:LABEL\n" + "".join(
        f"{i},{i / 2},?,?,{'ab'[i % 2]}\n" for i in range(6)
    )
    assert load(write(n=nodes, e=PLAIN)).features == ("size",)


def test_a_folder_without_an_id_column_is_an_ordinary_folder(write):
    folder = write(nodes="id,x,label\n1,2,a\n", edges="source,target\n1,1\n")
    with pytest.raises(DataError, match="fewer than 3 labelled nodes"):
        load(folder)


def test_headers_that_cannot_be_read_are_left_to_the_ordinary_reader(write):
    folder = write(nodes=b'"' + b"x" * 200_000, edges="source,target\n")
    (folder / "more.csv").mkdir()
    with pytest.raises(DataError, match=r"nodes\.csv"):
        load(folder)


def test_several_labels_must_be_asked_for(write):
    text = PEOPLE.replace(",Robot", ",Person;Robot")
    folder = write(nodes=text, relationships=KNOWS)
    with pytest.raises(DataError, match="has the labels Person;Robot; say multilabel=True"):
        load(folder)
    graph = load(folder, multilabel=True)
    assert graph.y[:3].tolist() == [[1, 0], [1, 0], [1, 1]]


def test_one_label_for_all_is_doubtful(write):
    folder = write(nodes=PEOPLE.replace("Robot", "Person"), relationships=KNOWS)
    with pytest.warns(UserWarning, match="all nodes have the label Person; name the property"):
        load(folder)


@pytest.mark.parametrize(
    ("nodes", "links", "sentence"),
    [
        (
            PEOPLE,
            ":START_ID,:TYPE\n1,KNOWS\n",
            "no CSV file with the columns :START_ID and :END_ID",
        ),
        (PEOPLE, PLAIN.replace("2\n", "77\n"), "names the node '77', which the nodes do not have"),
        (PEOPLE, PLAIN + "1\n", "row 3 of e.csv has 1 cells, but the header has 2"),
        (PEOPLE, PLAIN + '"1,2\n', r"e\.csv is not CSV in UTF-8 after row \d"),
        (PEOPLE.replace("31", "old"), PLAIN, "the feature 'age' is 'old'"),
        (PEOPLE.replace("1990-01-31", "soon"), PLAIN, "the date 'born' is 'soon'"),
        (PEOPLE.replace("\n2,", "\n1,"), PLAIN, "repeats the id '1'"),
        (PEOPLE.replace("\n2,", "\n,"), PLAIN, "has no id"),
        (PEOPLE.replace("zip", "name"), PLAIN, "several columns called 'name'"),
        (PEOPLE.encode() + b"7,\xff,1,1,2001-01-01,,Robot\n", PLAIN, "not CSV in UTF-8"),
        (":ID,x:int\n", PLAIN, "no rows"),
        (PEOPLE, KNOWS.replace("2.5", "-2"), "the weight is '-2'"),
        (PEOPLE, KNOWS.replace("2.5", ""), "the weight is empty"),
    ],
)
def test_a_wrong_file_is_one_sentence(write, nodes, links, sentence):
    with pytest.raises(InputError, match=sentence):
        load(write(n=nodes, e=links))


def test_a_property_has_one_type(write):
    other = "id:ID(Person),age:string,:LABEL\n9,old,Robot\n"
    with pytest.raises(DataError, match=r"'age' is of type string in o\.csv and of type int"):
        load(write(n=PEOPLE, o=other, e=KNOWS))
    with pytest.raises(InputError, match="id is written in the headers"):
        load(write(n=PEOPLE, o=other, e=KNOWS), id="personId")
