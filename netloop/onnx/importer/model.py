"""Reading a model from a file, from bytes or from memory, and checking its versions."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError, Message
from onnx import defs

from netloop.diagnostics import Finding, ModelError, plain, quoted, reason
from netloop.formats import read_model_file
from netloop.formats.importer import repeated
from netloop.onnx.importer.function_calls import call_errors, domain_of

OLDEST_IR, NEWEST_IR = 1, 14
LARGEST_FILE = 1 << 31
"""The limit of protobuf messages, in bytes."""


@dataclass(frozen=True)
class Model:
    """A model that was read.

    Attributes:
        proto: the model.
        name: its name in messages: the path of its file, or the name of its graph.
        directory: the folder of external tensors; None if there is none.
        opsets: the version of each domain.
        functions: its own functions, by domain, name and overload.
    """

    proto: onnx.ModelProto
    name: str
    directory: Path | None
    opsets: dict[str, int]
    functions: dict[tuple[str, str, str], onnx.FunctionProto]


def read(model: Any, base_dir: str | PathLike[str] | None, findings: list[Finding]) -> Model:
    """Read a model from a path, bytes or a ModelProto; add the errors in its versions and functions to ``findings``.

    Raises:
        ModelError: the file cannot be read, or is no model.
        TypeError: it is neither a path, nor bytes, nor a model.
    """
    directory = None if base_dir is None else Path(base_dir)
    name = ""
    if isinstance(model, str | PathLike):
        name = os.fspath(model)
        directory = directory or Path(name).parent
        model = read_model_file(name, "NL741", LARGEST_FILE)
    if isinstance(model, bytes | bytearray | memoryview):
        model = _parsed(bytes(model), name or "the bytes")
    if not isinstance(model, onnx.ModelProto):
        raise TypeError(f"a model is a path, bytes or an onnx.ModelProto, not {type(model).__name__}")
    if _has_broken_text(model):
        raise ModelError(Finding("NL741", "a string in the model is not valid UTF-8", name, reason("NL741")))
    name = name or model.graph.name or "the model"
    findings += [Finding("NL741", what, name, reason("NL741")) for what in [*_model_errors(model), *call_errors(model)]]
    opsets = opsets_of(model.opset_import) or {"": 1}
    findings += [Finding("NL742", what, name, reason("NL742"), fix) for what, fix in _too_new(model)]
    functions = {(domain_of(each.domain), each.name, each.overload): each for each in model.functions}
    return Model(model, name, directory, opsets, functions)


def _parsed(data: bytes, name: str) -> onnx.ModelProto:
    try:
        return onnx.ModelProto.FromString(data)
    except DecodeError as error:
        what = f"{name} {'is' if name != 'the bytes' else 'are'} not an ONNX model: {error}"
        raise ModelError(Finding("NL741", what, "", reason("NL741"))) from error


UNREAD = {
    "denotation", "doc_string", "graphs", "metadata_props", "producer_name", "producer_version", "training_info",
    "value_info",
}  # fmt: skip
"""Fields that no importer reads, which may have any contents."""


def _has_broken_text(message: Message) -> bool:
    """Whether a string of a message or of those inside it is not valid UTF-8: protobuf returns bytes for one."""
    for field, value in message.ListFields():
        if field.type in (field.TYPE_STRING, field.TYPE_MESSAGE) and field.name not in UNREAD:
            values = [value] if isinstance(value, str | bytes | Message) else value
            if any(_has_broken_text(each) if isinstance(each, Message) else isinstance(each, bytes) for each in values):
                return True
    return False


def opsets_of(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """The version of each domain."""
    return {domain_of(each.domain): each.version for each in imports}


def _model_errors(model: onnx.ModelProto) -> list[str]:
    found: list[str] = []
    if not model.HasField("graph"):
        found.append("the model has no graph")
    if model.ir_version < OLDEST_IR:
        found.append(f"the model has the IR version {model.ir_version}")
    twice = repeated((domain_of(each.domain), each.name, each.overload) for each in model.functions)
    found += [f"the function {plain(f'{domain}:{name}')} is defined twice" for domain, name, _ in sorted(twice)]
    twice = repeated(domain_of(each.domain) for each in model.opset_import)
    found += [f"the domain {quoted(each)} is imported twice" for each in sorted(twice)]
    return found


def _too_new(model: onnx.ModelProto) -> Iterable[tuple[str, str]]:
    """The versions that netloop or the package onnx does not support yet, each with a fix."""
    if model.ir_version > NEWEST_IR:
        yield f"the model has the IR version {model.ir_version}, and netloop supports versions up to {NEWEST_IR}", ""
    sets = [*model.opset_import, *(each for function in model.functions for each in function.opset_import)]
    newest = defs.onnx_opset_version()
    for version in sorted({each.version for each in sets if domain_of(each.domain) == ""}):
        if not 1 <= version <= newest:
            what = f"the model has operators of version {version}"
            yield f"{what}, and the package onnx {onnx.__version__} has those up to {newest}", "upgrade onnx"
