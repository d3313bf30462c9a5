"""Exported models answer for another graph, of another size, as ours do."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from support.command_line import SMALL, call, write_pets

import gcnii
from gcnii import Graph, Split, export_onnx, fit
from gcnii.errors import InputError

onnxruntime = pytest.importorskip("onnxruntime")

QUICK = {"layers": 3, "epochs": 5, "device": "cpu", "threads": 1}
EXPORTED = [
    *("gcnii", "gcnii-star", "gcnii-star-printed", "gcnii-plus", "gcnii-ppi", "gcnii-star-ppi"),
    *("deep-gcn", "gcn-residual", "gcn-initial", "gcn-identity", "mlp", "gcn", "sgc", "appnp"),
    *("dropedge-gcn", "jknet", "jknet-concat"),
]
OTHERS = ["ppnp", "gat", "geniepath", "jknet-max", "incep", "graphsage-mean", "geom-gcn-i"]


def drawn(n, seed=0, *, weighted=False, directed=False, several=False):
    """A graph whose edges are repeated, some of them the other way round, with loops."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 3, n)
    roles = random.permutation(np.resize(["train", "val", "test"], n))
    numbers = random.normal(size=(n, 3)) + y[:, None]
    edges = random.integers(0, n, (2, 3 * n))
    edges = edges if directed else np.unique(np.sort(edges, 0), axis=1)
    return Graph(
        X=np.c_[numbers, 1000 * random.random(n) ** 4, random.integers(0, 2, n)],
        edges=edges,
        y=np.eye(3, dtype=int)[y] | (random.random((n, 3)) < 0.2) if several else y,
        splits=(Split.of_roles(roles),),
        directed=directed,
        weights=random.random(edges.shape[1]) + 0.1 if weighted else None,
        classes=("cat", "dog", "owl"),
    )


@pytest.fixture(scope="module")
def graph():
    return drawn(60)


@pytest.fixture(scope="module")
def other():
    return drawn(97, seed=1)


def answer(path, graph, **inputs):
    """What onnxruntime says of a graph."""
    X = graph.X.toarray() if sparse.issparse(graph.X) else graph.X
    given = {"X": X.astype(np.float32), "edges": graph.edges, **inputs}
    if graph.weights is not None:
        given["weights"] = graph.weights
    session = onnxruntime.InferenceSession(path)
    return session.run(None, {one.name: given[one.name] for one in session.get_inputs()})


def agree(result, graph, path, **how):
    """Check that the file of a result gives its probabilities and labels."""
    P, labels = answer(export_onnx(result, path / "model.onnx", overwrite=True, **how), graph)
    assert np.abs(P - result.predict_proba(graph)).max() < 1e-5
    assert np.array_equal(labels, result.predict_ids(graph))


def trained(graph, model="gcnii", **settings):
    """A model whose labels differ from node to node."""
    depth = {} if "layers" in gcnii.train.plan.model_defaults(model) else {"layers": None}
    asked = {**QUICK, **depth, **settings}
    return fit(graph, model, **{name: one for name, one in asked.items() if one is not None})


@pytest.mark.parametrize("model", EXPORTED)
def test_a_model_says_of_another_graph_what_ours_says(model, graph, other, tmp_path):
    agree(trained(graph, model, lr=0.05), other, tmp_path)


@pytest.mark.parametrize("model", OTHERS)
def test_what_cannot_be_exported_says_so(model, graph, tmp_path):
    with pytest.raises(InputError, match=r"cannot be (exported: it uses|made in the file)"):
        export_onnx(trained(graph, model, epochs=1), tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("norm", ["symmetric", "walk", "symmetric+I", "first-order", "enhanced"])
@pytest.mark.parametrize("direction", ["out", "in", "both"])
def test_the_file_makes_p_of_weighted_and_directed_edges(norm, direction, tmp_path):
    settings = {"norm": norm, "direction": direction, "edge_weights": "raw"}
    result = trained(drawn(60, weighted=True, directed=True), **settings)
    agree(result, drawn(97, seed=1, weighted=True, directed=True), tmp_path)


@pytest.mark.parametrize("kind", ["none", "median", "log", "rank"])
def test_the_file_counts_edge_weights(kind, tmp_path):
    for directed in (False, True):
        result = trained(drawn(60, weighted=True, directed=directed), edge_weights=kind, lr=0.05)
        large = drawn(700, seed=1, weighted=True, directed=directed)  # more than are typical
        agree(result, large, tmp_path)


@pytest.mark.parametrize("loops", ["remove", "none"])
def test_the_file_leaves_loops_out(loops, graph, other, tmp_path):
    agree(trained(graph, loops=loops, norm="mean", lr=0.05), other, tmp_path)
    agree(trained(graph, loops=loops), replace(other, edges=other.edges[:, :0]), tmp_path)


def test_edges_may_be_given_twice_and_the_other_way_round(graph, other, tmp_path):
    result = trained(graph)
    path = export_onnx(result, tmp_path / "model.onnx")
    again = np.concatenate([other.edges, other.edges[::-1, :50], other.edges[:, :9]], 1)
    assert np.array_equal(answer(path, other)[0], answer(path, replace(other, edges=again))[0])


def test_an_edge_of_no_node_is_an_error(graph, other, tmp_path):
    path = export_onnx(trained(graph), tmp_path / "model.onnx")
    edges = np.c_[other.edges, [0, other.n]]
    with pytest.raises(Exception, match="indices element out of data bounds, idx=97"):
        answer(path, other, edges=edges)


@pytest.mark.parametrize("scale", ["none", "standard", "columns", "rows", "length", "quantile"])
def test_the_file_scales_features(scale, graph, other, tmp_path):
    agree(trained(graph, scale=scale), other, tmp_path)
    few, many = (replace(one, X=sparse.csr_array(one.X * (one.X > 0.5))) for one in (graph, other))
    agree(trained(few, scale=scale), many, tmp_path)


def test_several_runs_answer_with_their_temperatures(graph, other, tmp_path):
    result = trained(graph, seeds=range(3))
    assert result.together not in (None, 1.0)
    agree(result, other, tmp_path)


@pytest.mark.parametrize("settings", [{"class_weight": "balanced"}, {"precision": "float64"}])
def test_weights_of_classes_and_double_precision(settings, graph, other, tmp_path):
    agree(trained(graph, **settings), other, tmp_path)


def test_several_labels_and_their_threshold(tmp_path):
    result = trained(drawn(60, several=True), label_threshold="validation", seeds=range(2))
    agree(result, drawn(97, seed=1, several=True), tmp_path)


def test_numbers_come_in_their_units(graph, other, tmp_path):
    graph, other = (
        replace(one, y=np.c_[1e6 + 1e4 * one.X[:, 0], one.X[:, 1]], targets=("price", "size"))
        for one in (replace(graph, classes=None), replace(other, classes=None))
    )
    result = trained(graph, seeds=range(2))
    path = export_onnx(result, tmp_path / "model.onnx")
    (values,), ours = answer(path, other), result.predict(other)
    assert np.allclose(values, ours, rtol=1e-6, atol=1e-5)
    assert json.loads(metadata(path)["targets"]) == ["price", "size"]


def test_the_entries_of_p_may_be_given_instead(graph, other, tmp_path):
    result = trained(graph, diffusion="heat")
    with pytest.raises(InputError, match="P with diffusion heat cannot be made in the file; let"):
        export_onnx(result, tmp_path / "model.onnx")
    path = export_onnx(result, tmp_path / "model.onnx", inputs="matrix")
    P = result.network(other)[1].P
    entries = {"rows": P.pattern.row_of, "columns": P.pattern.columns.long(), "values": P.values}
    found = answer(path, other, **{name: one.numpy() for name, one in entries.items()})[0]
    assert np.abs(found - result.predict_proba(other)).max() < 1e-5


def test_no_term_of_a_sum_is_lost_among_several_threads(graph, other, tmp_path):
    result = trained(graph, diffusion="heat")
    path = export_onnx(result, tmp_path / "model.onnx", inputs="matrix")
    P = result.network(other)[1].P
    shuffled = np.random.default_rng(0).permutation(len(P.values))  # the entries come in any order
    each = {"rows": P.pattern.row_of, "columns": P.pattern.columns.long(), "values": P.values}
    entries = {name: one.numpy()[shuffled] for name, one in each.items()}
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 4
    session = onnxruntime.InferenceSession(path, settings)
    X, ours = other.X.astype(np.float32), result.predict_proba(other)
    for _ in range(100):
        found = session.run(None, {"X": X, **entries})[0]
        assert np.abs(found - ours).max() < 1e-5


@pytest.mark.slow
def test_the_networks_of_an_ensemble_are_one_file_and_trees_are_in_none(graph, other, tmp_path):
    ensemble = fit(graph, effort="quick", epochs=5, device="cpu")
    with pytest.raises(InputError, match=r"this ensemble answers with 'trees.*; export one net"):
        export_onnx(ensemble, tmp_path / "all.onnx")
    with pytest.warns(UserWarning, match="left out of the file: 'trees"):
        path = export_onnx(ensemble, tmp_path / "networks.onnx", networks=True)
    assert sum(run["weight"] for run in json.loads(metadata(path)["networks"])) == pytest.approx(1)
    able = [float(one in ensemble.networks) for one in ensemble.members]
    (blend,) = ensemble.blends
    weights = tuple(np.multiply(able, blend.weights) / np.dot(able, blend.weights))
    only = replace(ensemble, blends=(replace(blend, weights=weights),), kept=None)
    assert np.abs(answer(path, other)[0] - only.predict_proba(other)).max() < 1e-5
    agree(only, other, tmp_path)


def metadata(path):
    return onnxruntime.InferenceSession(path).get_modelmeta().custom_metadata_map


def test_the_file_knows_classes_and_features(graph, tmp_path):
    named = replace(graph, features=tuple("abcde"))
    known = metadata(export_onnx(trained(named), tmp_path / "model.onnx"))
    assert json.loads(known["classes"]) == ["cat", "dog", "owl"]
    assert json.loads(known["features"]) == list("abcde")
    assert json.loads(known["directed"]) is False


@pytest.mark.parametrize(
    ("name", "how", "sentence"),
    [
        ("model.pt", {}, "an exported model must end in .onnx, got model.pt"),
        ("mine.onnx", {}, "mine.onnx exists and gcnii did not write it"),
        ("model.onnx", {"inputs": "P"}, "inputs must be edges or matrix, got 'P'"),
    ],
)
def test_wrong_words_are_refused(name, how, sentence, graph, tmp_path):
    (tmp_path / "mine.onnx").write_text("mine")
    with pytest.raises(InputError, match=sentence):
        export_onnx(trained(graph, epochs=1), tmp_path / name, **how)


def test_edges_of_several_types_are_refused_unless_they_are_ignored(graph, other, tmp_path):
    typed, many = (
        replace(one, edge_types=np.arange(one.edges.shape[1]) % 2, edge_type_names=("a", "b"))
        for one in (graph, other)
    )
    with pytest.raises(InputError, match="over edges of several types cannot be exported; train"):
        export_onnx(trained(typed), tmp_path / "model.onnx")
    agree(trained(typed, edge_types="ignore"), many, tmp_path)


def test_columns_of_structure_are_refused(graph, tmp_path):
    with pytest.raises(InputError, match=r"columns of the graph's structure \(structure degree\)"):
        export_onnx(trained(graph, structure="degree"), tmp_path / "model.onnx")


def test_the_command_writes_the_file_and_replaces_its_own(tmp_path):
    write_pets(tmp_path / "pets")
    call("train", "pets", *SMALL, "--out", "b", cwd=tmp_path)
    for _ in range(2):
        found = call("export", "b", "--onnx", "pets.onnx", cwd=tmp_path)
        assert (found.code, found.err) == (0, "")
        assert found.out.startswith("gcnii, 2 layers: pets.onnx (0.0 MB)")
    found = json.loads(call("export", "b", "--onnx", "pets.onnx", "--json", cwd=tmp_path).out)
    assert found["bytes"] == (tmp_path / "pets.onnx").stat().st_size
