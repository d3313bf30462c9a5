"""A handler for a test's HTTP server, and a way to put a data set into the catalog."""

from http.server import BaseHTTPRequestHandler

import numpy as np

from gcnii.data import CATALOG, Entry
from gcnii.data.catalog import Counts
from gcnii.graph import Graph

CONTENT = bytes(range(256)) * 1024


class Handler(BaseHTTPRequestHandler):
    """Sends server.files, unless `server.answer` is set and returns True: it has answered."""

    def do_GET(self):
        self.server.requests.append((self.path, self.headers.get("Range")))
        if not (self.server.answer and self.server.answer(self)):
            self.send(self.server.files.get(self.path))

    def send(self, content, length=None, resumable=True):
        """Send the first `length` bytes of the content, after announcing all of it."""
        if content is None:
            return self.send_error(404)
        wanted = self.headers.get("Range") if resumable else None
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        self.send_response(206 if wanted else 200)
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        self.wfile.write(content[start : None if length is None else start + length])

    def log_message(self, *arguments):
        pass


def add(monkeypatch, name, *files):
    """Put a data set with these files into the catalog for the duration of a test."""
    counts = Counts(1, 0, 1, 1)
    graph = Graph(X=np.ones((1, 1)), edges=np.zeros((2, 0)), name=name)
    entry = Entry(
        name=name,
        title="",
        read=lambda files: graph,
        counts=counts,
        licence="",
        source="",
        files=files,
    )
    monkeypatch.setitem(CATALOG, name, entry)
    return entry
