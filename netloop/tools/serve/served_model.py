"""A model of a server: a service by its name, and how requests of the V2 protocol become calls of it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future
from typing import Any

from netloop.model.graph.attributes import check_instance
from netloop.tools.serve.answer import Outputs
from netloop.tools.serve.datatypes import NAMES, require_names, shape_of
from netloop.tools.serve.errors import invalid
from netloop.tools.serve.sequences import Sequences
from netloop.tools.serve.server import Server
from netloop.tools.serve.service import Service
from netloop.tools.serve.streams import Streams
from netloop.tools.serve.v2 import Inference, Json, flag
from netloop.values.diagnostics import did_you_mean, quoted
from netloop.values.types import UNKNOWN, Array

AnyService = Server | Sequences | Streams
VERSION = "1"
"""The version of every model."""
FINAL = "triton_final_response"
"""The parameter of the last response of a stream, as Triton names it."""
MICROSECOND = 1e-6
"""The unit of the time limit of a request, as in Triton."""


class ServedModel:
    """A service by its name.

    Args:
        name: the name, which is part of a path.
        service: the service.
        newest: returns the engine that the service gets when the model is loaded again; None if it never is.

    Raises:
        ValueError: the name has a slash, or is empty.
        NetworkError: an input or output has a type that the protocol has not.
    """

    def __init__(self, name: str, service: AnyService, newest: Callable[[], Any] | None = None) -> None:
        if not name or "/" in name:
            raise ValueError(f"{name!r} cannot be the name of a model, which is part of a path such as 'totals'")
        self.name, self._newest = name, newest
        self.service = check_instance("a model", service, Service)
        self._changing = threading.Lock()
        self._inputs, self._outputs = require_names(service.input_types()), require_names(service.output_types())

    def metadata(self) -> Json:
        """The names, datatypes and shapes of inputs and outputs, with -1 for open lengths."""
        kinds = {"inputs": self._inputs, "outputs": self._outputs}
        return {"name": self.name, "versions": [VERSION], "platform": "netloop"} | {
            kind: [{"name": name, "datatype": NAMES[of.dtype], "shape": shape_of(of)} for name, of in tensors.items()]
            for kind, tensors in kinds.items()
        }

    def load(self) -> None:
        """Give the service the newest engine; requests go on meanwhile, and sequences keep their states.

        Raises:
            RequestError: the model is never loaded again.
            NetworkError: an input, state or output is of another name or type; the old engine stays.
            FileFormatError, OSError: the model cannot be read.
        """
        if self._newest is None:
            raise invalid(f"model {quoted(self.name)} is not from a file that could be loaded again")
        with self._changing:
            self.service.reload(self._newest())

    def submit(self, request: Inference, on_row: Callable[[Outputs], Any] | None = None) -> Future[Outputs]:
        """Put a request into the queue of the service; return the future of all outputs.

        Args:
            request: the request.
            on_row: for streams, called with the rows of each iteration in the thread of the service.

        Raises:
            RequestError, InputError: the request does not fit the model.
            ServeError: the request was refused (Overloaded, Closed), or is of no sequence (UnknownSequence).
        """
        for name in request.outputs:
            if name not in self._outputs:
                raise invalid(f"the model has no output {quoted(name)}", did_you_mean(name, self._outputs))
        inputs = {name: self._in_shape(name, array) for name, array in request.inputs.items()}
        named, service = request.parameters, self.service
        limit = _time_limit(named.get("timeout"))
        if isinstance(service, Streams):
            return service.submit(inputs, on_row, timeout=limit)
        if isinstance(service, Server):
            return service.submit(inputs, timeout=limit)
        start, end = (flag(name, named.get(name, False)) for name in ("sequence_start", "sequence_end"))
        return service.submit(_key(named.get("sequence_id")), inputs, start=start, end=end, timeout=limit)

    def _in_shape(self, name: str, array: Array) -> Array:
        """An array in the shape of its input, where that is fixed and differs by axes of length 1 only."""
        of = self._inputs.get(name)
        alike = of is not None and UNKNOWN not in of.shape and _without_ones(of.shape) == _without_ones(array.shape)
        return array.reshape(of.shape) if of is not None and alike else array


class ResponseStream:
    """The responses to a request for a stream: the rows of each iteration, and then the other outputs.

    A service without streams gives one response. Errors of the construction are those of ``ServedModel.submit``.
    """

    def __init__(self, model: ServedModel, request: Inference) -> None:
        self._service, self._request = model.service, request
        self._rows, self._loop = asyncio.Queue[Outputs | None](), asyncio.get_running_loop()
        self.future = model.submit(request, self._put)
        self.future.add_done_callback(lambda _: self._put(None))

    def _put(self, row: Outputs | None) -> None:
        self._loop.call_soon_threadsafe(self._rows.put_nowait, row)

    async def responses(self) -> AsyncIterator[tuple[Outputs, Json]]:
        """The outputs and the parameters of each response."""
        while (row := await self._rows.get()) is not None:
            yield self._request.wanted(row), {}
        streamed = self._service.streamed if isinstance(self._service, Streams) else frozenset[str]()
        rest = {name: array for name, array in self.future.result().items() if name not in streamed}
        yield self._request.wanted(rest), {FINAL: True}


def _without_ones(shape: Sequence[int]) -> list[int]:
    return [length for length in shape if length != 1]


def _key(key: Any) -> int | str:
    # true would be the number 1
    if key in (0, "") or isinstance(key, bool) or not isinstance(key, int | str):
        raise invalid("a step of a sequence has the parameter sequence_id, a number other than 0 or a text")
    return key


def _time_limit(microseconds: Any) -> float | None:
    if microseconds is None:
        return None
    if type(microseconds) is not int or microseconds < 0:
        raise invalid(f"timeout must be a whole number of microseconds, not {quoted(microseconds)}")
    return microseconds * MICROSECOND or None
