"""Reading a model from a file, from bytes or from memory, and checking its versions."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError, Message
from onnx import defs

from netloop.formats.onnx.importer.function_calls import call_errors, domain_of
from netloop.formats.shared import read_model_file
from netloop.formats.shared.file_kinds import AGAIN, advice_on
from netloop.formats.shared.import_warnings import ImportWarnings
from netloop.formats.shared.importer import repeated
from netloop.values.diagnostics import Finding, ModelError, plain, quoted, reason

OLDEST_IR, NEWEST_IR = 1, 14
WITHOUT_IMPORTS = (1, 2)
"""The versions of the format in which models do not import versions of operators."""
ONNX = b"\x08"
"""The first byte of most models: the tag of ``ir_version``."""
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
        forgiven: its faults that leave it one meaning.
    """

    proto: onnx.ModelProto
    name: str
    directory: Path | None
    opsets: dict[str, int]
    functions: dict[tuple[str, str, str], onnx.FunctionProto]
    forgiven: ImportWarnings


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
        raise ModelError(Finding("NL741", "a string in the model is not valid UTF-8", name, reason("NL741"), AGAIN))
    name = name or model.graph.name or "the model"
    errors = [*_model_errors(model), *call_errors(model), *_versions_errors(model)]
    findings += [Finding(code, what, name, reason(code), fix) for code, what, fix in errors]
    opsets = opsets_of(model.opset_import) or ({"": 1} if model.ir_version in WITHOUT_IMPORTS else {})
    functions = {
        (domain_of(function.domain), function.name, function.overload): function for function in model.functions
    }
    forgiven = ImportWarnings(name)
    _forgive(model, forgiven)
    return Model(model, name, directory, opsets, functions, forgiven)


def _parsed(data: bytes, name: str) -> onnx.ModelProto:
    try:
        return onnx.ModelProto.FromString(data)
    except DecodeError as error:
        what = f"{name} {'is' if name != 'the bytes' else 'are'} not an ONNX model: {error}"
        advice = AGAIN if data.startswith(ONNX) else advice_on(data)
        raise ModelError(Finding("NL741", what, "", reason("NL741"), advice)) from error


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
            if any(
                _has_broken_text(value) if isinstance(value, Message) else isinstance(value, bytes) for value in values
            ):
                return True
    return False


def opsets_of(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """The version of each domain, at most the newest that the package onnx has."""
    numbers = {domain_of(opset.domain): opset.version for opset in imports}
    return {domain: min(version, NEWEST.get(domain, version)) for domain, version in numbers.items()}


def version_of(node: onnx.NodeProto, opsets: Mapping[str, int]) -> int:
    """The version of the domain of a node: the one that is imported, or else the newest."""
    domain = domain_of(node.domain)
    return opsets.get(domain, NEWEST.get(domain, 1))


NEWEST = {"": defs.onnx_opset_version(), "ai.onnx.ml": defs.onnx_ml_opset_version()}
"""The newest versions of the operators of the standard that the package onnx has."""


def _model_errors(model: onnx.ModelProto) -> Iterator[tuple[str, str, str]]:
    """The code, the fault and a fix of each error in the parts of a model."""
    if not model.HasField("graph"):
        yield "NL741", "the model has no graph", AGAIN
    twice = repeated((domain_of(function.domain), function.name, function.overload) for function in model.functions)
    for domain, name, _ in sorted(twice):
        yield "NL745", f"the function {plain(f'{domain}:{name}')} is defined twice", "remove one of the definitions"
    for owner, imports in _imports(model):
        versions: dict[str, set[int]] = {}
        for opset in imports:
            versions.setdefault(domain_of(opset.domain), set()).add(opset.version)
        for domain, numbers in sorted(versions.items()):
            if len(numbers) > 1:
                named = " and ".join(map(str, sorted(numbers)))
                what = f"{owner} imports the operators of {_titled(domain)} in the versions {named}"
                yield "NL745", what, "keep the version that the model was exported for in opset_import"


def _imports(model: onnx.ModelProto) -> Iterator[tuple[str, Iterable[onnx.OperatorSetIdProto]]]:
    """The versions of operators that a model and its functions import."""
    yield "the model", model.opset_import
    yield from ((f"the function {plain(function.name)}", function.opset_import) for function in model.functions)


def _titled(domain: str) -> str:
    return quoted(domain or "ai.onnx")


def _versions_errors(model: onnx.ModelProto) -> Iterator[tuple[str, str, str]]:
    """The code, the fault and a fix of each version that has no meaning."""
    if model.ir_version > NEWEST_IR:
        what = f"the model has the IR version {model.ir_version}, and netloop reads versions up to {NEWEST_IR}"
        yield "NL742", what, f"export the model with ir_version={NEWEST_IR} or older, or upgrade netloop"
    for owner, imports in _imports(model):
        for opset in imports:
            if domain_of(opset.domain) in NEWEST and opset.version < 1:
                what = f"{owner} imports version {opset.version} of the operators of {_titled(domain_of(opset.domain))}"
                yield "NL742", f"{what}; the first is 1", "export the model again, for a version that exists"


def _forgive(model: onnx.ModelProto, forgiven: ImportWarnings) -> None:
    """Add what the versions of a model leave to guess, and have one meaning for."""
    if model.ir_version < OLDEST_IR:
        forgiven.add("the model lacks {}, and is read as one of the present version", "ir_version")
    for _, imports in _imports(model):
        for domain in repeated(domain_of(opset.domain) for opset in imports):
            forgiven.add("the model imports the operators of {} more than once, in one version", domain or "ai.onnx")
        for opset in imports:
            newest = NEWEST.get(domain_of(opset.domain), opset.version)
            if opset.version > newest:
                forgiven.add(NEWER, f"{domain_of(opset.domain) or 'ai.onnx'} {opset.version}")


NEWER = (
    f"the model imports the operators of {{}}, which are newer than the package onnx {onnx.__version__}; they are read"
    " as those of its newest version"
)
