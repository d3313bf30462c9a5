"""Whatever is asked, and however often: an answer, or a sentence, and nothing is lost."""

import json
import re
import threading
from random import Random

import pyarrow as pa
import pytest
from hostile.damage import VALUES, damaged_bytes, damaged_document
from hypothesis import HealthCheck, given, settings
from support.serving import streams

from gcnii.serving.records import ARROW

schemathesis = pytest.importorskip("schemathesis")

# What is noticed would be told in the answer, but pytest catches it before.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

POSTS, GETS = ("/predict", "/predict_new", "/explain"), ("/", "/model", "/health", "/metrics")
LEAK = re.compile(r"Traceback|File \"|/src/|site-packages|\.py\b")
QUICKLY = settings(
    max_examples=60,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def schema(client):
    return schemathesis.openapi.from_url(client.address + "/openapi.json")


@pytest.fixture
def new(graph):
    """A question about a new node."""
    row = {"id": "new", **dict.fromkeys(graph.features, 0.5)}
    return {"nodes": [row], "edges": [{"source": "new", "target": graph.nodes[3]}]}


def sentence(content):
    """Why it was refused: nothing but a line without a place in the code."""
    (said,) = json.loads(content).values()
    assert "\n" not in said
    assert not LEAK.search(said)
    return said


@pytest.mark.parametrize(
    ("path", "mode"),
    [
        *((path, mode) for path in POSTS for mode in schemathesis.GenerationMode),
        *((path, schemathesis.GenerationMode.POSITIVE) for path in GETS),
    ],
)
def test_what_schemathesis_draws_is_answered_as_the_document_says(schema, path, mode):
    operation = schema[path]["post" if path in POSTS else "get"]

    @QUICKLY
    @given(operation.as_strategy(generation_mode=mode))
    def ask(case):
        # A node that is not in the graph is refused, and no schema has the nodes of a graph.
        answer = case.call_and_validate(
            excluded_checks=[schemathesis.checks.positive_data_acceptance]
        )
        if answer.status_code >= 400:
            sentence(answer.content)

    ask()


def test_every_operation_of_the_document_is_drawn(schema):
    assert {one.ok().path for one in schema.get_all_operations()} == {*POSTS, *GETS}


def test_a_question_with_one_thing_wrong_is_answered_or_refused(client, new):
    random, statuses = Random(0), set()
    for path, question in (("/predict_new", new), ("/explain", {"id": "a 1", "top": 3})):
        for _ in range(150):
            document, told = damaged_document(random, question)
            body = document.encode("utf-8", "surrogatepass")
            status, found, _ = client.send(path, body)
            assert status in (200, 422), (told, found)
            statuses.add(status)
            if status != 200:
                sentence(found)
    assert statuses == {200, 422}


def test_any_value_of_a_new_node_is_answered_or_refused(client, new):
    for value in VALUES:
        for place in (new["nodes"][0], new["edges"][0]):
            for name in place:
                before, place[name] = place[name], value
                status, found, _ = client.send("/predict_new", json.dumps(new).encode())
                place[name] = before
                assert status in (200, 422), (name, value, found)


def test_damaged_arrow_is_answered_or_refused(client, new):
    random = Random(0)
    whole = streams(*(pa.Table.from_pylist(new[name]) for name in ("nodes", "edges")))
    for _ in range(300):
        body, told = damaged_bytes(random, whole)
        status, found, _ = client.send("/predict_new", body, ARROW)
        assert status in (200, 422), (told, found)
        if status != 200:
            sentence(found)


def test_under_load_every_request_is_answered_with_its_own_answer(client, graph, new):
    wrong, before = [], client.ask("/predict", {"ids": list(graph.nodes)})[1]["answers"]

    def keep_asking(first):
        for i in range(first, first + 100):
            node = i % graph.n
            status, found = client.ask("/predict", {"ids": [graph.nodes[node]]})
            if status != 200 or found["answers"] != [before[node]]:
                wrong.append(found)
            if i % 10 == 0:
                own = json.loads(json.dumps(new).replace('"new"', f'"new {i}"'))
                status, found = client.ask("/predict_new", own)
                if status != 200 or found["answers"][0]["node"] != f"new {i}":
                    wrong.append(found)

    threads = [threading.Thread(target=keep_asking, args=(1000 * j,)) for j in range(16)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert wrong == []
    lines = client.send("/metrics")[1].decode()
    assert not re.search(r'status="5\d\d"', lines)
    assert "gcnii_requests_in_flight 1\n" in lines
