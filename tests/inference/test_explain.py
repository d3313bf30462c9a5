"""An explanation in names and words: who, which features, how far, and the proof."""

from collections import deque
from dataclasses import replace

import numpy as np
import pytest

import gcnii
from gcnii import data, fit
from gcnii.errors import GraphError, InputError
from gcnii.graph import Graph, Split
from gcnii.inference import label_table
from gcnii.inference.explain import BIAS, OWN, HopShare

SMALL = {"layers": 3, "width": 8, "epochs": 20, "device": "cpu"}


@pytest.fixture(scope="module")
def graph():
    one = data.load("csbm", n=60, degree=6, labels_per_class=5)
    alone = 7  # a node without links
    edges = one.edges[:, (one.edges != alone).all(0)]
    nodes = tuple(f"node {i}" for i in range(60))
    features = tuple(f"x{j}" for j in range(one.d))
    return replace(one, edges=edges, classes=("cat", "dog"), nodes=nodes, features=features)


@pytest.fixture(scope="module")
def result(graph):
    return fit(graph, seeds=range(2), **SMALL)


@pytest.fixture(scope="module")
def found(graph, result):
    return result.explain(graph, "node 3", device="cpu")


def hops_by_hand(graph, centre):
    neighbours = {i: set() for i in range(graph.n)}
    for u, v in graph.edges.T.tolist():
        neighbours[u].add(v)
        neighbours[v].add(u)
    hops, line = {centre: 0}, deque([centre])
    while line:
        u = line.popleft()
        for v in neighbours[u] - hops.keys():
            hops[v] = hops[u] + 1
            line.append(v)
    return hops


def test_the_best_run_is_explained_as_it_predicts(graph, result, found):
    row = label_table(result, graph, "cpu", ensemble=False).iloc[3]
    assert (found.node, found.label, found.predicted) == (row["node"], row["label"], row["label"])
    assert found.probability == pytest.approx(row["probability"], abs=1e-5)
    assert found.known == graph.classes[graph.labels[3]]
    run = result.runs[result.best]
    assert found.document()["run"] == {"seed": run.seed, "split": run.split}


def test_hops_are_counted_along_the_links(graph, result):
    everyone = result.explain(graph, "node 3", top=60, device="cpu")
    hops = hops_by_hand(graph, 3)
    for one in everyone.nodes:
        assert one.hop == hops[graph.nodes.index(one.node)]
    for hop in everyone.hops:
        shares = [one.share for one in everyone.nodes if one.hop == hop.hop]
        assert (hop.nodes, hop.share) == (len(shares), pytest.approx(sum(shares)))
    assert max(hop.hop for hop in everyone.hops) == 3  # as many as there are layers


def test_the_largest_shares_come_first_and_no_more_than_asked(graph, result):
    few = result.explain(graph, "node 3", top=2, device="cpu")
    assert len(few.nodes) == len(few.features) == len(few.links) == 2
    assert abs(few.nodes[0].share) >= abs(few.nodes[1].share)
    assert few.links[0].effect >= few.links[1].effect > 0


def test_the_score_against_another_class_is_the_difference(graph, result, found):
    other = next(name for name in graph.classes if name != found.label)
    second = result.explain(graph, "node 3", label=other, device="cpu")
    margin = result.explain(graph, "node 3", against=other, device="cpu")
    assert margin.score == pytest.approx(found.score - second.score, abs=1e-5)
    assert margin.bias == pytest.approx(found.bias - second.bias, abs=1e-5)
    assert margin.exact
    assert second.sentence.startswith(f"node 3 is not predicted as {other} (probability ")
    assert f" lead over {other}" in margin.sentence


def shared(found, *hops, bias=0.0, **other):
    """The explanation with these shares of hop 0, 1, …"""
    one = [HopShare(hop, 1, share) for hop, share in enumerate(hops)]
    top = max(*hops, bias)
    name = OWN if top == hops[0] else BIAS if top == bias else "p25"
    support = sum(max(share, 0) for share in (*hops, bias))
    about = {"score": sum(hops) + bias, "reasons": ((name, top),), "support": support}
    return replace(found, hops=tuple(one), bias=bias, **about | other)


def test_the_headline_says_how_much_each_hop_gives(found):
    head, shares, check = shared(found, 0.8, 1.5, 4, 2.4, 0.8, bias=0.5, support=20).sentences
    assert head == f"node 3 is predicted as {found.label} (probability {found.probability:.3f})."
    assert shares == "Nodes 2 and 3 hops away give 64 % of the score, its own features 8 %."
    assert check == found.removal.sentence(found.label, holds=True)
    spread = shared(found, 1, *[1.5] * 5, bias=1.5, support=20).sentences[1]
    assert spread.startswith("Nodes 1 to 3 hops away give 45 % of the score, its own features 10 %")
    assert spread.endswith(", the model's bias 15 %.")
    assert str(found) == found.sentence == " ".join(found.sentences)


def test_mostly_is_said_of_what_gives_half_of_all_that_speaks_for_the_label(found):
    some = shared(found, 4.9, 5.1, support=10)
    assert "mostly" not in replace(some, reasons=((OWN, 4.9),)).sentence
    most = shared(found, 5, 4.5, bias=0.5)
    assert ", mostly because of its own features (50 % of the score)." in most.sentences[0]
    assert most.sentences[1] == "Nodes 1 hop away give 45 % of the score."
    assert "mostly" not in replace(most, holds=False).sentence


def test_shares_that_cancel_are_no_percentages(found):
    some = shared(found, -3, 5, bias=1, support=12)
    assert some.sentences[1] == (
        "Nodes 1 hop away give +5.00 of a score of 3.00, its own features -3.00, "
        "the model's bias +1.00."
    )


@pytest.mark.parametrize(
    ("before", "after", "change", "said"),
    [
        (0.9991, 0.9968, "", "lowers the probability of 7 from 0.999 to 0.997: no single edge dec"),
        (0.9991, 0.9991, "", "leaves the probability of 7 at 0.999: no single edge decides."),
        (0.9, 0.6, "", "lowers the probability of 7 from 0.900 to 0.600."),
        (
            0.9,
            0.3,
            "9 is predicted",
            "lowers the probability of 7 from 0.900 to 0.300, and 9 is pr",
        ),
        (0.6, 0.8, "", "raises the probability of 7 from 0.600 to 0.800: the estimate by gradient"),
    ],
)
def test_what_the_check_showed_is_said(found, before, after, change, said):
    removal = replace(found.removal, before=before, after=after, change=change)
    assert f"Removing the 3 strongest edges {said}" in removal.sentence("7", holds=True) + "."


def test_edges_whose_removal_changes_the_prediction_decide(graph, result):
    P = result.predict_proba(graph, "cpu", ensemble=False)
    unsure = np.argsort(P.max(1))[:4]
    found = [result.explain(graph, f"node {i}", device="cpu") for i in unsure]
    changed = [one for one in found if one.removal and one.removal.change]
    assert changed
    for one in changed:
        other = "dog" if one.label == "cat" else "cat"
        assert one.removal.after < 0.5 < one.removal.before
        assert one.sentence.endswith(f", and {other} is predicted: these edges decide.")


def test_a_proof_runs_on_the_graph_without_the_links(graph, result, found):
    row = {name: i for i, name in enumerate(graph.nodes)}
    gone = {frozenset((row[one.source], row[one.target])) for one in found.removal.links}
    kept = [frozenset(edge) not in gone for edge in graph.edges.T.tolist()]
    smaller = replace(graph, edges=graph.edges[:, kept])
    P = result.predict_proba(smaller, "cpu", ensemble=False)
    assert found.removal.after == pytest.approx(P[3, graph.classes.index(found.label)], abs=1e-5)
    assert found.removal.links == found.links[:3]
    assert found.removal.after < found.removal.before
    assert found.removal.after < found.removal.random_mean
    random = found.document()["removal"]["random"]
    assert random["draws"] == 10
    assert random["after_mean"] == pytest.approx(np.mean(found.removal.random))
    assert random["after_std"] == pytest.approx(np.std(found.removal.random))


def test_the_same_question_has_the_same_answer(graph, result, found):
    assert result.explain(graph, "node 3", device="cpu") == found


def test_a_node_without_links_is_explained_by_its_own_features(graph, result):
    found = result.explain(graph, "node 7", device="cpu")
    assert [one.node for one in found.nodes] == ["node 7"]
    assert found.links == ()
    assert found.removal is None
    assert any(note.startswith("it has no edges") for note in found.notes)
    assert found.document()["removal"] is None


def test_features_are_named_as_the_model_sees_them(graph, found):
    assert {one.feature for one in found.features} <= set(graph.features)
    assert found.notes[0].startswith("features are as the model sees them, scaled (standard)")
    plain = fit(graph, seeds=[0], scale="none", **SMALL).explain(graph, "node 3", device="cpu")
    assert not any("scaled" in note for note in plain.notes)


def test_a_bundle_finds_the_graph_of_its_training(tmp_path):
    own = data.load("csbm", n=60, degree=6, labels_per_class=5)
    result = fit(own, seeds=[0], **SMALL)
    opened = gcnii.open_bundle(result.save(tmp_path / "b"))
    assert opened.explain(node=3, device="cpu") == result.explain(own, 3, device="cpu")


def test_an_unknown_name_is_refused_with_close_ones(graph, result):
    with pytest.raises(InputError, match=r"has no node 'nod 31'; the closest are 'node 31', "):
        result.explain(graph, "nod 31", device="cpu")
    with pytest.raises(InputError, match=r"has no node '1708'; there are 'node 0', 'node 1', "):
        result.explain(graph, 1708, device="cpu")
    with pytest.raises(InputError, match="which node is to be explained"):
        result.explain(graph)
    with pytest.raises(InputError, match="there is no class 'dgo'; the closest are 'dog'"):
        result.explain(graph, "node 3", label="dgo", device="cpu")
    with pytest.raises(InputError, match="'cat' is held against itself"):
        result.explain(graph, "node 3", label="cat", against="cat", device="cpu")
    with pytest.raises(InputError, match="top"):
        result.explain(graph, "node 3", top=0, device="cpu")


@pytest.mark.parametrize("word", ["60", "-1", "²", "x", "1e1", ""])
def test_a_graph_without_names_takes_numbers(graph, result, word):
    with pytest.raises(InputError, match="give a number from 0 to 59, got"):
        result.explain(replace(graph, nodes=None), word, device="cpu")


def test_two_nodes_of_one_name_are_refused(graph, result):
    twice = replace(graph, nodes=("node 1", *graph.nodes[1:]))
    with pytest.raises(GraphError, match="2 nodes of csbm are called 'node 1'; rename them"):
        result.explain(twice, "node 1", device="cpu")


def several_labels():
    rng = np.random.default_rng(0)
    n = 40
    y = rng.integers(0, 2, (n, 3))
    X = y + 0.5 * rng.standard_normal((n, 3))
    roles = np.array(["train", "val", "test", "train"] * 10, object)
    return Graph(
        X=X,
        edges=rng.integers(0, n, (2, 80)),
        y=y,
        splits=(Split.of_roles(roles),),
        classes=("red", "green", "blue"),
    )


def test_each_of_several_labels_is_explained_by_itself():
    graph = several_labels()
    result = fit(graph, seeds=[0], **SMALL)
    P = result.predict_proba(graph, "cpu")
    default = result.explain(graph, 5, device="cpu")
    assert default.label == graph.classes[P[5].argmax()]
    for j, name in enumerate(graph.classes):
        found = result.explain(graph, 5, label=name, device="cpu")
        assert found.probability == pytest.approx(P[5, j], abs=1e-6)
        assert found.exact
        verb = "is predicted" if name in found.predicted.split(";") else "is not predicted"
        assert found.sentence.startswith(f"Node 5 {verb} as {name} (")


def test_nodes_that_are_normalised_together_have_a_share_without_a_way(graph):
    settings = SMALL | {"batch_norm": True}
    result = fit(graph, "dropedge-gcn", seeds=[0], **settings)
    found = result.explain(graph, "node 7", top=60, device="cpu")
    assert found.hops[-1].hop is None
    assert not found.exact
