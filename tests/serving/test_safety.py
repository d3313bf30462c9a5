"""What a server refuses, and what it never says."""

import json
import socket

import pytest

from gcnii.errors import InputError
from gcnii.serving.app import Limits
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


def test_a_page_from_elsewhere_does_not_reach_it_by_a_name_of_its_own(client):
    status, found = client.ask("/model", Host="evil.example")
    assert (status, found["error"]) == (421, "this server is called localhost or 127.0.0.1")


def test_only_json_and_arrow_are_read(client):
    status, found, _ = client.send("/predict", b'{"ids": ["a 1"]}', "text/plain")
    assert status == 415
    assert b"expected a body of type application/json" in found


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"{", "the body: Invalid JSON"),
        (b"[]", "the body: Input should be an object"),
        (b"{}", "ids: Field required"),
        (b'{"ids": [1.5]}', "ids.0"),
        (b'{"ids": ["a 1"], "more": 1}', "more: Extra inputs are not permitted"),
        (b'{"ids": ["\xff"]}', "the body: Invalid JSON"),
    ],
)
def test_a_wrong_body_gets_a_sentence(client, body, sentence):
    status, found, _ = client.send("/predict", body)
    assert status == 422
    assert json.loads(found)["error"].startswith(sentence)


def test_no_path_and_no_trace_leave(client, served, monkeypatch, capfd):
    monkeypatch.setattr(type(served), "answers", lambda *_, **__: open("/secret/place"))  # noqa: SIM115
    status, found = client.ask("/predict", {"ids": ["a 1"]})
    assert (status, found) == (500, {"error": "the server failed; its log says why"})
    assert "/secret/place" in capfd.readouterr().err


def test_a_body_and_its_rows_have_limits(starting, served):
    with starting(served, limits=Limits(body=200, rows=2)) as client:
        assert client.ask("/predict", {"ids": ["a 1", "a 2"]})[0] == 200
        status, found = client.ask("/predict", {"ids": ["a 1"] * 3})
        assert status == 422
        assert found["error"] == "ids may have 2 rows at most, got 3; ask several times"
        status, found = client.ask("/predict", {"ids": ["a 1"] * 100})
        assert status == 413
        assert found["error"] == "the body may have 200 bytes at most; ask several times"


def test_a_body_of_no_given_length_has_a_limit_too(starting, served):
    with starting(served, limits=Limits(body=200)) as client:
        host, port = client.address.removeprefix("http://").split(":")
        head = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(head + b"100\r\n" + b"x" * 256 + b"\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 413")


def test_an_answer_that_takes_too_long_is_given_up(starting, served, monkeypatch):
    import threading

    done = threading.Event()
    monkeypatch.setattr(type(served), "explanation", lambda *_: done.wait())
    with starting(served, limits=Limits(seconds=0.05)) as client:
        status, found = client.ask("/explain", {"id": "a 1"})
        assert (status, found["error"]) == (503, "no answer within 0.05 s; ask for less")
        assert client.ask("/predict", {"ids": ["a 1"]})[0] == 200
        done.set()


def test_who_finds_too_many_waiting_is_told_to_come_again(starting, served):
    with starting(served) as client:
        client.service.waiting = 64
        status, found = client.ask("/explain", {"id": "a 1"})
        assert (status, found["error"]) == (503, "64 requests are waiting already; come again")


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
