"""How many known nodes a server answers for in a second, and how long a new node takes.

    python benchmarks/serving.py [--nodes 20000] [--degree 10] [--layers 8] [--seconds 5]

trains GCNII for a few epochs on a graph that is drawn, starts `gcnii serve`, and asks it over
loopback, so that the client has its share of the same processors.  First for known nodes, one a
request, over connections that are kept open, each with one request at a time; then for new nodes
with ten edges each, one after the other over one connection.  The first requests do not count.
Beside the time is how long processors have worked for the server, which other processes on the
machine do not lengthen much.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import numpy as np

import gcnii

EDGES = 10
WARM_UP = 200  # requests


class Connection:
    """One that is kept open."""

    def __init__(self, address: str):
        host, port = address.removeprefix("http://").split(":")
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, request: bytes) -> None:
        """Ask, and do not wait."""
        self.socket.sendall(request)

    def receive(self) -> bytes:
        """The body of the answer, whose status must be 200."""
        found = b""
        while b"\r\n\r\n" not in found:
            found += self.socket.recv(1 << 16)
        head, _, body = found.partition(b"\r\n\r\n")
        if b" 200 " not in head.partition(b"\r\n")[0]:
            raise SystemExit(found.decode())
        length = int(re.search(rb"content-length: (\d+)", head, re.IGNORECASE)[1])  # type: ignore[index]
        while len(body) < length:
            body += self.socket.recv(1 << 16)
        return body


def request(path: str, question: object) -> bytes:
    """A question as the bytes of HTTP."""
    body = json.dumps(question).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


@dataclass(frozen=True)
class Server:
    """A process that serves."""

    address: str
    process: int

    def work(self) -> float:
        """Seconds that processors have worked for it."""
        words = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def known(server: Server, n: int, connections: int, seconds: float) -> tuple[float, float]:
    """Answers a second, and the server's own work for each, in milliseconds."""
    drawn = np.random.default_rng(0).integers(0, n, 10_000).tolist()
    asked = cycle([request("/predict", {"ids": [node]}) for node in drawn])
    each = [Connection(server.address) for _ in range(connections)]

    def ask() -> None:
        for one in each:
            one.send(next(asked))
        for one in each:
            one.receive()

    for _ in range(WARM_UP // connections):
        ask()
    count, start, work = 0, time.perf_counter(), server.work()
    while time.perf_counter() - start < seconds:
        ask()
        count += connections
    return count / (time.perf_counter() - start), 1000 * (server.work() - work) / count


def new(server: Server, graph: gcnii.Graph, count: int) -> tuple[np.ndarray, float]:
    """(count,) the time of each answer, and the server's own work for each, in milliseconds."""
    random, taken, one = np.random.default_rng(1), [], Connection(server.address)
    names, work = [f"x{j}" for j in range(graph.d)], 0.0
    for i in range(WARM_UP + count):
        if i == WARM_UP:
            work = server.work()
        numbers = graph.X[random.integers(graph.n)].tolist()
        node = {"id": f"new {i}", **dict(zip(names, numbers, strict=True))}
        ends = random.choice(graph.n, EDGES, replace=False).tolist()
        edges = [{"source": node["id"], "target": end} for end in ends]
        asked = request("/predict_new", {"nodes": [node], "edges": edges})
        start = time.perf_counter()
        one.send(asked)
        found = json.loads(one.receive())
        taken.append(1000 * (time.perf_counter() - start))
    print(f"  exact: {found['exact']}, radius {found['radius']}, difference {found['error']}")
    return np.array(taken[WARM_UP:]), 1000 * (server.work() - work) / count


@contextmanager
def served(bundle: Path, *flags: str) -> Iterator[Server]:
    """A server of a bundle."""
    words = (sys.executable, "-m", "gcnii", "serve", str(bundle), "--port", "0", *flags)
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(r"http://[\d.:]+", line):
                yield Server(found[0], process.pid)
                break
            print(line, end="")
        process.terminate()


def main() -> None:
    """Train, serve, ask, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--degree", type=float, default=10.0)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--radius", type=int, default=2)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--new", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        drawn = gcnii.load("csbm", n=asked.nodes, degree=asked.degree, classes=5, features=32)
        graph = gcnii.Graph(
            X=drawn.X,
            edges=drawn.edges,
            y=drawn.y,
            splits=drawn.splits,
            features=tuple(f"x{j}" for j in range(drawn.d)),
        )
        gcnii.save(graph, place / "graph.safetensors")
        graph = gcnii.load(place / "graph.safetensors")
        gcnii.fit(graph, "gcnii", layers=asked.layers, epochs=60, verbose=False).save(place / "b")
        print(f"{graph.n:,} nodes, {graph.m:,} edges, {asked.layers} layers")
        with served(place / "b", "--radius", str(asked.radius)) as server:
            for _ in range(asked.rounds):
                print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
                rate, work = known(server, graph.n, asked.connections, asked.seconds)
                print(f"  known nodes: {rate:,.0f} requests a second; own work {work:.2f} ms each")
                taken, work = new(server, graph, asked.new)
                half, most = np.percentile(taken, [50, 99])
                print(
                    f"  a new node: median {half:.1f} ms, 99 of 100 within {most:.1f} ms;", end=""
                )
                print(f" own work {work:.1f} ms each")


if __name__ == "__main__":
    main()
