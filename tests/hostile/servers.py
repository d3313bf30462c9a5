"""A server that lies about the file that it is asked for."""

import hashlib
import os
import time
from contextlib import ExitStack, suppress
from http.server import ThreadingHTTPServer
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any
from unittest import mock

from support.local_server import CONTENT, Handler

from gcnii.data import CATALOG, Entry, download, fetch
from gcnii.data.catalog import Counts, File
from hostile.damage import damaged_bytes
from hostile.judging import Lost, answer_of, contents

ENDLESS = 64 << 20  # bytes after which the test itself gives up
PLACES = (
    *(
        "/toy/file.bin",
        "//127.0.0.1:1/x",
        "ftp://127.0.0.1:1/x",
        "file:///etc/hostname",
        "http://[",
    ),
    *("", "http://", "data:,x", "/\x01", "?", "https://127.0.0.1:1/", "http://127.0.0.1:99999/"),
)
LENGTHS = ("0", "-1", "abc", "1e3", "9" * 30, "", "262145", "100", "1, 2", "\x0b7")
LINES = (
    b"",
    b"\r\n",
    b"HTTP/1.1\r\n\r\n",
    b"HTTP/1.1 abc OK\r\n\r\n",
    b"HTTP/1.1 99999 OK\r\n\r\n",
    b"220 ready\r\n",
    b"\x16\x03\x01\x02\x00",
    b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500 + b"\r\n",
    b"HTTP/1.1 200 " + b"x" * 100_000 + b"\r\n\r\n",
    b"HTTP/1.1 404 \x1b[31mred\x1b[0m\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 403 " + b"no " * 2000 + b"\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFF\r\nabc",
    b"HTTP/1.1 100 Continue\r\n\r\n" * 200,
)


class Servers:
    """The right bytes are in the cache; or there is an error, and nothing in the cache."""

    name, few, quick, long = "servers", 4, 25, 500

    def __init__(self, home: Path):
        self.stack = ExitStack()
        self.http: Any = self.stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        self.http.handle_error = lambda *_: None  # clients hang up on liars
        self.http.daemon_threads = True
        thread = Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        self.stack.callback(thread.join)
        self.stack.callback(self.http.shutdown)
        address = f"http://127.0.0.1:{self.http.server_port}"
        digest = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"
        file = File("toy/file.bin", f"{address}/toy/file.bin", digest)
        entry = Entry(
            name="toy",
            title="",
            read=lambda files: None,  # type: ignore[arg-type,return-value]
            counts=Counts(1, 0, 1, 1),
            licence="",
            source="",
            files=(file,),
        )
        self.stack.enter_context(mock.patch.dict(CATALOG, toy=entry))
        limits = {"PAUSE": 0.001, "TIMEOUT": 0.15, "WINDOW": 0.1, "LARGEST": 4 << 20}
        for name, value in limits.items():
            self.stack.enter_context(mock.patch.object(download, name, value, create=True))
        self.address = address

    def attempt(self, random: Random, folder: Path) -> None:
        """A server that answers each request in a way of its own, and `fetch`."""
        told: list[str] = []

        def answer(handler: Any) -> bool:
            how = random.choice(ANSWERS)
            told.append(how.__name__.strip("_"))
            with suppress(OSError):
                how(random, handler, told)
            handler.close_connection = True
            return True

        self.http.files, self.http.requests, self.http.answer = {}, [], answer
        mirror = f"{self.address}/mirror" if random.random() < 0.3 else ""
        words = {"GCNII_DATA": str(folder / "cache"), "GCNII_MIRROR": mirror, "GCNII_OFFLINE": ""}
        with mock.patch.dict(os.environ, words | {"no_proxy": "127.0.0.1"}):
            found = answer_of(lambda: fetch("toy"))
        kept = contents(folder)
        right = {"cache/toy/file.bin": hashlib.sha256(CONTENT).hexdigest()}
        if kept != (right if found.value else {}):
            raise Lost(f"{told}: the cache holds {sorted(kept)} after {found.sentence!r:.200}")

    def close(self) -> None:
        """End the server."""
        self.stack.close()


def _right(random: Random, handler: Any, told: list[str]) -> None:
    handler.send(CONTENT)


def _wrong_bytes(random: Random, handler: Any, told: list[str]) -> None:
    handler.send(damaged_bytes(random, CONTENT)[0])


def _cut(random: Random, handler: Any, told: list[str]) -> None:
    handler.send(CONTENT, length=random.randrange(len(CONTENT)), resumable=random.random() < 0.7)


def _refused(random: Random, handler: Any, told: list[str]) -> None:
    code = random.choice(
        (400, 401, 403, 404, 407, 410, 416, 418, 429, 500, 502, 503, 504, 206, 304)
    )
    told[-1] += f" {code}"
    handler.send_error(code)


def _redirected(random: Random, handler: Any, told: list[str]) -> None:
    place = random.choice(PLACES)
    told[-1] += f" to {place!r}"
    handler.wfile.write(
        f"HTTP/1.0 {random.choice((301, 302, 303, 307, 308, 300))} Elsewhere\r\n"
        f"Location: {place}\r\n\r\n".encode("latin-1")
    )


def _another_length(random: Random, handler: Any, told: list[str]) -> None:
    length = random.choice(LENGTHS)
    told[-1] += f" {length!r}"
    handler.wfile.write(f"HTTP/1.0 200 OK\r\nContent-Length: {length}\r\n\r\n".encode() + CONTENT)


def _another_range(random: Random, handler: Any, told: list[str]) -> None:
    wanted = (handler.headers.get("Range") or "bytes=0-").removeprefix("bytes=").removesuffix("-")
    words = (f"bytes {wanted}-", f"bytes {wanted}-9/3", "bytes 7-9/10", "bytes */0", "x", wanted)
    handler.wfile.write(
        f"HTTP/1.0 206 Partial\r\nContent-Range: {random.choice(words)}\r\n\r\n".encode()
        + CONTENT[random.choice((0, int(wanted))) :]
    )


def _strange_lines(random: Random, handler: Any, told: list[str]) -> None:
    line = random.choice(LINES)
    told[-1] += f" {line[:40]!r}"
    handler.wfile.write(line)


def _endless(random: Random, handler: Any, told: list[str]) -> None:
    handler.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n")
    for _ in range(ENDLESS // len(CONTENT)):
        handler.wfile.write(CONTENT)
    told.append("to its end")


def _slow(random: Random, handler: Any, told: list[str]) -> None:
    """One byte at a time, which no timeout between two bytes notices."""
    handler.wfile.write(b"HTTP/1.0 200 OK\r\n")
    if random.random() < 0.5:
        handler.wfile.write(b"Content-Length: 262144\r\n\r\n")
    for _ in range(40):
        handler.wfile.write(b"X")
        handler.wfile.flush()
        time.sleep(0.02)
    told.append("to its end")


def _silent(random: Random, handler: Any, told: list[str]) -> None:
    handler.rfile.read(1)  # until the other side hangs up


ANSWERS = (
    *(_right, _wrong_bytes, _cut, _cut, _refused, _redirected, _another_length, _another_range),
    *(_strange_lines, _strange_lines, _endless, _slow, _silent),
)
