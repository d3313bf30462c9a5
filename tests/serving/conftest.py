"""A server in a thread of the test, which is asked by HTTP."""

import asyncio
import json
import threading
import urllib.error
import urllib.request
import warnings
from contextlib import contextmanager

import pytest
from support.run_pages import a_graph, trained
from support.waiting import wait_until

from gcnii.serving.app import Service, note
from gcnii.serving.records import Limits
from gcnii.serving.served import Served
from gcnii.serving.server import Place, server_of


class Client:
    """Asks a server; `ask` returns the status and the document."""

    def __init__(self, address, service):
        self.address, self.service = address, service

    def send(self, path, body=None, kind="application/json", **headers):
        """The status, the body and the headers of the answer."""
        heads = {"Content-Type": kind} | headers
        request = urllib.request.Request(self.address + path, body, heads)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read(), answer.headers
        except urllib.error.HTTPError as error:
            return error.code, error.read(), error.headers

    def ask(self, path, document=None, **headers):
        body = None if document is None else json.dumps(document).encode()
        status, found, _ = self.send(path, body, **headers)
        return status, json.loads(found)


@contextmanager
def serving(served, place=None, limits=None):
    service = Service(served, limits or Limits())
    server = server_of(service, place or Place(port=0))
    thread = threading.Thread(target=asyncio.run, args=(server.serve(),))
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = note
        thread.start()
        try:
            wait_until(lambda: server.started)
            yield Client(server.address, service)
        finally:  # else the process of the tests never ends
            server.should_exit = True
            thread.join()
    service.quick.shutdown()
    service.slow.shutdown()


@pytest.fixture(scope="session")
def graph():
    return a_graph(names=("a",), unknown=3)


@pytest.fixture(scope="session")
def result(graph):
    return trained(graph, "gcnii", layers=4)


@pytest.fixture(scope="session")
def served(graph, result):
    return Served.of(result, graph, "first", device="cpu")


@pytest.fixture(scope="session")
def client(served):
    with serving(served) as found:
        yield found


@pytest.fixture
def starting():
    return serving
