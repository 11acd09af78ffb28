"""The V2 protocol (Open Inference Protocol) over HTTP, as an application of ASGI."""

import asyncio
import re
import traceback
from collections.abc import Mapping
from concurrent.futures import CancelledError

from netloop import __version__
from netloop.tools.serve.answer import Outputs
from netloop.tools.serve.asgi import JSON, Call, Gone, Message, Receive, Send, lifespan
from netloop.tools.serve.errors import ServeError, WrongMethod, no_such
from netloop.tools.serve.metrics import prometheus
from netloop.tools.serve.served_model import FINAL, VERSION, AnyService, ResponseStream, ServedModel
from netloop.tools.serve.v2 import Inference, Json, inference, response
from netloop.values.checked_attributes import whole
from netloop.values.diagnostics import Finding, NetloopError, did_you_mean, listed, quoted, reason

BINARY, EVENTS = "application/octet-stream", "text/event-stream"
METRICS = "text/plain; version=0.0.4; charset=utf-8"
"""The content type of Prometheus."""
HEADER_LENGTH = "inference-header-content-length"
"""The header with the number of bytes of JSON, after which there are raw bytes."""
MAX_BODY = 256 << 20
EXTENSIONS = ["binary_tensor_data", "sequence", "model_repository"]
SERVER: Json = {"name": "netloop", "version": __version__, "extensions": EXTENSIONS}
UNREADY, INTERNAL = 503, 500
MODEL = r"/v2/models/(?P<name>[^/]+)(?:/versions/(?P<version>[^/]+))?"
"""The path of a model."""
REFUSED = NetloopError, TypeError, ValueError, OverflowError, OSError
"""The errors of requests that do not fit, or whose computation failed, and of models that cannot be loaded again."""


class Endpoint:
    """Services as models behind the V2 protocol: an application of ASGI, which any server of ASGI runs.

    ``uvicorn file:endpoint`` serves ``endpoint = Endpoint({"totals": sequences})``. The services are its caller's, who
    closes them.

    Args:
        models: a ``Server``, ``Sequences`` or ``Streams`` for each name.
        max_body: the most bytes of a request that are read.

    Raises:
        TypeError, ValueError: an argument is not of its range.
        NetworkError: an input or output has a type that the protocol has not.
    """

    def __init__(self, models: Mapping[str, AnyService | ServedModel], *, max_body: int = MAX_BODY) -> None:
        self.max_body = whole(1)("max_body", max_body)
        self.models = {
            name: of if isinstance(of, ServedModel) else ServedModel(name, of) for name, of in models.items()
        }

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, as a server of ASGI calls an application."""
        if scope["type"] == "lifespan":
            await lifespan(receive, send)
            return
        if scope["type"] != "http":
            raise TypeError(f"the V2 protocol is one of HTTP, and the connection is of {scope['type']}")
        call = Call(scope, receive, send)
        try:
            await self._route(call)
        except Gone:
            pass
        except (CancelledError, asyncio.CancelledError):
            if not call.is_gone:
                raise
        except Exception as error:  # a client waits for an answer, whatever failed
            # what is left of a body would be read as the next request
            await call.reply(*failure(error), [] if call.is_read else [("connection", "close")])

    async def _route(self, call: Call) -> None:
        for method, pattern, act in self._ROUTES:
            match = pattern.fullmatch(call.path)
            if match is None:
                continue
            if call.method not in (method, "HEAD" if method == "GET" else method):
                what = f"{quoted(call.path)} has no method {quoted(call.method)}"
                raise WrongMethod(Finding("NL671", what, "", reason("NL671"), f"send {method}"))
            await act(self, call, **match.groupdict())
            return
        raise no_such(f"there is no path {quoted(call.path)}", "ask for /v2 or /v2/models/NAME")

    def model(self, name: str, version: str | None = None) -> ServedModel:
        """The model of a name; raises NoSuchModel."""
        if name not in self.models:
            raise no_such(f"there is no model {quoted(name)}", did_you_mean(name, self.models) or self._names)
        if version not in (None, "", VERSION):
            raise no_such(f"model {quoted(name)} has no version {quoted(version)}", f"ask for version {VERSION}")
        return self.models[name]

    @property
    def _names(self) -> str:
        return f"there are {listed([*self.models])}"

    @property
    def is_ready(self) -> bool:
        """Whether no service is closed."""
        return not any(model.service.is_closed for model in self.models.values())

    def index(self) -> list[dict[str, str]]:
        """The models, each with its version and state."""
        return [{"name": name, "version": VERSION, "state": "READY"} for name in self.models]

    async def load(self, name: str) -> None:
        """Load a model again; other requests are answered meanwhile, also those of the model."""
        await asyncio.get_running_loop().run_in_executor(None, self.model(name).load)

    # ------------------------------------------------------------------ paths

    async def _server(self, call: Call) -> None:
        await call.reply(SERVER)

    async def _health(self, call: Call, which: str) -> None:
        await call.reply({which: self.is_ready}, 200 if self.is_ready else UNREADY)

    async def _metadata(self, call: Call, name: str, version: str | None) -> None:
        await call.reply(self.model(name, version).metadata())

    async def _model_ready(self, call: Call, name: str, version: str | None) -> None:
        is_ready = not self.model(name, version).service.is_closed
        await call.reply({"name": name, "ready": is_ready}, 200 if is_ready else UNREADY)

    async def _metrics(self, call: Call) -> None:
        text = prometheus({name: model.service.metrics() for name, model in self.models.items()})
        await call.answer(text.encode(), METRICS)

    async def _index(self, call: Call) -> None:
        await call.body(self.max_body)
        await call.reply(self.index())

    async def _load(self, call: Call, name: str) -> None:
        await call.body(self.max_body)
        await self.load(name)
        await call.reply({})

    async def _infer(self, call: Call, name: str, version: str | None) -> None:
        model, request = self.model(name, version), await self._request(call)
        future = model.submit(request)
        with call.watched(future):
            outputs = await asyncio.wrap_future(future)
        head, raw = response(name, request, request.wanted(outputs), {})
        headers = [(HEADER_LENGTH, str(len(head)))] if raw else []
        await call.answer(head + raw, BINARY if raw else JSON, headers=headers)

    async def _generate_stream(self, call: Call, name: str, version: str | None) -> None:
        model, request = self.model(name, version), await self._request(call)
        stream = ResponseStream(model, request)  # what is refused at once has a status of its own
        text = Inference({}, id=request.id)

        async def send(outputs: Outputs, parameters: Json) -> None:
            await call.part(b"data: " + response(name, text, outputs, parameters)[0] + b"\n\n")

        with call.watched(stream.future):
            await call.begin(EVENTS, headers=[("cache-control", "no-cache")])
            try:
                async for outputs, parameters in stream.responses():
                    await send(outputs, parameters)
            except CancelledError:
                raise
            except Exception as error:
                about, status = failure(error)
                await send({}, {**about, "status": status, FINAL: True})
        await call.part(b"", is_last=True)

    async def _request(self, call: Call) -> Inference:
        return inference(await call.body(self.max_body), call.header(HEADER_LENGTH))

    _ROUTES = tuple(
        (method, re.compile(pattern), act)
        for method, pattern, act in (
            ("POST", f"{MODEL}/infer", _infer),
            ("POST", f"{MODEL}/generate_stream", _generate_stream),
            ("GET", MODEL, _metadata),
            ("GET", f"{MODEL}/ready", _model_ready),
            ("GET", "/v2/health/(?P<which>live|ready)", _health),
            ("GET", "/v2/?", _server),
            ("GET", "/metrics", _metrics),
            ("POST", "/v2/repository/index", _index),
            ("POST", "/v2/repository/models/(?P<name>[^/]+)/load", _load),
        )
    )
    """The method, the path and the answer of each kind of request."""


def failure(error: Exception) -> tuple[Json, int]:
    """The object of the V2 protocol for an error, and its status; the traceback of one that is netloop's is printed."""
    if isinstance(error, REFUSED):
        return {"error": str(error)}, error.status if isinstance(error, ServeError) else ServeError.status
    traceback.print_exception(error)
    return {"error": f"the server failed: {type(error).__name__}: {error}"}, INTERNAL
