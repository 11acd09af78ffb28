"""The child process of a sandboxed model: it sets its limits, then loads a model and answers calls."""

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from netloop.api.engine import ICudaEngine, compile
from netloop.api.engine_plan import read_plan
from netloop.model.graph.tensor import ITensor
from netloop.process.file_reading import read_regular
from netloop.tools.sandbox.errors import error_as_json
from netloop.tools.sandbox.frames import Header, Values, read_frame, write_frame
from netloop.tools.sandbox.limits import limit_cpu, limit_process
from netloop.values.diagnostics import Finding, NetworkError
from netloop.values.map_types import MapType
from netloop.values.string_arrays import string_array, type_name
from netloop.values.types import OptionalType, SequenceType, TensorType

IMPORTERS = {".onnx": "netloop.onnx", ".xml": "netloop.openvino"}
"""The package that loads a file, by its suffix; a plan is netloop's own."""

KINDS: dict[type[TensorType], str] = {SequenceType: "sequence", OptionalType: "optional"}

MOST_BYTES = 1 << 40
"""The most bytes of the arrays of a request: the caller is trusted."""


def main() -> None:
    """Answer requests until stdin ends."""
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # what a library prints must not be read as a reply
    os.dup2(2, 1)
    engine: ICudaEngine | None = None
    while (request := read_frame(requests, MOST_BYTES)) is not None:
        header, inputs = request
        try:
            limit_cpu(header["seconds"])
            if engine is None:
                limit_process(header["memory"])
                engine = _load(Path(header["path"]))
                reply: tuple[Header, Values] = _described(engine), {}
            else:
                reply = {}, {name: _to_numpy(value) for name, value in engine(inputs).items()}
        except Exception as error:
            reply = {"error": error_as_json(error)}, {}
        write_frame(replies, *reply)


def _load(path: Path) -> ICudaEngine:
    importer = IMPORTERS.get(path.suffix)
    if importer is not None:
        return compile(import_module(importer).load(path))
    return ICudaEngine(*read_plan(read_regular(path)))


def _described(engine: ICudaEngine) -> Header:
    network = engine.network
    return {"inputs": list(map(_info, network.inputs)), "outputs": list(map(_info, network.outputs))}


def _info(tensor: ITensor) -> Any:
    tensor_type = tensor.type
    if isinstance(tensor_type, MapType):
        why, fix = "a sandbox passes arrays, and a map is a dict", "save the model without ZipMap"
        raise NetworkError(Finding("NL611", f"{tensor.name!r} is {tensor_type}", why=why, fix=fix, at=tensor))
    kind = KINDS.get(type(tensor_type), "tensor")
    return {"name": tensor.name, "kind": kind, "dtype": type_name(tensor_type.dtype), "shape": _dims(tensor_type)}


def _dims(type: TensorType) -> list[int] | None:
    """The dims of a tensor, or of each tensor of a sequence; None if a run decides even their number."""
    shape = type.held_shape
    return None if shape is None else list(shape)


def _to_numpy(value: Any) -> Any:
    if isinstance(value, list):
        return [_to_numpy(element) for element in value]
    if value is None:
        return None
    array = np.asarray(value)
    return string_array(array) if array.dtype == object else array
