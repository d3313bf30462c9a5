"""Whatever is predicted, and by whatever: a server says what `predict` and `predict_new` say."""

import numpy as np
import pandas as pd
import pytest

import gcnii
from gcnii.inference.predict import label_table
from gcnii.serving.served import Served

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

RANDOM = np.random.default_rng(0)
N = 240
GROUP = RANDOM.integers(0, 3, N)
BASE = pd.DataFrame({"id": [f"c{i}" for i in range(N)], "age": RANDOM.normal(GROUP)}).assign(
    city=RANDOM.choice(["Oslo", "Rome"], N), since=RANDOM.integers(2000, 2020, N)
)
ENDS = RANDOM.integers(0, N, (2, 5 * N))
ENDS = ENDS[:, (ENDS[0] != ENDS[1]) & ((GROUP[ENDS[0]] == GROUP[ENDS[1]]) | (ENDS[0] % 3 == 0))]
LINKS = pd.DataFrame({"from": BASE["id"].to_numpy()[ENDS[0]], "to": BASE["id"].to_numpy()[ENDS[1]]})
LABEL = np.array(["x", "y", "z"])[GROUP]
HOW = {"layers": 4, "epochs": 15, "threads": 1, "device": "cpu", "verbose": False}
NAMED = {"edge_from": "from", "edge_to": "to", "time": "since", "duplicates": "add"}
NEW = {"id": "new", "age": 0.3, "city": "Oslo", "since": 2021}
OWN = [{"from": "new", "to": "c3"}, {"from": "c7", "to": "new"}]


def made(model="gcnii", links=LINKS, beside=None, asked=HOW, **columns):
    """A graph of these columns, what was trained on it, and what beside an edge's ends has."""
    settings = {name: columns.pop(name) for name in ("target", "multilabel", "edge_type")
                if name in columns}  # fmt: skip
    nodes = BASE.assign(**columns)
    graph = gcnii.from_frames(nodes, links, **NAMED, **settings)
    return graph, gcnii.fit(graph, model, **asked), beside or {}


BAD = np.where(GROUP == 0, np.where(RANDOM.random(N) < 0.2, "bad", "good"), "good")
AMONG = [";".join(np.array(["p", "q"])[[i % 2 == 0, i % 3 == 0]]) for i in range(N)]
KINDS = {
    "rare": lambda: made(label=BAD, asked=HOW | {"positive": "bad"}),
    "several labels": lambda: made(label=AMONG, multilabel=True),
    "numbers": lambda: made(views=10 * GROUP + RANDOM.normal(size=N), target="views"),
    "types": lambda: made(
        label=LABEL,
        links=LINKS.assign(kind=RANDOM.choice(["knows", "buys"], len(LINKS))),
        beside={"kind": "knows"},
        edge_type="kind",
    ),
    "weights": lambda: made(
        label=LABEL, links=LINKS.assign(weight=RANDOM.random(len(LINKS))), beside={"weight": 2.0}
    ),
    "dates": lambda: made(label=LABEL),
    "an ensemble": lambda: made(
        None,
        label=LABEL,
        asked={"device": "cpu", "verbose": False, "effort": "quick", "epochs": 20},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_answered_as_from_the_command_line(starting, kind):
    graph, result, beside = KINDS[kind]()
    served = Served.of(result, graph, "it", device="cpu")
    coverage = None if served.rule is None else 0.9
    own = [one | beside for one in OWN]
    with starting(served) as client:
        found = client.ask("/predict", {"ids": list(graph.nodes)})[1]["answers"]
        agree(found, label_table(result, graph, "cpu", coverage=coverage))
        for links in (own, []):
            body = {"nodes": [NEW], "edges": links}
            status, exactly = client.ask("/predict_new", body | {"exact": True})
            assert (status, exactly["exact"]) == (200, True)
            frame = pd.DataFrame(links, columns=[*own[0]])
            table = result.predict_new(pd.DataFrame([NEW]), frame, graph, "cpu", coverage=coverage)
            agree(exactly["answers"], table)
            _, nearly = client.ask("/predict_new", body)
            agree(nearly["answers"], table, near=True)
        why = client.ask("/explain", {"id": "c3"})
        assert why[0] == 200, why
        expected = result.explain(graph, "c3", device="cpu").document()
        assert why[1]["explanation"]["sentence"] == expected["sentence"]


def agree(answers, table, near=False):
    """What is said of each node, in each column but those of probabilities."""
    if near:
        table = table.drop(columns="set", errors="ignore")
    assert len(answers) == len(table)
    for name in table.columns.drop("split"):
        if name.startswith("p("):
            continue
        said = [one[name] for one in answers]
        if name == "set":
            said = [";".join(one) for one in said]
        expected = [None if cell != cell else cell for cell in table[name]]
        if isinstance(next((cell for cell in expected if cell is not None), None), float):
            close = {"rel": 0.02, "abs": 0.02} if near else {"rel": 1e-9}
            expected = [cell if cell is None else pytest.approx(cell, **close) for cell in expected]
        assert said == expected, name


def test_of_another_number_there_are_no_probabilities(starting):
    graph, result, _ = KINDS["numbers"]()
    with starting(Served.of(result, graph, "it", device="cpu")) as client:
        status, found = client.ask("/predict", {"ids": ["c1"], "probabilities": True})
        assert (status, found["error"][:44]) == (
            422,
            "there are no probabilities of classes where ",
        )
