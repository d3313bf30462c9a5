"""What a server refuses, and what it never says."""

import http.client
import json
import socket
import time

import numpy as np
import pyarrow as pa
import pytest
from support.serving import streams

from gcnii.errors import InputError, did_you_mean
from gcnii.serving import server
from gcnii.serving.records import ARROW, Limits
from gcnii.serving.server import Place, read_token

SECRET = "0123456789abcdef"


def test_beyond_this_machine_a_token_is_needed():
    with pytest.raises(InputError, match="can be reached from other machines, so a token is"):
        Place(host="0.0.0.0")
    assert Place(host="::1").token is None


@pytest.mark.parametrize("text", ["short", "two words of some length", ""])
def test_a_token_is_one_long_word(tmp_path, text):
    (tmp_path / "token").write_text(text)
    with pytest.raises(InputError, match="a token is one word of 16 characters or more"):
        read_token(tmp_path / "token")


def test_without_its_token_nobody_is_answered(starting, served, tmp_path):
    (tmp_path / "token").write_text(SECRET + "\n")
    with starting(served, Place(port=0, token=read_token(tmp_path / "token"))) as client:
        for given in ({}, {"Authorization": "Bearer " + "x" * 16}, {"Authorization": SECRET}):
            for path in ("/model", "/metrics", "/openapi.json", "/nothing"):
                assert client.send(path, **given)[0] == 401
        assert client.send("/model", Authorization=f"Bearer {SECRET}")[0] == 200
        assert client.send("/health")[0] == client.send("/")[0] == 200


@pytest.mark.parametrize("host", ["127.0.0.2", "::1"])
def test_it_answers_at_any_address_of_this_machine_alone(starting, served, host):
    with starting(served, Place(host=host, port=0)) as client:
        assert client.ask("/health") == (200, {"status": "ok"})


def test_a_page_from_elsewhere_does_not_reach_it_by_a_name_of_its_own(client):
    status, found = client.ask("/model", Host="evil.example")
    assert (status, found["error"]) == (421, "this server is called localhost or 127.0.0.1")


def test_nobody_is_sent_to_another_address(client):
    assert client.ask("/model/") == (404, {"error": "Not Found; see /openapi.json"})


def test_only_json_and_arrow_are_read(client):
    status, found, _ = client.send("/predict", b'{"ids": ["a 1"]}', "text/plain")
    assert status == 415
    assert b"expected a body of type application/json" in found


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"{", "the body: Invalid JSON"),
        (b"[]", "the body must be an object"),
        (b"{}", "ids: Field required"),
        (b'{"ids": [1.5]}', "ids.0: expected text or a whole number"),
        (b'{"ids": "a 1"}', "ids: Input should be a valid list"),
        (b'{"ids": ["a 1"], "more": 1}', "more: Extra inputs are not permitted"),
        (b'{"ids": ["\xff"]}', "the body: Invalid JSON"),
    ],
)
def test_a_wrong_body_gets_a_sentence(client, body, sentence):
    status, found, _ = client.send("/predict", body)
    assert status == 422
    assert json.loads(found)["error"].startswith(sentence)


def test_no_path_and_no_trace_leave(starting, served, monkeypatch, capfd):
    monkeypatch.setattr(type(served), "answers", lambda *_, **__: open("/secret/place"))  # noqa: SIM115
    with starting(served) as client:
        status, found = client.ask("/predict", {"ids": ["a 1"]})
    assert (status, found) == (500, {"error": "the server failed; its log says why"})
    assert capfd.readouterr().err.count("FileNotFoundError: [Errno 2] No such file") == 1


def test_a_body_and_its_rows_have_limits(starting, served):
    with starting(served, limits=Limits(body=200, rows=2)) as client:
        assert client.ask("/predict", {"ids": ["a 1", "a 2"]})[0] == 200
        status, found = client.ask("/predict", {"ids": ["a 1"] * 3})
        assert status == 422
        assert found["error"] == "ids may have 2 rows at most, got 3; ask several times"
        status, found = client.ask("/predict", {"ids": ["a 1"] * 100})
        assert status == 413
        assert found["error"] == "the body may have 200 bytes at most; ask several times"


def connected(client):
    host, port = client.address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=20)


CHUNKED = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_a_body_of_no_given_length_has_a_limit_too(starting, served):
    with starting(served, limits=Limits(body=200)) as client, connected(client) as connection:
        connection.sendall(CHUNKED + b"100\r\n" + b"x" * 256 + b"\r\n")
        found = connection.recv(1000)
        assert found.startswith(b"HTTP/1.1 413")
        assert b"\r\ncontent-length: 67\r\n" in found


def test_who_listens_to_nothing_while_it_sends_sees_the_refusal(starting, served):
    with starting(served, limits=Limits(body=1_000_000)) as client:
        assert client.send("/predict", b"x" * 9_000_000)[0] == 413


def test_a_body_that_comes_too_slowly_is_given_up(starting, served):
    with starting(served, limits=Limits(seconds=0.05)) as client, connected(client) as connection:
        connection.sendall(CHUNKED + b"100\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize(
    "said",
    [b"", b"GET /health HTTP/1.1\r\nHost: loc", b"GET /he", CHUNKED + b"1\r\nx\r\n1\r\n"],
)
def test_who_does_not_say_what_it_asks_is_not_waited_for(starting, served, monkeypatch, said):
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.3)
    with starting(served, limits=Limits(seconds=0.1)) as client, connected(client) as connection:
        connection.sendall(said)
        while connection.recv(1000):
            pass


def test_a_head_without_an_end_is_not_kept(starting, served):
    endless = b"GET /health HTTP/1.1\r\nX: " + b"x" * 50_000_000
    with (
        starting(served) as client,
        connected(client) as connection,
        pytest.raises(ConnectionError),
    ):
        connection.sendall(endless)


def test_who_has_said_it_may_wait_and_ask_again(starting, served, monkeypatch):
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.1)
    monkeypatch.setattr(type(served), "explanation", lambda *_: time.sleep(0.5))
    with starting(served) as client:
        connection = http.client.HTTPConnection(client.address.removeprefix("http://"), timeout=20)
        for _ in range(2):
            heads = {"Content-Type": "application/json"}
            connection.request("POST", "/explain", b'{"id": "a 1"}', heads)
            own = connection.sock
            assert connection.getresponse().read().endswith(b'"explanation": null, "notes": []}')
        assert connection.sock is own
        connection.close()


WORD = pa.DictionaryArray.from_arrays(pa.array([0] * 20, pa.int8()), ["a" * 100_000])


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        (pa.nulls(10**9), "nodes may have 10,000 rows at most, got 1,000,000,000"),
        (WORD, "a has no node 'aaa"),
        (WORD.cast(pa.string()).cast(pa.string_view()), "holds values of type string_view"),
        (pa.array([[1]]), "the column 'node' of nodes holds values of type list"),
        (pa.array([1.5]), "the name of a node must be text or a whole number, got 1.5"),
    ],
)
def test_a_small_body_cannot_stand_for_a_large_table(client, column, sentence):
    status, found, _ = client.send("/predict", streams(pa.table({"node": column})), ARROW)
    assert status == 422
    assert sentence in json.loads(found)["error"]


@pytest.mark.parametrize("column", [np.zeros(1000, int), pa.array(["a"] * 9).dictionary_encode()])
def test_what_is_compressed_is_refused(client, column):
    body = streams(pa.table({"node": column}), compression="zstd")
    status, found, _ = client.send("/predict", body, ARROW)
    assert status == 422
    assert b"the Arrow stream of nodes is compressed; send it as it is" in found


@pytest.mark.parametrize(
    "body",
    [
        b'{"ids": [' + b"[]," * 200_000 + b"[]]}",
        b'{"nodes": [{' + b",".join(b'"%d": []' % i for i in range(200_000)) + b"}]}",
        b"{" + b",".join(b'"%d": []' % i for i in range(200_000)) + b"}",
        b'{"nodes": [' + b",".join(b'{"%d": 1}' % i for i in range(9_000)) + b"]}",
    ],
)
def test_many_mistakes_get_one_short_sentence(client, body):
    for path in ("/predict", "/predict_new"):
        status, found, _ = client.send(path, body)
        assert status == 422
        assert len(found) < 300


def test_an_answer_that_takes_too_long_is_given_up(starting, served, monkeypatch):
    import threading

    done = threading.Event()
    monkeypatch.setattr(type(served), "explanation", lambda *_: done.wait())
    with starting(served, limits=Limits(seconds=0.05)) as client:
        status, found = client.ask("/explain", {"id": "a 1"})
        assert (status, found["error"]) == (503, "no answer within 0.05 s; ask for less")
        assert client.ask("/predict", {"ids": ["a 1"]})[0] == 200
        done.set()


def test_who_finds_too_many_waiting_is_told_to_come_again(starting, served, graph):
    with starting(served) as client:
        client.service.waiting[client.service.slow] = 64
        status, found = client.ask("/explain", {"id": "a 1"})
        assert (status, found["error"]) == (503, "64 requests are waiting already; come again")
        row = {"id": "new", **dict.fromkeys(graph.features, 0.5)}
        links = [{"source": "new", "target": "a 3"}]
        assert client.ask("/predict_new", {"nodes": [row], "edges": links})[0] == 200


def test_a_long_name_is_compared_by_its_beginning_so_that_nobody_waits_for_megabytes():
    known = "a" * 400
    assert did_you_mean(known + "b" * 10_000, [known]) == f"did you mean {known!r}? "


def test_requests_are_counted_as_prometheus_reads_them(starting, served):
    with starting(served) as client:
        client.ask("/predict", {"ids": ["a 1"]})
        client.ask("/predict", {"ids": ["b"]})
        client.send("/nothing/of/the/kind")
        lines = client.send("/metrics")[1].decode().splitlines()
    assert 'gcnii_requests_total{path="/predict",status="200"} 1' in lines
    assert 'gcnii_requests_total{path="/predict",status="422"} 1' in lines
    assert 'gcnii_requests_total{path="other",status="404"} 1' in lines
    assert 'gcnii_request_seconds_bucket{path="/predict",le="+Inf"} 2' in lines
    assert "gcnii_requests_in_flight 1" in lines
    assert f"gcnii_nodes {served.graph.n}" in lines
