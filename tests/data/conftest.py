"""A real HTTP server on this machine, and a data set of one small file that it serves."""

import hashlib
import threading
from http.server import ThreadingHTTPServer

import pytest
from support.local_server import CONTENT, Handler, add

from gcnii.data import download
from gcnii.data.catalog import File


@pytest.fixture
def server(monkeypatch):
    """A server at `address` with `files` {path: bytes}, `requests` and an optional `answer`."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download, "PAUSE", 0.001)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.files, http.requests, http.answer = {"/toy/file.bin": CONTENT}, [], None
        http.address = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield http
        http.shutdown()
        thread.join()


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """An empty cache folder, and no mirror or other settings from outside."""
    for name in ("GCNII_MIRROR", "GCNII_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GCNII_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def toy(monkeypatch, server, cache):
    """The data set `toy`: one file, whose upstream is the server."""
    file = File(
        "toy/file.bin",
        f"{server.address}/toy/file.bin",
        f"sha256:{hashlib.sha256(CONTENT).hexdigest()}",
    )
    return add(monkeypatch, "toy", file)
