"""Features are scaled as learnt in training, on any graph, and never beyond what is finite."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import norm

import gcnii
from gcnii.analysis.checkup import Probe, ProbeBaseline
from gcnii.train.features import Scaling, choose
from gcnii.train.plan import make_plan
from gcnii.train.task import Task

CPU = torch.device("cpu")
SETTINGS = {"layers": 2, "width": 8, "epochs": 5, "device": "cpu"}
WORDS = sp.csr_array(np.array([[2.0, 0, 6], [0, 0, 0], [0, 1, 0]], np.float32))


def people(n=120, seed=0):
    """A block model whose classes show in ages and flags; incomes are large and say nothing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    links = np.triu(rng.random((n, n)) < np.where(y[:, None] == y, 0.08, 0.02), 1)
    income, age = 50_000 + 20_000 * rng.standard_normal(n), 40 + 8 * rng.standard_normal(n) + 6 * y
    flags = rng.random((n, 3)) < np.where(np.arange(3) == y[:, None], 0.7, 0.3)
    X = np.column_stack([income, age, flags]).astype(np.float32)
    splits = (gcnii.stratified_split(y, seed),)
    return gcnii.Graph(X=X, edges=np.stack(links.nonzero()), y=y, splits=splits, name="people")


@pytest.fixture(scope="module")
def graph():
    return people()


def scaled(X, scale):
    return Scaling.learn(X, scale).apply(X)


def test_standard_makes_mean_0_and_deviation_1_but_leaves_flags(graph):
    X = scaled(graph.X, "standard")
    np.testing.assert_allclose(X[:, :2].mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(X[:, :2].std(0), 1, atol=1e-6)
    np.testing.assert_array_equal(X[:, 2:], graph.X[:, 2:])
    assert X.dtype == graph.X.dtype


@pytest.mark.parametrize("value", [7.0, 0.1, -1e30, 1.7e9])
def test_a_column_that_never_changes_becomes_0(value):
    assert scaled(np.full((3, 1), value, np.float32), "standard").tolist() == [[0.0]] * 3


def test_sparse_columns_are_divided_by_their_root_mean_square_and_stay_sparse():
    X = scaled(WORDS, "standard")
    assert isinstance(X, sp.csr_array)
    expected = [[3**0.5, 0, 3**0.5], [0, 0, 0], [0, 1, 0]]  # the word with 0 and 1 stays
    np.testing.assert_allclose(X.toarray(), expected, rtol=1e-6)


def test_rows_are_divided_by_the_sum_of_their_absolute_values_and_rows_of_zeros_stay():
    expected = [[0.25, 0, 0.75], [0, 0, 0], [0, 1, 0]]
    for X in (WORDS, -WORDS, WORDS.toarray()):
        sign = np.sign(X.sum())
        found = scaled(X, "rows")
        assert type(found) is type(X)
        dense = found.toarray() if sp.issparse(found) else found
        np.testing.assert_allclose(dense, sign * np.array(expected))


def test_rows_of_length_one_have_squares_that_sum_to_one():
    expected = np.array([[1, 0, 3], [0, 0, 0], [0, 1, 0]]) / [[10**0.5], [1], [1]]
    for X in (WORDS, WORDS.toarray()):
        found = scaled(X, "length")
        dense = found.toarray() if sp.issparse(found) else found
        np.testing.assert_allclose(dense, expected, rtol=1e-6)


def test_columns_are_divided_by_their_root_mean_square_those_of_zeros_and_ones_as_well():
    expected = [[3**0.5, 0, 3**0.5], [0, 0, 0], [0, 3**0.5, 0]]
    for X in (WORDS, WORDS.toarray()):
        found = scaled(X, "columns")
        dense = found.toarray() if sp.issparse(found) else found
        np.testing.assert_allclose(dense, expected, rtol=1e-6)


def test_quantile_scores_are_those_of_a_normal_distribution_of_the_same_order():
    x = np.random.default_rng(0).pareto(1, (1001, 1)).astype(np.float32)
    z = scaled(x, "quantile")[:, 0]
    assert (np.diff(z[np.argsort(x[:, 0])]) >= 0).all()
    assert abs(z.mean()) < 0.01
    assert z.std() == pytest.approx(1, abs=0.02)
    assert z.max() == pytest.approx(2.885, abs=0.001)  # half a quantile of 256 below the top


@pytest.mark.parametrize("n", [40, 2000])
def test_a_monotone_transform_of_a_column_changes_nothing_in_its_scores(n):
    x = np.random.default_rng(0).integers(-50, 50, (n, 1)) / 10
    np.testing.assert_array_equal(scaled(np.exp(x), "quantile"), scaled(x, "quantile"))
    assert not np.allclose(scaled(np.exp(x), "standard"), scaled(x, "standard"))


def test_equal_numbers_have_the_score_in_the_middle_of_their_ranks():
    x = np.float32([[0], [0], [0], [5]])
    low, high = norm.ppf([1.5 / 4, 3.5 / 4])
    assert scaled(x, "quantile")[:, 0] == pytest.approx([low, low, low, high])
    constant = Scaling.learn(np.full((4, 1), 7.0), "quantile")
    assert constant.apply(np.array([[7.0], [8.0]])).tolist() == [[0.0], [0.0]]


def test_quantile_leaves_flags_and_words_alone(graph):
    np.testing.assert_array_equal(scaled(graph.X, "quantile")[:, 2:], graph.X[:, 2:])
    words, how = ["about", "useless"], {"scale": "quantile"}
    plain, ranked = features(words, scale="standard"), features(words, **how)
    assert not np.allclose(plain.pop("useless"), ranked.pop("useless"))
    for name, column in plain.items():
        np.testing.assert_array_equal(column, ranked[name])


def test_sparse_columns_that_are_mostly_zeros_stay_sparse_and_the_others_are_ranked():
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.1, (50, 20)) * 3.0
    mixed = sp.csr_array(np.column_stack([rng.pareto(1, 50) + 1, counts]))
    found = scaled(mixed, "quantile")
    assert isinstance(found, sp.csr_array)
    assert found.nnz == mixed.nnz
    ranked = scaled(mixed.toarray()[:, :1], "quantile")
    np.testing.assert_allclose(found.toarray()[:, :1], ranked)
    np.testing.assert_allclose(found[:, 1:].toarray(), scaled(mixed[:, 1:], "standard").toarray())


def test_none_gives_the_very_same_matrix(graph):
    assert scaled(graph.X, "none") is graph.X


@pytest.mark.parametrize("scale", ["standard", "rows"])
def test_the_features_of_a_graph_are_left_alone(scale, graph):
    before = graph.X.copy()
    scaled(graph.X, scale)
    np.testing.assert_array_equal(graph.X, before)
    sparse = WORDS.copy()
    scaled(sparse, scale)
    assert (sparse != WORDS).nnz == 0


WIDE = sp.csr_array(sp.hstack([WORDS, sp.csr_array((WORDS.shape[0], 100))]))
MIXED = sp.csr_array(np.column_stack([[5e4, 6e4, 7e4, 4e4], [30, 40, 50, 60], np.eye(4)]))


@pytest.mark.parametrize(
    ("X", "kind"),
    [
        (WIDE, "length"),
        (WIDE.toarray(), "length"),
        (-WIDE, "standard"),
        (MIXED, "standard"),  # rows would hold the income and nothing else
        (MIXED.toarray(), "standard"),
        (np.eye(3), "length"),
        (1 - np.eye(3), "standard"),  # mostly ones
        (sp.eye_array(30, format="csr"), "length"),
        (sp.csr_array((3, 2)), "length"),
    ],
)
def test_auto_is_chosen_by_what_the_features_are(X, kind):
    assert choose(X) == Scaling.learn(X, "auto").kind == kind


numbers = st.floats(allow_nan=False, allow_infinity=False)
matrices = st.one_of(
    *(
        hnp.arrays(dtype, hnp.array_shapes(min_dims=2, max_dims=2, max_side=5), elements=elements)
        for dtype, elements in (
            (np.float64, numbers),
            (np.float32, st.floats(width=32, allow_nan=False, allow_infinity=False)),
        )
    )
)


SCALES = ["auto", "standard", "columns", "rows", "length", "quantile"]


@given(X=matrices, sparse=st.booleans(), scale=st.sampled_from(SCALES))
def test_finite_features_stay_finite_and_bounded(X, sparse, scale):
    X = sp.csr_array(X) if sparse else X
    found = scaled(X, scale)
    found = found.toarray() if sp.issparse(found) else found
    assert found.dtype == X.dtype
    assert np.isfinite(found).all()
    if scale == "rows":
        assert (np.abs(found).sum(1) < 1.001).all()


@given(X=matrices)
def test_what_is_far_off_the_training_stays_finite_too(X):
    scaling = Scaling.learn(np.linspace(0, 1e-30, 3)[:, None] * np.ones(X.shape[1]), "standard")
    assert np.isfinite(scaling.apply(X)).all()


def test_a_dense_and_a_sparse_matrix_are_scaled_alike_by_what_was_learnt():
    dense = np.random.default_rng(0).random((6, 3)) * (np.arange(18).reshape(6, 3) % 2)
    for learnt in (dense, sp.csr_array(dense)):
        scaling = Scaling.learn(learnt, "standard")
        found = scaling.apply(sp.csr_array(dense))
        found = found.toarray() if sp.issparse(found) else found
        np.testing.assert_allclose(found, scaling.apply(dense))


def test_a_document_gives_the_same_scaling_to_the_last_bit(graph):
    scaling = Scaling.learn(graph.X, "standard")
    document = json.loads(json.dumps(scaling.document()))
    again = Scaling.of(document, graph.d)
    np.testing.assert_array_equal(again.apply(graph.X), scaling.apply(graph.X))
    assert Scaling.of(Scaling("rows").document(), 5).kind == "rows"
    ranks = Scaling.learn(graph.X, "quantile")
    kept = json.loads(json.dumps(ranks.document()))
    again = Scaling.of(kept, graph.d)
    np.testing.assert_array_equal(again.apply(graph.X), ranks.apply(graph.X))
    falling = kept | {"quantiles": [[1.0, 0.0], *kept["quantiles"][1:]]}
    for wrong in (document | {"kind": "quantile"}, document | {"quantiles": [[]]}, falling):
        with pytest.raises(gcnii.InputError, match="ascending quantiles of 5 features"):
            Scaling.of(wrong, graph.d)
    for wrong in ({"kind": "standard"}, document | {"mean": [0.0]}, {"kind": "new"}):
        with pytest.raises(gcnii.InputError, match=r"^scaling"):
            Scaling.of(wrong, graph.d)


def test_a_graph_of_your_own_is_scaled_by_default_and_the_catalog_s_is_not(graph):
    drawn = gcnii.load("csbm", n=60)
    assert make_plan("gcnii", {}, graph).recipe.scale == "standard"
    assert make_plan("gcnii", {}, drawn).recipe.scale == "none"
    assert make_plan("gcnii", {}, replace(drawn, name="mine")).recipe.scale == "standard"
    assert make_plan("gcnii", {"scale": "none"}, graph).recipe.scale == "none"
    assert make_plan("gcnii", {"scale": "auto"}, drawn).recipe.scale == "standard"
    assert make_plan("gcnii", {}).recipe.scale == "none"
    with pytest.raises(gcnii.InputError, match="one of auto, none, standard, columns, rows"):
        make_plan("gcnii", {"scale": "minmax"}, graph)


def test_without_scaling_a_task_has_the_features_as_they_are():
    drawn = gcnii.load("csbm", n=60)
    task = Task.of(drawn, make_plan("gcnii", {}, drawn), CPU)
    assert task.scaling is None
    assert torch.equal(task.X, gcnii.feature_matrix(drawn))


def test_scaling_finds_what_large_numbers_drown(graph):
    how = SETTINGS | {"epochs": 60}
    plain, own = (gcnii.fit(graph, scale=scale, **how).test[0] for scale in ("none", "auto"))
    assert own > plain + 0.2


@pytest.mark.parametrize("scale", ["standard", "columns", "rows", "length", "quantile", "none"])
def test_a_bundle_predicts_as_the_result_that_was_saved(graph, scale, tmp_path):
    result = gcnii.fit(graph, scale=scale, **SETTINGS)
    opened = gcnii.open_bundle(result.save(tmp_path / "bundle"))
    np.testing.assert_array_equal(opened.predict_proba(graph), result.predict_proba(graph))
    record = json.loads((tmp_path / "bundle" / "run.json").read_text())
    assert record["settings"]["scale"] == scale
    assert ("scaling" in record) == (scale != "none")


def test_another_graph_is_scaled_by_what_the_training_learnt(graph, tmp_path):
    result = gcnii.fit(graph, **SETTINGS)
    richer = replace(people(seed=1), X=people(seed=1).X + np.float32([30_000, 0, 0, 0, 0]))
    _, task = result.network(richer)
    np.testing.assert_array_equal(task.X.numpy(), result.scaling.apply(richer.X))
    assert task.X[:, 0].mean() > 1


def test_a_bundle_without_its_scaling_is_refused(graph, tmp_path):
    path = gcnii.fit(graph, **SETTINGS).save(tmp_path / "bundle") / "run.json"
    record = json.loads(path.read_text())
    del record["scaling"], record["seal"]
    path.write_text(json.dumps(record))
    with pytest.raises(gcnii.BundleError, match="is not a bundle's record: scaling is missing"):
        gcnii.open_bundle(path.parent)


def test_a_scale_of_none_is_no_part_of_a_run_s_identity(graph):
    plain, own = (make_plan("gcnii", given, graph) for given in ({"scale": "none"}, {}))
    assert "scale" not in plain.identity(graph)["settings"]
    assert own.identity(graph)["settings"]["scale"] == "standard"


def test_a_plan_made_without_a_graph_chooses_when_the_graph_comes(graph):
    plan = make_plan("gcnii", {"scale": "auto"} | {"layers": 2, "width": 4, "epochs": 3})
    assert Task.of(graph, plan, CPU).scaling.kind == "standard"


def test_the_doctor_s_baseline_reads_the_features_that_models_read(graph):
    probe = Probe(graph)
    raw = probe.score(gcnii.feature_matrix(graph, dtype=torch.float64))
    assert ProbeBaseline.of(graph, probe).features > raw + 0.1


@pytest.mark.parametrize("scale", ["standard", "rows", "length"])
def test_in_float64_features_are_scaled_without_rounding_to_float32(graph, scale):
    plan = make_plan("gcnii", {"scale": scale, "precision": "float64"})
    X = graph.X.astype(np.float64)
    exact = Scaling.learn(X, scale).apply(X)
    np.testing.assert_array_equal(Task.of(graph, plan, CPU).X, exact)
    assert np.abs(exact - exact.astype(np.float32)).max() > 1e-9


def test_in_float64_features_given_as_float64_train_as_they_are(graph):
    exact = replace(graph, X=graph.X / np.float64(3))
    rounded = replace(graph, X=exact.X.astype(np.float32))
    settings = SETTINGS | {"precision": "float64", "scale": "none"}
    one, other = (gcnii.fit(X, "gcn", **settings).scores(X) for X in (exact, rounded))
    assert 0 < np.abs(one - other).max() < 1e-2


def test_watched_states_are_those_of_a_prediction(graph):
    result = gcnii.fit(graph, "gcn", **SETTINGS)
    model, task = result.network(graph)
    with gcnii.watch(model, graph) as seen, torch.no_grad():
        scores = model(task.P, task.X).numpy()
    np.testing.assert_allclose(scores, result.scores(graph), atol=1e-6)
    assert len(seen.examine()) > 1


def shop(n=60):
    """Customers with flags, categories, small numbers, words, and one column of no use."""
    rng = np.random.default_rng(0)
    nodes = pd.DataFrame(
        {f"flag{j}": rng.integers(0, 2, n) * rng.integers(0, 2, n) for j in "abcde"}
    )
    nodes["visits"], nodes["region"] = rng.poisson(1, n), rng.choice(list("nesw"), n)
    nodes["about"] = rng.choice(["likes deep graphs", "deep water", "likes water"], n)
    nodes["useless"], nodes["label"] = rng.normal(size=n), rng.choice(["yes", "no"], n)
    nodes["id"] = [f"n{i}" for i in range(n)]
    return nodes, pd.DataFrame({"source": nodes["id"][:-1], "target": nodes["id"][1:].to_numpy()})


def features(columns, **given):
    """The features of customers that a model sees, by their names; only some columns are there."""
    nodes, edges = shop()
    text = [name for name in columns if name == "about"]
    graph = gcnii.from_frames(nodes[["id", "label", *columns]], edges, text=text)
    task = Task.of(graph, make_plan("gcnii", given, graph), CPU)
    return dict(zip(graph.features, task.X.to_dense().numpy().T, strict=True))


@pytest.mark.parametrize("given", [{}, {"scale": "auto"}])
@pytest.mark.parametrize("dropped", ["useless", "visits", "region", "about", "flaga"])
def test_a_column_left_out_changes_nothing_in_how_the_others_are_scaled(dropped, given):
    columns = list(shop()[0].columns.drop(["id", "label"]))
    columns = columns if dropped == "useless" else [one for one in columns if one != "useless"]
    before = features(columns, **given)
    after = features([one for one in columns if one != dropped], **given)
    assert len(after) < len(before)
    for name, column in after.items():
        np.testing.assert_array_equal(column, before[name], err_msg=name)


def test_words_alone_and_words_beside_numbers_are_the_same_words():
    alone, beside = features(["about"]), features(["about", "useless"])
    for name, column in alone.items():
        np.testing.assert_array_equal(column, beside[name])
