"""The server: start, signals, and a bundle that is replaced while it runs."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gcnii.errors import InputError, one_line
from gcnii.serving.app import Service, create, keep_notices
from gcnii.serving.guard import Guard, is_loopback
from gcnii.serving.records import Limits
from gcnii.serving.served import Served

LOOK = 1.0  # seconds between two looks at the bundle
CONNECTIONS = 1000
LEAST_TOKEN = 16  # characters
HEAD, HEAD_SECONDS = 1 << 16, 10.0  # bytes and seconds in which a request says what it is


@dataclass(frozen=True)
class Place:
    """Where to listen, and to whom.

    watch  a bundle, which is loaded anew when its files change
    log    whether to write a line for each request
    """

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    watch: Path | None = None
    log: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.port < 1 << 16:
            raise InputError(f"a port is a number from 0 to 65535, got {self.port}")
        if self.token is None and not is_loopback(self.host):
            raise InputError(
                f"{self.host} can be reached from other machines, so a token is needed "
                "(--token-file)"
            )


def read_token(path: Path) -> str:
    """The first line of a file; InputError unless it can be a token."""
    try:
        token = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as a token: {error}") from None
    if len(token) < LEAST_TOKEN or token.split() != [token]:
        raise InputError(
            f"a token is one word of {LEAST_TOKEN} characters or more, and that of {path} is not; "
            "make one with: openssl rand -hex 32"
        )
    return token


class Connection(HttpToolsProtocol):
    """uvicorn's, which ends where a head, or the rest of a body that was refused, takes too long.

    head  bytes so far of a head that has no end yet; None: there is none such
    """

    head: int | None = 0
    timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._hurry()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.head is not None:
            self.head += len(data)
            if self.head > HEAD:
                self.transport.close()

    def on_message_begin(self) -> None:
        self.head = 0
        self._hurry()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self.head = None
        self._stop()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.more_body:
            self._hurry()

    def _hurry(self) -> None:
        self._stop()
        self.timer = self.loop.call_later(HEAD_SECONDS, self.timeout_keep_alive_handler)

    def _stop(self) -> None:
        if self.timer is not None:
            self.timer.cancel()


class Server(uvicorn.Server):
    """uvicorn's, which leaves signals alone and says where it listens."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing: `run` decides what they do."""
        yield

    @property
    def address(self) -> str:
        """Where it listens, once it has started."""
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def server_of(service: Service, place: Place) -> Server:
    """What serves, and is not started yet."""
    app = Guard(create(service), service, place.token, log=place.log)
    return Server(
        uvicorn.Config(
            app,
            host=place.host,
            port=place.port,
            http=Connection,
            ws="none",
            lifespan="off",
            access_log=False,
            log_level="error",
            server_header=False,
            limit_concurrency=CONNECTIONS,
            timeout_graceful_shutdown=int(service.limits.seconds) + 1,
        )
    )


def run(load: Callable[[], Served], place: Place, limits: Limits) -> None:
    """Serve until SIGTERM or Ctrl-C; what was asked before is answered.

    load  makes what is served; on SIGHUP, and when the watched bundle changes, it is called again
    """
    keep_notices()
    again = asyncio.Event()
    # Before it is heeded, it would end the process; and a bundle may change while it is loaded.
    signal.signal(signal.SIGHUP, lambda *_: again.set())
    files = _files(place.watch)

    def loaded() -> Served:
        served = load()
        keep_notices()  # which one that loads quietly has turned off
        return served

    asyncio.run(_serve(Service(loaded(), limits), loaded, place, again, files))


async def _serve(
    service: Service, load: Callable[[], Served], place: Place, again: asyncio.Event, files: Files
) -> None:
    server, loop = server_of(service, place), asyncio.get_running_loop()

    def stop() -> None:
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    loop.add_signal_handler(signal.SIGHUP, again.set)
    beside = _reload(service, load, again), _watch(place.watch, files, again), _say(server)
    tasks = [asyncio.create_task(one) for one in beside]
    try:
        await server.serve()
    except SystemExit:  # uvicorn has said why, and exits as if of itself
        raise InputError(
            f"cannot listen on {place.host}:{place.port}; choose another --port, or stop what "
            "listens there"
        ) from None
    finally:
        service.close()
        for task in tasks:
            task.cancel()


async def _say(server: Server) -> None:
    while not server.started:
        await asyncio.sleep(0.01)
    print(f"gcnii: serving at {server.address} (Ctrl-C stops it)", file=sys.stderr, flush=True)


async def _reload(service: Service, load: Callable[[], Served], again: asyncio.Event) -> None:
    """Replace what is served as a whole; requests that are being answered keep what they have."""
    while True:
        await again.wait()
        again.clear()
        try:
            service.served = await asyncio.to_thread(load)
        except Exception as error:  # whatever is wrong with the new bundle, the old one is served
            service.metrics.reloads["failed"] += 1
            said = one_line(f"{type(error).__name__}: {error}")
            print(f"gcnii: the old bundle is still served: {said}", file=sys.stderr, flush=True)
        else:
            service.metrics.reloads["done"] += 1
            print(f"gcnii: now serving {service.served.name}", file=sys.stderr, flush=True)


Files = dict[Path, tuple[int, int]]


async def _watch(bundle: Path | None, loaded: Files, again: asyncio.Event) -> None:
    """Have files that have changed loaded as soon as they rest: they may come one by one."""
    before = loaded
    while bundle is not None:
        await asyncio.sleep(LOOK)
        now = _files(bundle)
        if now == before != loaded:
            loaded = now
            again.set()
        before = now


def _files(bundle: Path | None) -> Files:
    """All files of a bundle, and what differs when one is replaced."""
    found = {}
    for folder, _, names in os.walk(bundle) if bundle else ():
        for path in (Path(folder, name) for name in names):
            with suppress(OSError):  # it is being replaced
                known = path.stat()
                found[path] = known.st_mtime_ns, known.st_ino
    return found
