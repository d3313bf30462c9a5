"""A graph of your own: two CSV files in a folder."""

import numpy as np
import pytest
import scipy.sparse as sp

from gcnii.data import load
from gcnii.errors import DataError, InputError

NODES = """id,size,weight,label,split
ann,1,0.5,cat,train
bob,2,-1e3,dog,val
cat,3,0,,
dan,4,7,cat,test
"""
EDGES = "source,target\nann,bob\nbob,ann\ncat,cat\ncat,dan\n"


@pytest.fixture
def write(tmp_path):
    """`write(nodes, edges)` → the folder."""
    folder = tmp_path / "pets"
    folder.mkdir()

    def files(nodes=NODES, edges=EDGES):
        for name, content in (("nodes.csv", nodes), ("edges.csv", edges)):
            if content is not None:
                (folder / name).write_bytes(
                    content if isinstance(content, bytes) else content.encode()
                )
        return folder

    return files


def labelled(*counts):
    """nodes.csv with that many nodes of class 0, 1, …"""
    labels = [c for c, count in enumerate(counts) for _ in range(count)]
    return "id,x,label\n" + "".join(f"{i},{i},{label}\n" for i, label in enumerate(labels))


def test_a_folder_is_a_graph(write):
    graph = load(write())
    assert (graph.name, graph.n, graph.d, graph.m, graph.directed) == ("pets", 4, 2, 2, False)
    assert graph.X.tolist() == [[1, 0.5], [2, -1000], [3, 0], [4, 7]]
    assert graph.X.dtype == np.float32
    assert graph.y.tolist() == [0, 1, -1, 0]
    assert (graph.nodes, graph.classes) == (("ann", "bob", "cat", "dan"), ("cat", "dog"))


def test_the_split_column_is_the_split(write):
    (split,) = load(write()).splits
    assert [np.flatnonzero(mask).tolist() for mask in (split.train, split.val, split.test)] == [
        [0],
        [1],
        [3],
    ]


@pytest.mark.parametrize("word", ["val", "valid", "Validation", " VAL "])
def test_validation_has_several_names(write, word):
    assert load(write(NODES.replace("val", word))).splits[0].val.sum() == 1


def test_edges_are_merged_and_self_loops_kept(write):
    assert load(write()).edges.T.tolist() == [[0, 1], [2, 2], [2, 3]]
    assert load(write(), directed=True).edges.T.tolist() == [[0, 1], [1, 0], [2, 2], [2, 3]]


def test_columns_are_found_by_name_in_any_order_and_case(write):
    nodes = "Split,x,LABEL,Id\ntrain,1,a,0\nval,2,b,1\n"
    graph = load(write(nodes, "weight,Target,Source\n9,0,1\n"), directed=True)
    assert (graph.X.tolist(), graph.edges.tolist()) == ([[1], [2]], [[1], [0]])
    assert graph.weights.tolist() == [9]


@pytest.mark.parametrize("header", ["from,to", "Src,Dst", "u,v", "buyer,seller"])
def test_edge_columns_have_one_of_the_usual_names_or_are_the_only_two(write, header):
    assert load(write(edges=f"{header}\nann,dan\n")).edges.tolist() == [[0], [3]]


def test_other_columns_of_edges_are_named_as_unused(write):
    with pytest.warns(UserWarning, match="the columns since, kind are not used"):
        assert load(write(edges="since,from,to,kind\n1999,ann,dan,b\n")).m == 1


@pytest.mark.parametrize("word", ["NaN", "nan", "null", "NULL"])
def test_labels_that_pandas_writes_for_missing_ones_are_unknown(write, word):
    nodes = f"id,x,label,split\na,1,c,train\nb,1,d,val\ne,1,{word},\n"
    with pytest.warns(UserWarning, match="^1 label NaN or null is taken as unknown$"):
        graph = load(write(nodes, "source,target\n"))
    assert (graph.classes, graph.y.tolist()) == (("c", "d"), [0, 1, -1])


def test_labels_that_may_mean_unknown_stay_classes_with_a_warning(write):
    nodes = "id,x,label,split\na,1,c,train\nb,1,d,val\ne,1,NA,train\n"
    with pytest.warns(UserWarning, match=r"1 node has the label 'NA', .* say --unknown NA"):
        assert load(write(nodes, "source,target\n")).classes == ("NA", "c", "d")
    assert load(write(nodes.replace("NA,train", "NA,"), "source,target\n"), unknown="NA").k == 2


def test_numbers_to_predict_are_not_taken_for_classes(write):
    rows = "".join(f"n{i},1,{i / 7:.3f}\n" for i in range(60))
    with pytest.raises(DataError, match=r"are 60 different numbers, such as .*group the numbers"):
        load(write(f"id,x,label\n{rows}", "source,target\n"))


def test_a_graph_may_have_no_edges(write):
    assert load(write(edges="source,target\n")).m == 0


def test_a_graph_may_have_no_labels(write):
    graph = load(write("id,x\nann,1\nbob,2\n", "source,target\n"))
    assert (graph.y.tolist(), graph.splits, graph.classes) == ([-1, -1], (), None)


def test_byte_order_marks_blank_lines_and_quotes_are_understood(write):
    nodes = '\ufeffid,x,label,split\r\n"a, b",1,"say ""hi""",train\r\n\r\nc , 2 ,no,val\r\n,,,\r\n'
    graph = load(write(nodes, 'source,target\r\n c,"a, b"\r\n'))
    assert (graph.nodes, graph.classes, graph.m) == (("a, b", "c"), ("no", 'say "hi"'), 1)


def test_number_labels_are_sorted_as_numbers(write):
    nodes = "id,x,label\n" + "".join(
        f"{i},0,{label}\n" for i, label in enumerate(("10", "9", "-1.5") * 3)
    )
    assert load(write(nodes, "source,target\n")).classes == ("-1.5", "9", "10")


def test_mostly_empty_wide_features_become_sparse(write):
    wide = np.zeros((4, 120))
    wide[:, 7] = 3
    header = "id," + ",".join(f"f{j}" for j in range(120))
    nodes = (
        header
        + "\n"
        + "".join(f"{i},{','.join(map(str, row))}\n" for i, row in enumerate(wide.tolist()))
    )
    X = load(write(nodes, "source,target\n")).X
    assert isinstance(X, sp.csr_array)
    assert (X.toarray() == wide).all()


@pytest.mark.parametrize(
    ("count", "roles"),
    [
        (1, (1, 0, 0)),
        (2, (1, 0, 1)),
        (3, (2, 1, 0)),
        (4, (2, 1, 1)),
        (10, (6, 2, 2)),
        (101, (61, 20, 20)),
    ],
)
def test_without_a_split_column_each_class_is_split_60_20_20(write, count, roles):
    graph = load(write(labelled(10, count), "source,target\n"))
    (split,) = graph.splits
    assert (
        tuple(int(mask[graph.y == 1].sum()) for mask in (split.train, split.val, split.test))
        == roles
    )


def test_the_drawn_split_depends_on_the_seed(write):
    folder = write(labelled(50, 50), "source,target\n")
    assert (
        load(folder).fingerprint
        == load(folder, seed=0).fingerprint
        != load(folder, seed=1).fingerprint
    )


def test_a_large_file_is_read_whole(write):
    random = np.random.default_rng(0)
    pairs = "\n".join(f"{u},{v}" for u, v in random.integers(0, 1000, (200_000, 2)).tolist())
    graph = load(write(labelled(500, 500), f"source,target\n{pairs}\n"))
    assert graph.m == len(
        {tuple(sorted(pair.split(","))) for pair in pairs.split() if len(set(pair.split(","))) == 2}
    )


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (None, r"pets has no nodes\.csv; a graph is a folder with nodes\.csv and edges\.csv"),
        ("", r"nodes\.csv is empty; begin it with a header"),
        ("\n\n", r"nodes\.csv is empty; begin it with a header"),
        ("id,x\n", r"nodes\.csv has a header but no rows; a graph needs at least one node"),
        ("name,x\na,1\n", r"nodes\.csv has no column 'id'; its columns are name, x"),
        (
            "id;x\na;1\n",
            r"nodes\.csv is separated by semicolons; save it with commas between its cells",
        ),
        ("id,ID,x\na,b,1\n", r"nodes\.csv has 2 columns called 'id'; keep one"),
        (
            "id,label\na,1\n",
            r"nodes\.csv has no feature columns beside id, label; a node needs at least one",
        ),
        ("id,x\na,1\n,2\n", r"row 3 of nodes\.csv has no id; give every node one"),
        (
            "id,x\na,1\n\nb,2\na,3\n",
            r"row 5 of nodes\.csv repeats the id 'a' of row 2 of nodes\.csv; ids must differ",
        ),
        ("id,x\na,1\nb,2,3\n", r"row 3 of nodes\.csv has 3 cells, but the header has 2"),
        ("id,x,y\na,1,2\nb,2\n", r"row 3 of nodes\.csv has 2 cells, but the header has 3"),
        (
            "id,x,y\na,1,2\nb,1,two\n",
            r"row 3 of nodes\.csv: the feature 'y' is 'two'; it must be a finite number",
        ),
        (
            "id,x\na,1\nb,NaN\n",
            r"row 3 of nodes\.csv: the feature 'x' is 'NaN'; it must be a finite number",
        ),
        (
            "id,x\na,-inf\n",
            r"row 2 of nodes\.csv: the feature 'x' is '-inf'; it must be a finite number",
        ),
        (
            "id,x\na,1e39\n",
            r"row 2 of nodes\.csv: the feature 'x' is infinite or too large; it must be a finite",
        ),
        (
            "id,x,label,split\na,1,c,tarin\n",
            r"row 2 of nodes\.csv: the split is 'tarin'; it must be train, val, test or empty",
        ),
        (
            "id,x,label,split\na,1,,train\n",
            r"row 2 of nodes\.csv is in train but has no label; label it or empty its split",
        ),
        (
            "id,x,label,split\na,1,c,train\n",
            r"every class has a single known label, which leaves none to validate on; label at",
        ),
        (
            "id,x,label,split\na,1,c,val\n",
            r"the split column of nodes\.csv has no train node; mark some, or remove",
        ),
        (
            "id,x,label\na,1,c\nb,1,d\n",
            r"every class has fewer than 3 labelled nodes, so none is left for val",
        ),
        (b"id,x\na,1\nb\xe9,2\n", r"row 3 of nodes\.csv is not UTF-8 text; save the file as UTF-8"),
        (
            'id,x\n\n\na,1\n"b,2\n',
            r"row 5 of nodes\.csv is not CSV \(unexpected end of data\); check its quotes",
        ),
        (
            'id,x\na,1\n"b,2\n',
            r"row 3 of nodes\.csv is not CSV \(unexpected end of data\); check its quotes",
        ),
    ],
)
def test_a_wrong_nodes_file_is_named_with_its_row(write, nodes, message):
    with pytest.raises(DataError, match=message):
        load(write(nodes, "source,target\n"))


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (None, r"pets has no edges\.csv; a graph is a folder with nodes\.csv and edges\.csv"),
        ("", r"edges\.csv is empty; begin it with a header"),
        (
            "source\nann\n",
            r"the columns source and target of edges\.csv, whose columns are source; rename",
        ),
        (
            "ann,bob\nbob,cat\n",
            r"row 1 of edges\.csv holds node ids; begin the file with the header source,target",
        ),
        (
            "source,target\nann,bob\nann,eve\n",
            r"row 3 of edges\.csv names the node 'eve', which the nodes do not have",
        ),
        (
            "source,target\nann,bob\n,ann\n",
            r"row 3 of edges\.csv has no source; name the nodes at both ends of every edge",
        ),
        ("source,target\nann\n", r"row 2 of edges\.csv has 1 cells, but the header has 2"),
    ],
)
def test_a_wrong_edges_file_is_named_with_its_row(write, edges, message):
    with pytest.raises(DataError, match=message):
        load(write(edges=edges))


def test_a_file_is_not_a_folder(write):
    with pytest.raises(
        DataError, match=r"nodes\.csv is not in a format that gcnii reads; a graph is a folder with"
    ):
        load(write() / "nodes.csv")


def test_a_folder_in_place_of_a_file_is_named(write):
    (write(nodes=None) / "nodes.csv").mkdir()
    with pytest.raises(
        DataError, match=r"cannot read .*nodes\.csv \(Is a directory\); make it a readable file"
    ):
        load(write(nodes=None))


def test_a_wrong_seed_is_refused(write):
    with pytest.raises(InputError, match="seed must be an integer ≥ 0, got -1"):
        load(write(), seed=-1)


def test_a_missing_number_is_the_median_with_an_indicator(write):
    graph = load(write("id,x\na,1\nb,\nc,3\nd,7\n", "source,target\n"))
    assert graph.features == ("x", "x (missing)")
    assert graph.X.tolist() == [[1, 0], [3, 1], [3, 0], [7, 0]]


def test_text_is_one_hot(write):
    graph = load(write("id,city\na,oslo\nb,rome\nc,oslo\nd,rome\n", "source,target\n"))
    assert graph.features == ("city=oslo", "city=rome")


def test_columns_that_are_left_out_are_named(write):
    nodes = "id,x,one,name\na,1,1,ann\nb,2,1,bob\nc,3,1,cat\n"
    with pytest.warns(UserWarning, match=r"left out of the features: 'one' \(constant\), 'name'"):
        assert load(write(nodes, "source,target\n")).features == ("x",)


def test_columns_have_other_names_if_the_user_says_so(write):
    nodes = "who,x,segment,part\na,1,u,train\nb,2,v,val\nc,3,u,test\n"
    graph = load(
        write(nodes, "how,who,whom\n2,a,b\n"),
        id="who",
        label="segment",
        split="part",
        edge_from="who",
        edge_to="whom",
        weight="how",
    )
    assert (graph.nodes, graph.classes) == (("a", "b", "c"), ("u", "v"))
    assert (graph.weights.tolist(), graph.splits[0].test.tolist()) == ([2], [False, False, True])


def test_several_label_columns_are_several_labels(write):
    nodes = "id,x,red,blue,split\na,1,1,0,train\nb,2,0,1,val\nc,3,,,\n"
    graph = load(write(nodes, "source,target\n"), label=["red", "blue"])
    assert graph.y.tolist() == [[1, 0], [0, 1], [-1, -1]]
    assert graph.classes == ("red", "blue")


def test_labels_joined_by_semicolons_are_several_labels(write):
    nodes = "id,x,label,split\na,1,red;blue,train\nb,2,blue,val\nc,3,,\n"
    graph = load(write(nodes, "source,target\n"), multilabel=True)
    assert (graph.y.tolist(), graph.classes) == ([[1, 1], [1, 0], [-1, -1]], ("blue", "red"))


def test_wide_features_come_from_a_sparse_matrix(write):
    folder = write("id,x\na,1\nb,2\n", "source,target\n")
    sp.save_npz(folder / "features.npz", sp.csr_array([[0.0, 5, 0], [4, 0, 0]]))
    graph = load(folder)
    assert graph.features == ("x", "features[0]", "features[1]")
    assert graph.X.tolist() == [[1, 0, 5], [2, 4, 0]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (sp.csr_array([[1.0, 0], [0, 1], [0, 0]]), "has 3 rows, but there are 2 nodes"),
        (b"no zip file", "not a sparse matrix"),
        (
            sp.csr_array([[1.0, 0], [0, np.nan]]),
            "must hold finite numbers, got NaN or infinity in row 1 ",
        ),
    ],
)
def test_a_wrong_matrix_is_refused(write, content, message):
    folder = write("id,x\na,1\nb,2\n", "source,target\n")
    if isinstance(content, bytes):
        (folder / "features.npz").write_bytes(content)
    else:
        sp.save_npz(folder / "features.npz", content)
    with pytest.raises(DataError, match=message):
        load(folder)


def test_all_problems_of_both_files_are_said_at_once(write):
    nodes = "id,x,label,split\na,1,c,tarin\na,two,d,val\nb,3,,train\n"
    with pytest.raises(DataError) as caught:
        load(write(nodes, "source,target,weight\na,zoe,-1\n"))
    said = "\n".join(caught.value.problems)
    for words in ("repeats the id 'a'", "'two'", "'tarin'", "no label", "'zoe'", "weight is '-1'"):
        assert words in said


@pytest.mark.parametrize("name", ["nope", "x"])
def test_a_column_that_the_user_names_must_exist_and_be_named_once(write, name):
    with pytest.raises(InputError, match=name):
        load(write(), drop=[name], categorical=["x", "nope"])


def test_to_predict_for_a_graph_its_split_need_not_be_one(write):
    columns = load(write()).columns
    nodes = (write() / "nodes.csv").read_text().replace("train", "holdout")
    assert load(write(nodes), columns=columns).splits == ()
    with pytest.raises(DataError, match="the split is 'holdout'"):
        load(write(nodes))


def test_options_are_kept_to_load_the_graph_again(write):
    graph = load(write(), unknown="fish", directed=True, drop=["size"])
    again = load(graph.source, **graph.loaded_with)
    assert again.fingerprint == graph.fingerprint


PAYMENTS = "source,target,weight\nann,bob,5\nbob,ann,7\ncat,dan,1\n"


def test_payments_both_ways_are_refused_with_what_can_be_done(write):
    sentence = (
        r"between 'ann' and 'bob' has the weight 5 in one direction and 7 in the other; .*"
        r"directed=True, --directed.*duplicates='add', 'mean', 'max' or 'first' \(--duplicates\)"
    )
    with pytest.raises(DataError, match=sentence):
        load(write(edges=PAYMENTS))
    assert load(write(edges=PAYMENTS), directed=True).weights.tolist() == [5, 7, 1]


@pytest.mark.parametrize(
    ("duplicates", "weight"), [("add", 12), ("mean", 6), ("max", 7), ("first", 5)]
)
def test_payments_both_ways_become_what_is_asked(write, duplicates, weight):
    graph = load(write(edges=PAYMENTS), duplicates=duplicates)
    assert (graph.directed, graph.weights.tolist()) == (False, [weight, 1])


def test_edges_without_weights_are_counted_if_they_are_to_be_added(write):
    edges = "source,target\nann,bob\nbob,ann\ncat,dan\n"
    assert load(write(edges=edges)).weights is None
    assert load(write(edges=edges), duplicates="max").weights is None
    assert load(write(edges=edges), duplicates="add").weights.tolist() == [2, 1]
    assert load(write(edges="source,target\ncat,dan\n"), duplicates="add").weights is None


def test_another_word_for_duplicates_is_refused(write):
    with pytest.raises(InputError, match="duplicates must be add, mean, max or first, got 'sum'"):
        load(write(edges=PAYMENTS), duplicates="sum")
