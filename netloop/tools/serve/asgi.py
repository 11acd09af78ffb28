"""One request of HTTP in ASGI: its body up to a limit, its answer, and whether its client is still there."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Generator, Iterable
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from netloop.tools.serve.errors import UnknownEncoding, too_large
from netloop.values.diagnostics import Finding, quoted, reason

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = Iterable[tuple[str, str]]

JSON = "application/json"
DISCONNECT = "http.disconnect"


class Gone(Exception):
    """The client has closed its connection, and nobody waits for an answer."""


class Call:
    """A request and the way of its answer.

    Attributes:
        method: the method of HTTP.
        path: the path, without percent signs.
        is_gone: whether the client has closed its connection, as far as somebody looked.
        is_read: whether the whole body is read.
    """

    def __init__(self, scope: Message, receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self._headers: dict[bytes, bytes] = dict(scope["headers"])
        self.is_gone = False
        self.is_read = self.header("content-length") in (None, "0") and self.header("transfer-encoding") is None
        self._receive, self._send = receive, send

    def header(self, name: str) -> str | None:
        """A header of the request, by its name in small letters."""
        value = self._headers.get(name.encode())
        return None if value is None else value.decode("latin-1")

    async def body(self, largest: int) -> bytes:
        """Read the body of the request.

        Args:
            largest: the most bytes.

        Raises:
            TooLarge, UnknownEncoding: there are more bytes, or they are compressed.
            Gone: the client has not sent all of it.
        """
        encoding, length = self.header("content-encoding"), self.header("content-length")
        if encoding not in (None, "", "identity"):
            what, fix = f"the request is compressed by {quoted(encoding)}", "send it as it is"
            raise UnknownEncoding(Finding("NL670", what, "", reason("NL670"), fix))
        if length is not None and length.isdecimal() and int(length) > largest:
            raise too_large(int(length), largest)
        parts: list[bytes] = []
        size, goes_on = 0, True
        while goes_on:
            message = await self._receive()
            if message["type"] == DISCONNECT:
                raise Gone
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > largest:
                raise too_large(None, largest)
            goes_on = message.get("more_body", False)
        self.is_read = True
        return b"".join(parts)

    async def reply(self, value: Any, status: int = 200, headers: Headers = ()) -> None:
        """Answer by a value as JSON."""
        await self.answer(json.dumps(value).encode(), JSON, status, headers)

    async def answer(self, body: bytes, kind: str, status: int = 200, headers: Headers = ()) -> None:
        """Answer by some bytes of a content type."""
        await self.begin(kind, status, [("content-length", str(len(body))), *headers])
        await self._send({"type": "http.response.body", "body": body})

    async def begin(self, kind: str, status: int = 200, headers: Headers = ()) -> None:
        """Begin an answer of a content type, whose parts and whose end follow."""
        lines = [(name.encode(), value.encode()) for name, value in (("content-type", kind), *headers)]
        await self._send({"type": "http.response.start", "status": status, "headers": lines})

    async def part(self, data: bytes, is_last: bool = False) -> None:
        """Send a part of the answer."""
        await self._send({"type": "http.response.body", "body": data, "more_body": not is_last})

    @contextmanager
    def watched(self, future: Future[Any]) -> Generator[None]:
        """A context in which a future is cancelled when the client goes; its end cancels what still runs."""

        async def watch() -> None:
            while (await self._receive())["type"] != DISCONNECT:
                pass
            self.is_gone = True
            future.cancel()

        task = asyncio.ensure_future(watch())
        try:
            yield
        finally:
            task.cancel()
            future.cancel()


async def lifespan(receive: Receive, send: Send) -> None:
    """Answer a server of ASGI that there is nothing to begin and to end."""
    for step in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{step}.complete"})
