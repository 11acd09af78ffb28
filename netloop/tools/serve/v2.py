"""Requests and responses of the V2 protocol over HTTP: JSON, and after it the raw bytes of tensors."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from netloop.tools.serve.answer import Outputs
from netloop.tools.serve.datatypes import NAMES, as_bytes, as_json, dtype_named, of_bytes, of_numbers, shape_named
from netloop.tools.serve.errors import invalid
from netloop.values.diagnostics import quoted
from netloop.values.string_arrays import string_array
from netloop.values.types import Array

Json = dict[str, Any]


@dataclass(frozen=True)
class Inference:
    """A request for the outputs of a model.

    Attributes:
        inputs: the arrays by name.
        parameters: those of the request, such as ``sequence_id``.
        outputs: the names of the outputs to return; empty for all of them.
        binary: the outputs to return as raw bytes.
        all_binary: whether outputs are raw bytes, unless they are named otherwise.
        id: a text that the response repeats.
    """

    inputs: dict[str, Array]
    parameters: Json = field(default_factory=Json)
    outputs: tuple[str, ...] = ()
    binary: Mapping[str, bool] = field(default_factory=dict[str, bool])
    all_binary: bool = False
    id: str = ""

    def wanted(self, arrays: Outputs) -> Outputs:
        """The outputs to return, each an array with axes: a number is an array of one element."""
        chosen = {name: of for name, of in arrays.items() if not self.outputs or name in self.outputs}
        # an engine returns strings as objects
        return {name: np.atleast_1d(string_array(of) if of.dtype.kind == "O" else of) for name, of in chosen.items()}


def inference(body: bytes, header_length: str | None) -> Inference:
    """Read a request.

    Args:
        body: its bytes.
        header_length: the number of those that are JSON, as text; None for all.

    Raises:
        RequestError: they are no request.
    """
    length = len(body) if header_length is None else int(header_length) if header_length.isdecimal() else -1
    if not 0 <= length <= len(body):
        raise invalid(f"Inference-Header-Content-Length is {quoted(header_length)}, and the body has {len(body)} bytes")
    parts = _object("the request", _parsed(body[:length]))
    parameters = _object("parameters", parts.get("parameters", {}))
    outputs = [_object("an output", other) for other in _list("outputs", parts.get("outputs", []))]
    return Inference(
        _inputs(parts, memoryview(body)[length:]),
        parameters,
        tuple(_text("the name of an output", other.get("name")) for other in outputs),
        {other["name"]: _flag(other, "binary_data") for other in outputs if "binary_data" in _parameters(other)},
        _flag({"parameters": parameters}, "binary_data_output"),
        _text("id", parts.get("id", "")),
    )


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise invalid(f"the request is not JSON: {error}") from error


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _inputs(parts: Json, raw: memoryview) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for other in _list("inputs", parts.get("inputs")):
        tensor = _object("an input", other)
        name = _text("the name of an input", tensor.get("name"))
        if name in arrays:
            raise invalid(f"input {quoted(name)} is there twice")
        dtype, shape = dtype_named(name, tensor.get("datatype")), shape_named(name, tensor.get("shape"))
        size = _parameters(tensor).get("binary_data_size")
        if size is None:
            if "data" not in tensor:
                raise invalid(f"input {quoted(name)} has no data", 'write "data", or "binary_data_size" and raw bytes')
            arrays[name] = of_numbers(name, dtype, shape, tensor["data"])
            continue
        if "data" in tensor:
            raise invalid(f"input {quoted(name)} has data and raw bytes", "send one of the two")
        if type(size) is not int or not 0 <= size <= len(raw):
            raise invalid(f"input {quoted(name)} has {quoted(size)} raw bytes, and {len(raw)} are there")
        arrays[name], raw = of_bytes(name, dtype, shape, raw[:size]), raw[size:]
    if len(raw):
        raise invalid(f"after the tensors there are {len(raw)} more bytes")
    return arrays


def _object(what: str, value: Any) -> Json:
    if not isinstance(value, dict):
        raise invalid(f"{what} must be an object of JSON, not {quoted(value)}")
    return value


def _list(what: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise invalid(f"{what} must be a list, not {quoted(value)}")
    return value


def _text(what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise invalid(f"{what} must be a text, not {quoted(value)}")
    return value


def _parameters(of: Json) -> Json:
    return _object("parameters", of.get("parameters", {}))


def _flag(of: Json, name: str) -> bool:
    parameters = _parameters(of)
    return flag(name, parameters[name]) if name in parameters else False


def flag(name: str, value: Any) -> bool:
    """Return a flag of a request, which must be JSON's true or false: Python takes "false" for true.

    Raises:
        RequestError: it is neither.
    """
    if not isinstance(value, bool):
        raise invalid(f"{name} must be true or false, not {quoted(value)}")
    return value


def response(model: str, request: Inference, arrays: Outputs, parameters: Json) -> tuple[bytes, bytes]:
    """The JSON of a response, and the raw bytes after it.

    Args:
        model: the name of the model.
        request: the request.
        arrays: the outputs that it wants, by name.
        parameters: those of the response.
    """
    tensors: list[str] = []
    raw: list[bytes] = []
    for name, array in arrays.items():
        about = {"name": name, "datatype": NAMES[array.dtype], "shape": [*array.shape]}
        if request.binary.get(name, request.all_binary):
            raw.append(as_bytes(array))
            tensors.append(json.dumps({**about, "parameters": {"binary_data_size": len(raw[-1])}}))
        else:
            tensors.append(f'{json.dumps(about)[:-1]}, "data": {as_json(array)}}}')
    head = {"model_name": model, "model_version": "1", **({"id": request.id} if request.id else {})}
    head |= {"parameters": parameters} if parameters else {}
    return f'{json.dumps(head)[:-1]}, "outputs": [{", ".join(tensors)}]}}'.encode(), b"".join(raw)
