"""ONNX models as TensorRT's parser takes them: into a network, with errors to ask for."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import onnx

from netloop.api.config import IBuilderConfig
from netloop.api.enums import ErrorCode, OnnxParserFlag
from netloop.api.logger import ILogger
from netloop.diagnostics import Finding, ModelError
from netloop.graph.layer import check_instance, check_member
from netloop.graph.tensor import ITensor
from netloop.network import INetworkDefinition
from netloop.onnx import supports
from netloop.onnx.importer.graph import OnnxImporter
from netloop.onnx.importer.model import Model, read
from netloop.onnx.importer.node import ImportedNode

# fmt: off
CODES = {
    "NL741": ErrorCode.MODEL_DESERIALIZE_FAILED,
    "NL742": ErrorCode.UNSUPPORTED_GRAPH,
    "NL743": ErrorCode.INVALID_VALUE,
    "NL744": ErrorCode.UNSUPPORTED_NODE,
    "NL745": ErrorCode.INVALID_GRAPH,
    "NL746": ErrorCode.UNSUPPORTED_NODE_DATATYPE,
}
# fmt: on
"""TensorRT's codes for findings; of any other, INVALID_NODE."""


class ParserError:
    """A thing that is wrong with a model."""

    def __init__(self, finding: Finding, file: str = "") -> None:
        self._finding = finding
        self._file = file

    @property
    def _node(self) -> ImportedNode | None:
        return self._finding.at if isinstance(self._finding.at, ImportedNode) else None

    def code(self) -> ErrorCode:
        """What kind of error it is."""
        return CODES.get(self._finding.code, ErrorCode.INVALID_NODE)

    def desc(self) -> str:
        """What is wrong, where, why, and what to do."""
        return str(self._finding)

    def file(self) -> str:
        """The file of the model, so far as it is known."""
        return self._file

    def line(self) -> int:
        """-1: models have no lines."""
        return -1

    def func(self) -> str:
        """Nothing: netloop does not tell which of its functions found it."""
        return ""

    def node(self) -> int:
        """The number of the node of the model, which may be around the one that is wrong; -1 if none is."""
        return -1 if self._node is None else self._node.outermost

    def node_name(self) -> str:
        """The name of the node that is wrong."""
        return "" if self._node is None else self._node.label

    def node_operator(self) -> str:
        """Its operator."""
        return "" if self._node is None else self._node.op

    def local_function_stack(self) -> list[str]:
        """The functions that it is inside of, the outermost first."""
        return [] if self._node is None else list(self._node.functions)

    def local_function_stack_size(self) -> int:
        """How many they are."""
        return len(self.local_function_stack())

    def __str__(self) -> str:
        return self.desc()


class ReadsModels:
    """What takes ONNX models, and keeps what is wrong with them as errors to ask for."""

    def __init__(self, logger: ILogger) -> None:
        self._logger: ILogger = check_instance("logger", logger, ILogger)
        self._errors: list[ParserError] = []
        self._loaded: Model | None = None

    def load_model_proto(self, model: bytes, path: str | None = None) -> bool:
        """Read a model, to be taken by another call; whether it could be read."""
        return self._take(bytes(memoryview(model)), None if path is None else Path(path).parent)

    def load_initializer(self, name: str, data: int, size: int) -> bool:
        """Take the numbers of an initializer of the model that was read from ``size`` bytes at an address."""
        found = [] if self._loaded is None else [e for e in self._loaded.proto.graph.initializer if e.name == name]
        if not found:
            return False
        found[0].ClearField("external_data")
        found[0].data_location = onnx.TensorProto.DEFAULT
        found[0].raw_data = ctypes.string_at(data, size)
        return True

    def _take(self, model: str | bytes, directory: Path | None) -> bool:
        findings: list[Finding] = []
        self._loaded = None
        try:
            opened = read(model, directory, findings)
        except ModelError as error:
            return self._refuse(error.findings)
        if findings:
            return self._refuse(findings)
        self._loaded = opened
        return True

    def _add(self, model: Model, network: INetworkDefinition) -> OnnxImporter | None:
        """What has added a model to a network; None if something is wrong with it."""
        importer = OnnxImporter(model, network)
        try:
            importer.add()
        except ModelError as error:
            self._refuse(error.findings, model.name)
            return None
        return importer

    def _refuse(self, findings: Any, file: str = "") -> bool:
        self._errors += [ParserError(each, file) for each in findings]
        for each in findings:
            self._logger.log(ILogger.ERROR, str(each))
        return False

    # ------------------------------------------------------------------ errors

    @property
    def num_errors(self) -> int:
        """The number of errors so far."""
        return len(self._errors)

    def get_error(self, index: int) -> ParserError:
        """Error number ``index``."""
        return self._errors[index]

    def clear_errors(self) -> None:
        """Forget the errors."""
        self._errors.clear()


class OnnxParser(ReadsModels):
    """Adds ONNX models to a network. ``netloop.onnx.load`` is the short way, and raises its errors.

    Attributes:
        flags: the flags, a bit each; all are recorded, and change nothing.
    """

    def __init__(self, network: INetworkDefinition, logger: ILogger) -> None:
        self._network = check_instance("network", network, INetworkDefinition)
        super().__init__(logger)
        self.flags = 1 << int(OnnxParserFlag.NATIVE_INSTANCENORM)
        self._subgraphs: list[tuple[list[int], bool]] = []
        self._outputs: dict[str, Any] = {}

    # ------------------------------------------------------------------ parsing

    def parse(self, model: bytes, path: str | None = None) -> bool:
        """Add the model in some bytes; False if something is wrong with it, and the network is then of no use.

        Args:
            model: the bytes of a file.
            path: the path of that file, beside which are the files that hold its tensors.
        """
        return self.load_model_proto(model, path) and self.parse_model_proto()

    def parse_from_file(self, model: str) -> bool:
        """Add the model in a file; False if something is wrong with it, and the network is then of no use."""
        self._loaded = None
        return self._take(os.fspath(model), None) and self.parse_model_proto()

    def parse_model_proto(self) -> bool:
        """Add the model that was read; False if something is wrong with it, and the network is then of no use."""
        if self._loaded is None:
            return False
        importer = self._add(self._loaded, self._network)
        self._outputs = {} if importer is None else importer.outputs
        return importer is not None

    # ------------------------------------------------------------------ what can be parsed

    def supports_operator(self, op_name: str) -> bool:
        """Whether netloop makes layers of an operator, in one version at least."""
        return supports(op_name)

    def supports_model_v2(self, model: bytes, path: str | None = None) -> bool:
        """Whether a whole model can be added; what is wrong is among the errors, and the network stays as it is."""
        before = len(self._errors)
        fits = self.load_model_proto(model, path)
        loaded = self._loaded
        fits = fits and loaded is not None and self._add(loaded, INetworkDefinition()) is not None
        count = 0 if loaded is None else len(loaded.proto.graph.node)
        self._subgraphs = _runs(count, {each.node() for each in self._errors[before:]})
        return fits

    @property
    def num_subgraphs(self) -> int:
        """The number of parts that ``supports_model_v2`` split the model into: one can be added, the next cannot."""
        return len(self._subgraphs)

    def is_subgraph_supported(self, index: int) -> bool:
        """Whether nothing is wrong with the nodes of a part."""
        return self._subgraphs[index][1]

    def get_subgraph_nodes(self, index: int) -> list[int]:
        """The numbers of the nodes of a part."""
        return self._subgraphs[index][0]

    def get_layer_output_tensor(self, name: str, i: int) -> ITensor | None:
        """Output number ``i`` of the node of a name; None if there is none."""
        outputs = self._outputs.get(name, ())
        found = outputs[i] if 0 <= i < len(outputs) else None
        return found if isinstance(found, ITensor) else None

    # ------------------------------------------------------------------ flags

    def set_flag(self, flag: OnnxParserFlag) -> None:
        """Set a flag."""
        self.flags |= 1 << int(check_member("flag", flag, OnnxParserFlag))

    def clear_flag(self, flag: OnnxParserFlag) -> None:
        """Clear a flag."""
        self.flags &= ~(1 << int(check_member("flag", flag, OnnxParserFlag)))

    def get_flag(self, flag: OnnxParserFlag) -> bool:
        """Whether a flag is set."""
        return bool(self.flags >> int(check_member("flag", flag, OnnxParserFlag)) & 1)

    def set_builder_config(self, builder_config: IBuilderConfig) -> bool:
        """True; what a model becomes does not depend on how it is built."""
        return check_instance("builder_config", builder_config, IBuilderConfig) is builder_config

    def get_used_vc_plugin_libraries(self) -> list[str]:
        """Empty: no node needs a library of plugins."""
        return []


def _runs(count: int, wrong: set[int]) -> list[tuple[list[int], bool]]:
    """The nodes 0 to ``count`` - 1 in parts of which nothing is wrong, or something with every node."""
    runs: list[tuple[list[int], bool]] = []
    for number in range(count):
        fits = number not in wrong
        if not runs or runs[-1][1] is not fits:
            runs.append(([], fits))
        runs[-1][0].append(number)
    return runs
