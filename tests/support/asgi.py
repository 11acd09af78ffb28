"""A client of an application of ASGI, in this process."""

import asyncio
import json
from typing import Any, NamedTuple

SECONDS = 60


class Answer(NamedTuple):
    """The answer of an application: its status, its headers by their names in small letters, and its parts."""

    status: int
    headers: dict[str, str]
    parts: list[bytes]

    @property
    def body(self) -> bytes:
        return b"".join(self.parts)

    @property
    def json(self) -> Any:
        return strict(self.body)

    @property
    def events(self) -> list[Any]:
        return [strict(line.removeprefix(b"data: ")) for line in self.body.splitlines() if line]


def strict(text: bytes) -> Any:
    """A value of JSON, which has neither NaN nor Infinity."""

    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


class Client:
    """A client of one request, which stays until it leaves."""

    def __init__(self, method, path, body=b"", headers=()):
        lines = [(name.lower().encode(), value.encode()) for name, value in dict(headers).items()]
        if body:
            lines.append((b"content-length", str(len(body)).encode()))
        self.scope = {"type": "http", "method": method, "path": path, "headers": lines, "query_string": b""}
        half = len(body) // 2
        self._messages = [{"body": body[:half], "more_body": True}, {"body": body[half:], "more_body": False}]
        self._gone = asyncio.Event()
        self.begun: dict[str, Any] = {}
        self.parts = asyncio.Queue[bytes]()

    async def receive(self):
        if self._messages:
            return {"type": "http.request", **self._messages.pop(0)}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        if message["type"] == "http.response.start":
            assert not self.begun
            self.begun = message
        else:
            self.parts.put_nowait(message["body"])

    def leave(self, body_sent=True):
        if not body_sent:
            self._messages.clear()
        self._gone.set()

    @property
    def answer(self) -> Answer:
        headers = {name.decode(): value.decode() for name, value in self.begun["headers"]}
        return Answer(self.begun["status"], headers, [self.parts.get_nowait() for _ in range(self.parts.qsize())])


async def asked(app, method, path, body=b"", headers=()) -> Answer:
    """The answer of an application to one request."""
    client = Client(method, path, body, headers)
    await asyncio.wait_for(app(client.scope, client.receive, client.send), SECONDS)
    return client.answer


def ask(app, method, path, body=b"", headers=()) -> Answer:
    """The same, outside of a loop of events."""
    return asyncio.run(asked(app, method, path, body, headers))
