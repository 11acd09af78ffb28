"""A model in a process of its own, for files that are not trusted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from netloop.process.file_reading import OUT_OF_MEMORY
from netloop.tools.sandbox.errors import FILE_ERRORS, error_from_json
from netloop.tools.sandbox.frames import DTYPES, Header, ProtocolError, Values, arrays_of, type_of_spec
from netloop.tools.sandbox.process import ChildProcess
from netloop.values.checked_attributes import seconds as number_of_seconds
from netloop.values.checked_attributes import whole
from netloop.values.diagnostics import Finding, InputError, NetloopError, listed, reason
from netloop.values.foreign_arrays import array_of
from netloop.values.string_arrays import KINDS_OF_TEXT, STRING, string_array, type_name
from netloop.values.types import Array, Shape, agree

SUFFIXES = (".onnx", ".xml", ".plan")

KINDS = ("tensor", "sequence", "optional")

SECONDS = number_of_seconds(positive=True)

MOST_BYTES = 1 << 40
"""The most bytes of the arrays of a reply without a limit of memory."""


class TensorInfo(NamedTuple):
    """An input or output of a sandboxed model.

    Attributes:
        kind: ``"tensor"``, ``"sequence"`` or ``"optional"``.
        dtype: the element type.
        shape: the dims, -1 where unknown; of a sequence or optional value those of its tensors. None if their number
            depends on the call.
    """

    kind: str
    dtype: np.dtype[Any]
    shape: Shape | None


def load(path: str | os.PathLike[str], *, memory: int | None = 4 << 30, seconds: float = 60) -> SandboxedModel:
    """Load and compile a model in a process of its own.

    Args:
        path: a file with the suffix ``.onnx``, ``.xml`` (OpenVINO) or ``.plan``.
        memory: the size of the address space of the process in bytes, on systems that limit it; None for no limit.
            Python and XLA need 2 GiB of it for a small model.
        seconds: the time limit for loading, and for each call.

    Raises:
        ValueError: the file has another suffix.
        ModelError, FileFormatError, NetworkError: the file cannot be loaded, as outside of a sandbox.
        OSError: there is no such file, or it cannot be read.
        SandboxError: a limit was exceeded, or the process ended.
    """
    return SandboxedModel(path, memory=memory, seconds=seconds)


class SandboxedModel:
    """A model that was loaded by :func:`netloop.sandbox.load`: ``model(x=array)["y"]``.

    Close it, or use it in a ``with`` statement; this ends its process. A SandboxError ends it too.

    Attributes:
        inputs: the inputs by name.
        outputs: the outputs by name.
    """

    def __init__(self, path: str | os.PathLike[str], *, memory: int | None, seconds: float) -> None:
        file = Path(path)
        if file.suffix not in SUFFIXES:
            raise ValueError(f"path must end in one of {', '.join(SUFFIXES)}, not {file.name!r}")
        if memory is not None:
            whole(1, 1 << 62)("memory", memory)
        self._most = MOST_BYTES if memory is None else memory
        self._process = ChildProcess(file.name, SECONDS("seconds", seconds))
        try:
            header, values = self._request({"path": os.fspath(path), "memory": memory}, {}, FILE_ERRORS)
            if values:
                raise self._process.protocol_error(f"with the values {listed(list(values))} instead of a description")
            self.inputs, self.outputs = (self._infos(header.get(name)) for name in ("inputs", "outputs"))
        except BaseException:
            self.close()
            raise

    def __call__(self, inputs: Mapping[str, Any] | None = None, /, **named: Any) -> dict[str, Any]:
        """Run the model; return numpy arrays for its outputs by name, a list for a sequence, None for an absent value.

        The inputs are given by name, as a dict or as keywords, in the forms that an engine takes.

        Raises:
            InputError, NetworkError, ExecutionError: as outside of a sandbox.
            SandboxError: a limit was exceeded, the process ended, or the model is closed.
        """
        values = {name: self._as_arrays(name, value) for name, value in {**(inputs or {}), **named}.items()}
        _, outputs = self._request({}, values, {})
        if list(outputs) != list(self.outputs):
            raise self._process.protocol_error(f"with the outputs {listed(list(outputs))}")
        for name, info in self.outputs.items():
            if not _fits(outputs[name], info):
                raise self._process.protocol_error(f"with another type for {name!r} than it declared")
        return {name: _to_user(value) for name, value in outputs.items()}

    def _as_arrays(self, name: str, value: Any) -> Any:
        """The value for an input as arrays that a frame can hold; the process checks whether they fit the input."""
        is_tensor = name not in self.inputs or self.inputs[name].kind == "tensor"
        try:
            if isinstance(value, list | tuple) and not is_tensor:
                result: Any = [_array(element) for element in value]
            else:
                result = None if value is None else _array(value)
        except ValueError as error:
            what = f"the value for the input {name!r} is not an array"
            raise InputError(Finding("NL603", what, why=str(error))) from error
        for array in arrays_of(result):
            if type_name(array.dtype) not in DTYPES:
                what = f"the input {name!r} has the element type {array.dtype}, which no tensor has"
                raise InputError(Finding("NL603", what, why=reason("NL603")))
        return result

    def _request(self, header: Header, values: Values, errors: Mapping[str, type[Exception]]) -> tuple[Header, Values]:
        reply, arrays = self._process.request(header, values, self._most)
        if "error" not in reply:
            return reply, arrays
        try:
            error = error_from_json(reply["error"], errors)
        except ProtocolError as broken:
            raise self._process.protocol_error(str(broken)) from broken
        if _lacks_memory(error):
            raise self._process.out_of_memory()
        if isinstance(error, RuntimeError):
            raise self._process.protocol_error(f"with {error}")
        raise error

    @property
    def seconds(self) -> float:
        """The time limit of a call; it may be changed after loading, which takes longer."""
        return self._process.seconds

    @seconds.setter
    def seconds(self, value: float) -> None:
        self._process.seconds = SECONDS("seconds", value)

    def _infos(self, document: Any) -> dict[str, TensorInfo]:
        try:
            named = [_info(value) for value in (document if isinstance(document, list) else [document])]
        except ProtocolError as error:
            raise self._process.protocol_error(str(error)) from error
        infos = dict(named)
        if len(infos) < len(named):
            raise self._process.protocol_error("with two tensors of the same name")
        return infos

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def close(self) -> None:
        """End the process."""
        self._process.close()

    def __enter__(self) -> SandboxedModel:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None:
        self.close()


def _info(document: Any) -> tuple[str, TensorInfo]:
    is_unranked = isinstance(document, dict) and document.get("shape", ()) is None
    dtype, shape = type_of_spec({**document, "shape": []} if is_unranked else document)
    name, kind = document.get("name"), document.get("kind")
    if not isinstance(name, str) or kind not in KINDS:
        raise ProtocolError("with a tensor without a name or kind")
    return name, TensorInfo(kind, dtype, None if is_unranked else shape)


def _to_user(value: Any) -> Any:
    if isinstance(value, list):
        return [_to_user(element) for element in value]  # pyright: ignore[reportUnknownVariableType]
    return value.astype(object) if value is not None and value.dtype == STRING else value


def _array(value: Any) -> Any:
    array = np.asarray(array_of(value))
    return string_array(value) if array.dtype.kind in KINDS_OF_TEXT else array


def _fits(value: Any, info: TensorInfo) -> bool:
    """Whether a value is of the type of an output."""
    is_of_kind = {
        "tensor": isinstance(value, np.ndarray),
        "sequence": isinstance(value, list),
        "optional": value is None or isinstance(value, list | np.ndarray),
    }[info.kind]
    return is_of_kind and all(_is_alike(array, info) for array in arrays_of(value))


def _is_alike(array: Array, info: TensorInfo) -> bool:
    return array.dtype == info.dtype and (info.shape is None or agree(array.shape, info.shape))


def _lacks_memory(error: Exception) -> bool:
    """Whether an error says that memory does not suffice, of the process or to load a file."""
    findings = error.findings if isinstance(error, NetloopError) else ()
    return isinstance(error, MemoryError) or any(finding.code == OUT_OF_MEMORY for finding in findings)
