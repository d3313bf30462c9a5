"""What every request passes before the application sees it: who asks, how much, and how long."""

from __future__ import annotations

import asyncio
import hmac
import sys
import time
from contextlib import suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

from gcnii.serving.app import Service, as_json

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

OPEN = ("/", "/health")  # without a token: the page asks for it, and has no answers itself
KNOWN = (*OPEN, "/predict", "/predict_new", "/explain", "/model", "/metrics", "/openapi.json")
DROPPED, PAUSE = 10, 1.0  # times the limit of a body; seconds without a byte


class Guard:
    """ASGI: demand the token, bound the body, count.

    token  None: whoever reaches the server may ask, if it is called by a name of this machine, so
           that no page from elsewhere reaches it through a browser by a name of its own
    log    whether to write a line for each request
    """

    def __init__(self, app: ASGIApp, service: Service, token: str | None, *, log: bool = False):
        self.app, self.service, self.log = app, service, log
        self.token = None if token is None else token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        metrics, start, status = self.service.metrics, time.perf_counter(), 500
        path = scope["path"] if scope["path"] in KNOWN else "other"

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] += [(b"x-content-type-options", b"nosniff")]
            await send(message)

        metrics.in_flight += 1
        try:
            await self._pass(scope, receive, answer)
        finally:
            seconds = time.perf_counter() - start
            metrics.in_flight -= 1
            metrics.answered(path, status, seconds)
            if self.log:
                line = f"{scope['method']} {path} {status} {1000 * seconds:.1f} ms"
                print(f"gcnii: {line}", file=sys.stderr)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._refuse_stranger(scope)
            seconds = self.service.limits.seconds
            body = await asyncio.wait_for(self._body(scope, receive), seconds)
        except TimeoutError:
            slow = as_json({"error": "the body did not come in time; send it faster"}, 408)
            return await slow(scope, receive, send)
        except HTTPException as error:
            await self._drop(scope, receive)
            refusal = as_json({"error": error.detail}, error.status_code, error.headers)
            return await refusal(scope, receive, send)
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return whole.pop() if whole else await receive()

        await self.app(scope, again, send)

    def _refuse_stranger(self, scope: Scope) -> None:
        headers = dict(scope["headers"])
        if self.token is None:
            host = headers.get(b"host", b"").decode("latin-1").lower()
            name = host[1:].partition("]")[0] if host[:1] == "[" else host.partition(":")[0]
            if not is_loopback(name):
                raise HTTPException(421, "this server is called localhost or 127.0.0.1")
        elif scope["path"] not in OPEN:
            kind, _, given = headers.get(b"authorization", b"").partition(b" ")
            right = hmac.compare_digest(given.strip(), self.token)
            if kind.lower() != b"bearer" or not right:
                said = "send the token: Authorization: Bearer TOKEN"
                raise HTTPException(401, said, {"WWW-Authenticate": "Bearer"})

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        most, body = self.service.limits.body, bytearray()
        said = int(dict(scope["headers"]).get(b"content-length", 0))
        message: Message = {"more_body": True}
        while message.get("more_body", False) and max(said, len(body)) <= most:
            message = await receive()
            body += message.get("body", b"")
        if max(said, len(body)) > most:
            raise HTTPException(413, f"the body may have {most:,} bytes at most; ask several times")
        return bytes(body)

    async def _drop(self, scope: Scope, receive: Receive) -> None:
        """Read on, for clients that listen to nothing while they send; but not for ever."""
        if b"expect" in dict(scope["headers"]):  # this one asks first
            return
        message: Message = {"more_body": True}
        limits, size = self.service.limits, 0
        with suppress(TimeoutError):
            async with asyncio.timeout(limits.seconds):
                while message.get("more_body", False) and size < DROPPED * limits.body:
                    message = await asyncio.wait_for(receive(), PAUSE)
                    size += len(message.get("body", b""))


def is_loopback(host: str) -> bool:
    """Whether this machine alone is called so."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
