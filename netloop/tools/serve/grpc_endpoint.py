"""The V2 protocol over gRPC, for the models of an endpoint."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import import_module
from typing import Any

from netloop.tools.serve.answer import Outputs
from netloop.tools.serve.datatypes import NAMES, as_bytes, dtype_named, of_bytes, of_numbers
from netloop.tools.serve.endpoint import SERVER, Endpoint, failure
from netloop.tools.serve.errors import invalid
from netloop.tools.serve.grpc_messages import MESSAGES, SERVICE
from netloop.tools.serve.served_model import VERSION, ResponseStream
from netloop.tools.serve.v2 import Inference, Json
from netloop.values.diagnostics import quoted
from netloop.values.diagnostics.quoting import shortened
from netloop.values.types import Array

GRPC: Any = import_module("grpc")
AIO: Any = import_module("grpc.aio")

CODES = {
    400: GRPC.StatusCode.INVALID_ARGUMENT,
    404: GRPC.StatusCode.NOT_FOUND,
    500: GRPC.StatusCode.INTERNAL,
    503: GRPC.StatusCode.UNAVAILABLE,
    504: GRPC.StatusCode.DEADLINE_EXCEEDED,
}
"""The statuses of gRPC for those of HTTP."""
CONTENTS = {
    "BOOL": "bool_", "INT8": "int_", "INT16": "int_", "INT32": "int_", "INT64": "int64_", "UINT8": "uint_",
    "UINT16": "uint_", "UINT32": "uint_", "UINT64": "uint64_", "FP32": "fp32", "FP64": "fp64", "BYTES": "bytes_",
}  # fmt: skip
"""The field with the elements of each datatype; the others are raw bytes only."""
LONGEST = 2000
"""The most characters of an error, which gRPC sends as a header."""
Message = Any


class GrpcEndpoint:
    """The models of an endpoint over gRPC.

    Args:
        endpoint: the endpoint.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def handler(self) -> Any:
        """The methods, for a server of gRPC."""
        methods = {
            name: GRPC.unary_unary_rpc_method_handler(
                _answering(MESSAGES[request], act), response_serializer=_serialized
            )
            for name, request, act in (
                ("ServerLive", "Empty", self._live),
                ("ServerReady", "Empty", self._ready),
                ("ModelReady", "NameAndVersion", self._model_ready),
                ("ServerMetadata", "Empty", self._server),
                ("ModelMetadata", "NameAndVersion", self._metadata),
                ("ModelInfer", "InferRequest", self._infer),
                ("RepositoryIndex", "Empty", self._index),
                ("RepositoryModelLoad", "LoadRequest", self._load),
            )
        }
        methods["ModelStreamInfer"] = GRPC.stream_stream_rpc_method_handler(
            self._stream_infer, response_serializer=_serialized
        )
        return GRPC.method_handlers_generic_handler(SERVICE, methods)

    async def _live(self, _: Message) -> Message:
        return MESSAGES["Live"](live=self._endpoint.is_ready)

    async def _ready(self, _: Message) -> Message:
        return MESSAGES["Ready"](ready=self._endpoint.is_ready)

    async def _model_ready(self, message: Message) -> Message:
        return MESSAGES["Ready"](ready=not self._endpoint.model(message.name, message.version).service.is_closed)

    async def _server(self, _: Message) -> Message:
        return MESSAGES["ServerMetadata"](**SERVER)

    async def _metadata(self, message: Message) -> Message:
        return MESSAGES["ModelMetadata"](**self._endpoint.model(message.name, message.version).metadata())

    async def _index(self, _: Message) -> Message:
        return MESSAGES["Index"](models=self._endpoint.index())

    async def _load(self, message: Message) -> Message:
        await self._endpoint.load(message.model_name)
        return MESSAGES["Empty"]()

    async def _infer(self, message: Message) -> Message:
        model, request = self._endpoint.model(message.model_name, message.model_version), _inference(message)
        outputs = await asyncio.wrap_future(model.submit(request))
        return _response(model.name, request, request.wanted(outputs), {})

    async def _stream_infer(self, requests: AsyncIterator[bytes], _: Any) -> AsyncIterator[Message]:
        """Answer requests one after the other, each by the responses of its stream or by its error."""
        async for data in requests:
            try:
                message = _parsed(MESSAGES["InferRequest"], data)
                async for response in self._responses(message):
                    yield MESSAGES["StreamResponse"](infer_response=response)
            except Exception as error:
                yield MESSAGES["StreamResponse"](error_message=failure(error)[0]["error"])

    async def _responses(self, message: Message) -> AsyncIterator[Message]:
        model, request = self._endpoint.model(message.model_name, message.model_version), _inference(message)
        stream = ResponseStream(model, request)
        try:
            async for outputs, parameters in stream.responses():
                yield _response(model.name, request, outputs, parameters)
        finally:
            stream.future.cancel()


def _answering(kind: Any, act: Callable[[Message], Awaitable[Message]]) -> Callable[[bytes, Any], Awaitable[Message]]:
    """A method: it reads the message itself, because gRPC would call bytes that are none an error of the server."""

    async def answer(data: bytes, context: Any) -> Message:
        try:
            return await act(_parsed(kind, data))
        except Exception as error:
            about, status = failure(error)
            await context.abort(CODES[status], shortened(about["error"], LONGEST))

    return answer


def _serialized(message: Message) -> bytes:
    return message.SerializeToString()


def _parsed(kind: Any, data: bytes) -> Message:
    try:
        return kind.FromString(data)
    except Exception as error:  # the class of the error is one of each version of protobuf
        raise invalid(f"the request is no message of the protocol: {error}") from error


def _inference(message: Message) -> Inference:
    raw: list[bytes] = [*message.raw_inputs]
    if raw and len(raw) != len(message.inputs):
        raise invalid(f"there are raw bytes of {len(raw)} tensors, and {len(message.inputs)} inputs")
    arrays: dict[str, Array] = {}
    for number, tensor in enumerate(message.inputs):
        if tensor.name in arrays:
            raise invalid(f"input {quoted(tensor.name)} is there twice")
        arrays[tensor.name] = _array(tensor, raw[number] if raw else None)
    outputs = tuple(output.name for output in message.outputs)
    parameters = {name: getattr(of, of.WhichOneof("choice") or "", None) for name, of in message.parameters.items()}
    return Inference(arrays, parameters, outputs, id=message.id)


def _array(tensor: Message, raw: bytes | None) -> Array:
    name, dtype, shape = tensor.name, dtype_named(tensor.name, tensor.datatype), [*tensor.shape]
    if any(length < 0 for length in shape):
        raise invalid(f"input {quoted(name)} has the shape {shape}, and a length is at least 0")
    if raw is not None:
        if tensor.contents.ByteSize():
            raise invalid(f"input {quoted(name)} has contents and raw bytes", "send one of the two")
        return of_bytes(name, dtype, shape, raw)
    if tensor.datatype not in CONTENTS:
        raise invalid(f"input {quoted(name)} has the datatype {tensor.datatype}, which needs raw bytes")
    data = [*getattr(tensor.contents, CONTENTS[tensor.datatype])]
    try:
        return of_numbers(name, dtype, shape, [text.decode() for text in data] if tensor.datatype == "BYTES" else data)
    except UnicodeDecodeError as error:
        raise invalid(f"input {quoted(name)} has a text that is not UTF-8: {error}") from error


def _response(model: str, request: Inference, arrays: Outputs, parameters: Json) -> Message:
    """A response, whose parameters are flags."""
    tensors = [{"name": name, "datatype": NAMES[of.dtype], "shape": of.shape} for name, of in arrays.items()]
    return MESSAGES["InferResponse"](
        model_name=model,
        model_version=VERSION,
        id=request.id,
        parameters={name: MESSAGES["Parameter"](bool_=value) for name, value in parameters.items()},
        outputs=tensors,
        raw_outputs=[as_bytes(of) for of in arrays.values()],
    )
