"""A runtime of MLServer, which speaks the V2 inference protocol over HTTP and gRPC.

``"implementation": "netloop.serve.mlserver.NetloopRuntime"`` in a ``model-settings.json`` serves the plan that its
``uri`` names.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from netloop.tools.serve.answer import Outputs
from netloop.tools.serve.errors import Closed, Overloaded, ServeError, TimedOut
from netloop.tools.serve.hosting import HOSTED, Service, require_boolean
from netloop.tools.serve.sequences import Sequences
from netloop.tools.serve.streams import Streams
from netloop.values.diagnostics import NetloopError
from netloop.values.types import Array

MLSERVER: Any = import_module("mlserver")
CODECS: Any = import_module("mlserver.codecs")
CONVERTERS: Any = import_module("mlserver.grpc.converters")
ERRORS: Any = import_module("mlserver.errors")
GRPC: Any = import_module("grpc")
GRPC_ERRORS: Any = import_module("mlserver.grpc.utils")
TYPES: Any = import_module("mlserver.types")
UTILS: Any = import_module("mlserver.utils")

UNAVAILABLE, TIMEOUT, BAD_REQUEST = 503, 504, 400
"""Status codes of HTTP."""
GRACE = 30.0
"""The seconds in which the requests of a model that is unloaded may end."""
STATUSES: Mapping[type[ServeError], int] = {Overloaded: UNAVAILABLE, Closed: UNAVAILABLE, TimedOut: TIMEOUT}
REFUSED = NetloopError, TypeError, ValueError, OverflowError
"""The errors of requests that do not fit, or whose computation failed."""
FINAL = "triton_final_response"
"""The parameter of the last response of a stream, as Triton names it."""
TYPES_OF_NUMPY = {
    **{f"{kind}{bits}": f"{kind.upper()}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"FP{bits}" for bits in (16, 32, 64)},
    "bool": "BOOL",
}
"""The protocol's names of element types. MLServer has none for the 8-bit and 16-bit types of machine learning."""
NUMPY_TYPES = {name: np.dtype(key) for key, name in TYPES_OF_NUMPY.items()}
KINDS = {"i": "iu", "u": "iu", "f": "fiuO", "b": "biu"}
"""The kinds of numbers in a request that are values of a kind of element type; a null is a NaN."""


class NetloopRuntime(MLSERVER.MLModel):
    """An engine as a model of MLServer.

    ``parameters.uri`` is the file of a plan, and ``parameters.extra`` has the arguments of :class:`Sequences`, with
    ``states``, or of :class:`Server`. With ``"stream": true`` it has those of :class:`netloop.SlotEngine` and
    :class:`Streams`. With ``"device"`` it has the name of a device to compute on, such as ``"cuda:1"``. For sequences a
    request has the parameters ``sequence_id``, ``sequence_start`` and ``sequence_end``. States are in one process:
    ``parallel_workers`` must be 0 or 1.

    A model that is loaded again with another plan and the same ``extra`` keeps its service: requests in the queue are
    answered, and sequences keep their states.
    """

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        self._service: Service | None = None
        self._pending: set[Future[Outputs]] = set()

    async def load(self) -> bool:
        """Load the plan, and compile the programs for it.

        Raises:
            FileFormatError: the plan is damaged, or of a newer version.
            TypeError, ValueError, NetworkError: the arguments do not fit the engine, or an input or output is of an
                element type that the protocol has not.
            OSError: the plan cannot be read.
        """
        parameters = self.settings.parameters
        key = self.name, self.version
        # relative to the folder of the settings
        path = await UTILS.get_model_uri(self.settings)
        make = partial(HOSTED.take, key, path, dict(parameters.extra or {}))
        # other models are served meanwhile, and the model of the same name that this one replaces
        self._service = await _in_thread(make)
        return True

    async def unload(self) -> bool:
        """End the service after the requests that are there, unless the model was loaded again."""
        if self._service is not None and HOSTED.leave(self._service):
            if self._pending:
                await asyncio.wait([asyncio.wrap_future(future) for future in self._pending], timeout=GRACE)
            # waiting for the call in progress would block the other models
            await _in_thread(self._service.close)
        return True

    async def predict(self, payload: Any) -> Any:
        """Answer a request of the V2 protocol.

        Raises:
            MLServerError: with the status code 503 for a request without room, 504 for one whose time is over, and 400
                for one that does not fit or whose computation failed.
        """
        try:
            return self._response(payload, await asyncio.wrap_future(self._tracked(self._submit(payload))))
        except REFUSED as error:
            raise _failure(error) from error

    async def predict_stream(self, payloads: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Answer requests by a stream each: a response for each iteration, and a last one with the other outputs.

        A service without streams answers by a single response. A caller that goes frees its slot.

        Raises:
            MLServerError: as ``predict`` does; over HTTP, which has sent its status by then, an error is a last
                response with the parameters ``error`` and ``status``.
        """
        async for payload in payloads:
            try:
                async for response in self._responses(payload):
                    yield response
            except MLSERVER.errors.MLServerError as error:
                if not _is_http(payload):
                    raise
                yield self._response(payload, {}, error=str(error), status=error.status_code, **{FINAL: True})

    async def _responses(self, payload: Any) -> AsyncIterator[Any]:
        if not isinstance(self._service, Streams):
            yield await self.predict(payload)
            return
        rows, loop = asyncio.Queue[Outputs | None](), asyncio.get_running_loop()

        def put(row: Outputs | None) -> None:
            loop.call_soon_threadsafe(rows.put_nowait, row)

        future: Future[Outputs] | None = None
        try:
            future = self._tracked(self._service.submit(_arrays(payload), put))
            future.add_done_callback(lambda _: put(None))
            while (row := await rows.get()) is not None:
                yield self._response(payload, row)
            rest = {name: array for name, array in future.result().items() if name not in self._service.streamed}
            yield self._response(payload, rest, **{FINAL: True})
        except REFUSED as error:
            raise _failure(error) from error
        finally:
            if future is not None:
                future.cancel()

    def _tracked(self, future: Future[Outputs]) -> Future[Outputs]:
        """A future that ``unload`` waits for."""
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        return future

    def _submit(self, payload: Any) -> Future[Outputs]:
        arrays, service = _arrays(payload), self._service
        assert service is not None
        if not isinstance(service, Sequences):
            return service.submit(arrays)
        named, types = payload.parameters, service.input_types()
        inputs = {
            name: _reshaped(array, types[name].shape if name in types else None) for name, array in arrays.items()
        }
        start, end = (require_boolean(name, getattr(named, name, False)) for name in ("sequence_start", "sequence_end"))
        return service.submit(_key(named), inputs, start=start, end=end)

    def _response(self, payload: Any, arrays: Outputs, **parameters: Any) -> Any:
        wanted = {tensor.name for tensor in payload.outputs or ()} or arrays.keys()
        outputs = [_encoded(name, np.atleast_1d(array)) for name, array in arrays.items() if name in wanted]
        named = TYPES.Parameters(**parameters) if parameters else None
        return TYPES.InferenceResponse(id=payload.id, model_name=self.name, outputs=outputs, parameters=named)


async def _in_thread(function: Callable[[], Any]) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, function)


def _arrays(payload: Any) -> dict[str, Array]:
    """The inputs of a request.

    Raises:
        TypeError, ValueError, OverflowError: one is no array of its shape and element type, or is there twice.
    """
    arrays = {tensor.name: _decoded(tensor) for tensor in payload.inputs}
    if len(arrays) < len(payload.inputs):
        raise ValueError(f"an input is there twice: {', '.join(tensor.name for tensor in payload.inputs)}")
    return arrays


def _decoded(tensor: Any) -> Array:
    # an enumeration if the request came as JSON, else text
    name, shown = getattr(tensor.datatype, "value", tensor.datatype), f"input {tensor.name!r}"
    if name == "BYTES":
        return CODECS.NumpyCodec.decode_input(tensor)
    if name not in NUMPY_TYPES:
        raise ValueError(f"{shown} has the datatype {name}, and not one of {', '.join(NUMPY_TYPES)}")
    data, dtype = np.asarray(getattr(tensor.data, "root", tensor.data)), NUMPY_TYPES[name]
    # numpy would round numbers, and read text, without a word
    if data.size and data.dtype.kind not in KINDS[dtype.kind]:
        raise ValueError(f"{shown} has the datatype {name}, and its data are {data.dtype.name}")
    array = data.astype(dtype)
    if dtype.kind != "f" and not np.array_equal(array, data):
        raise ValueError(f"{shown} has the datatype {name}, and a number out of its range")
    if any(length < 0 for length in tensor.shape):
        raise ValueError(f"{shown} has the shape {tensor.shape}, and a length is at least 0")
    return array.reshape(tensor.shape)


def _encoded(name: str, array: Array) -> Any:
    datatype = TYPES_OF_NUMPY.get(array.dtype.name)
    if datatype is None:
        return CODECS.NumpyCodec.encode_output(name, array)
    return TYPES.ResponseOutput(name=name, shape=[*array.shape], datatype=datatype, data=array.ravel().tolist())


def _key(parameters: Any) -> int | str:
    key = getattr(parameters, "sequence_id", None)
    # true would be the number 1
    if key in (0, "") or isinstance(key, bool) or not isinstance(key, int | str):
        raise ValueError("a step of a sequence has the parameter sequence_id, a number other than 0 or a string")
    return key


def _reshaped(array: Array, shape: tuple[int, ...] | None) -> Array:
    """An array in the shape of one step, whose number the protocol has as an array of one element."""
    return array.reshape(shape) if shape is not None and array.size == np.prod(shape, dtype=np.int64) else array


def _failure(error: Exception) -> Exception:
    """The error that MLServer answers with."""
    status = next((status for kind, status in STATUSES.items() if isinstance(error, kind)), BAD_REQUEST)
    return ERRORS.MLServerError(str(error), status)


def _is_http(payload: Any) -> bool:
    return "host" in (getattr(payload.parameters, "headers", None) or {})


def _complete_grpc() -> None:
    """Give MLServer's gRPC the statuses that it lacks.

    It answers UNKNOWN where it has none, and INTERNAL to raw bytes that are not those of their shape and datatype.
    """
    GRPC_ERRORS.STATUS_CODE_MAPPING.setdefault(UNAVAILABLE, GRPC.StatusCode.UNAVAILABLE)
    GRPC_ERRORS.STATUS_CODE_MAPPING.setdefault(TIMEOUT, GRPC.StatusCode.DEADLINE_EXCEEDED)
    inject_raw = CONVERTERS.inject_raw

    def injected(tensors: Any, raw: Any) -> Any:
        try:
            return inject_raw(tensors, raw)
        except (ValueError, IndexError, OverflowError, MemoryError, struct.error) as error:
            raise ERRORS.MLServerError(f"raw bytes do not fit their tensor: {error}", BAD_REQUEST) from error

    CONVERTERS.inject_raw = injected


_complete_grpc()
