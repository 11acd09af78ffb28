"""TensorRT's ONNX parser: add a model to a network and keep a list of errors."""

import os
from pathlib import Path
from typing import Any

import onnx

from netloop.api.config import IBuilderConfig
from netloop.api.enums import ErrorCode, OnnxParserFlag
from netloop.api.logger import ILogger
from netloop.api.plugin_nodes import plugin_operators
from netloop.formats.onnx import supports
from netloop.formats.onnx.importer.graph import OnnxImporter, key_of
from netloop.formats.onnx.importer.model import Model, read
from netloop.formats.onnx.importer.node import ImportedNode
from netloop.formats.onnx.importer.unknown_operators import unknown_operators
from netloop.formats.shared.own_operators import OwnOperator
from netloop.model.graph import ITensor, check_instance
from netloop.model.graph.attributes import flag_bit
from netloop.model.network import INetworkDefinition
from netloop.process.cuda_runtime import address_finding
from netloop.process.host_memory import HOST_MEMORY, BadAddress
from netloop.values.checked_attributes import CheckedAttributes, WithStatement, item
from netloop.values.diagnostics import Finding, ModelError
from netloop.values.unpicklable import Unpicklable

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
"""TensorRT's codes of findings; all others are INVALID_NODE."""


class NodeIndices(list[int]):
    """The indices of nodes of a model."""


class SubGraphCollection(list[tuple[NodeIndices, bool]]):
    """The subgraphs of a model: the indices of their nodes, and whether they can be added. From TensorRT 10."""


class ParserError:
    """An error in a model."""

    def __init__(self, finding: Finding, file: str = "") -> None:
        self._finding = finding
        self._file = file

    @property
    def _node(self) -> ImportedNode | None:
        return self._finding.at if isinstance(self._finding.at, ImportedNode) else None

    def code(self) -> ErrorCode:
        """The kind of the error."""
        return CODES.get(self._finding.code, ErrorCode.INVALID_NODE)

    def desc(self) -> str:
        """The message, the location, the reason and a fix."""
        return str(self._finding)

    def file(self) -> str:
        """The file of the model; empty if it is not known."""
        return self._file

    def line(self) -> int:
        """-1: models have no lines."""
        return -1

    def func(self) -> str:
        """Empty: netloop does not name its own function that found the error."""
        return ""

    def node(self) -> int:
        """The index in the model's graph of the invalid node, or of the one that contains it; -1 if there is none."""
        return -1 if self._node is None else self._node.outermost

    def node_name(self) -> str:
        """The name of the invalid node."""
        return "" if self._node is None else self._node.name

    def node_operator(self) -> str:
        """The operator of the invalid node."""
        return "" if self._node is None else self._node.op

    def local_function_stack(self) -> list[str]:
        """The model functions that contain the invalid node, the outermost first."""
        return [] if self._node is None else [call.op for call in self._node.calls]

    def local_function_stack_size(self) -> int:
        """The number of functions that contain the invalid node."""
        return len(self.local_function_stack())

    def __str__(self) -> str:
        return self.desc()


class OnnxModelReader(Unpicklable, WithStatement, CheckedAttributes):
    """Read ONNX models and keep their errors: the base of the parser and the refitter."""

    _plugins_override = False

    def __init__(self, logger: ILogger) -> None:
        self._logger: ILogger = check_instance("logger", logger, ILogger)
        self._errors: list[ParserError] = []
        self._loaded: Model | None = None

    def load_model_proto(self, model: bytes, path: str | None = None) -> bool:
        """Read a model from bytes, for another call to use; whether that succeeded."""
        return self._read(bytes(memoryview(model)), None if path is None else Path(path).parent)

    def load_initializer(self, name: str, data: int, size: int) -> bool:
        """Set an initializer of the model that was read to ``size`` bytes at an address of the host.

        Returns:
            False if there is none of this name, or the bytes cannot be read.
        """
        protos = [] if self._loaded is None else [e for e in self._loaded.proto.graph.initializer if e.name == name]
        if not protos:
            return False
        try:
            HOST_MEMORY.check(data, size)
        except BadAddress as error:
            return self._refuse([address_finding(error, f"the address of initializer {name!r}")])
        protos[0].ClearField("external_data")
        protos[0].data_location = onnx.TensorProto.DEFAULT
        protos[0].raw_data = HOST_MEMORY.bytes_at(data, size)
        return True

    def _read(self, model: str | bytes, directory: Path | None) -> bool:
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
        """Add a model to a network and return its importer; None if the model has errors."""
        importer = OnnxImporter(model, network, operators=self._plugins(model), keeps_identities=True)
        try:
            importer.add()
        except ModelError as error:
            self._refuse(error.findings, model.name)
            return None
        for finding in model.forgiven.findings:
            self._logger.log(ILogger.WARNING, str(finding))
        return importer

    def _plugins(self, model: Model) -> dict[str, OwnOperator]:
        """The operators of a model that are plugins, and their functions."""
        return plugin_operators(model, self._plugins_override)

    def _refuse(self, findings: Any, file: str = "") -> bool:
        self._errors += [ParserError(finding, file) for finding in findings]
        for finding in findings:
            self._logger.log(ILogger.ERROR, str(finding))
        return False

    # ------------------------------------------------------------------ errors

    @property
    def num_errors(self) -> int:
        """The number of errors."""
        return len(self._errors)

    def get_error(self, index: int) -> ParserError:
        """Error number ``index``."""
        return item(self._errors, index, "error", "the parser")

    def clear_errors(self) -> None:
        """Delete the errors."""
        self._errors.clear()


class OnnxParser(OnnxModelReader):
    """Add ONNX models to a network. ``netloop.onnx.load`` is shorter, and raises errors.

    A node whose operator is the name of a plugin's creator in ``get_plugin_registry()``, and no operator of ONNX,
    becomes this plugin: of the version and namespace in its attributes ``plugin_version``, ``"1"`` by default, and
    ``plugin_namespace``, with the fields of which the node has attributes.

    If a method that adds a model returns False, its errors are in the list, and the network is not usable.

    Attributes:
        flags: the flags, one bit each; of effect is ENABLE_PLUGIN_OVERRIDE.
    """

    flags: int = 1 << int(OnnxParserFlag.NATIVE_INSTANCENORM)

    def __init__(self, network: INetworkDefinition, logger: ILogger) -> None:
        self._network = check_instance("network", network, INetworkDefinition)
        super().__init__(logger)
        self._subgraphs: list[tuple[list[int], bool]] = []
        self._outputs: dict[str, Any] = {}

    # ------------------------------------------------------------------ parsing

    def parse(self, model: bytes, path: str | None = None) -> bool:
        """Add a model from bytes; whether it has no errors.

        Args:
            model: the bytes of a file.
            path: the path of that file; its external data files are in the same folder.
        """
        return self.load_model_proto(model, path) and self.parse_model_proto()

    def parse_from_file(self, model: str) -> bool:
        """Add a model from a file; whether it has no errors."""
        self._loaded = None
        return self._read(os.fspath(model), None) and self.parse_model_proto()

    def parse_model_proto(self) -> bool:
        """Add the model that was read; whether it has no errors."""
        if self._loaded is None:
            return False
        importer = self._add(self._loaded, self._network)
        self._outputs = {} if importer is None else importer.outputs
        return importer is not None

    # ------------------------------------------------------------------ support

    def supports_operator(self, op_name: str) -> bool:
        """Whether netloop imports an operator, in at least one of its versions."""
        return supports(op_name)

    def supports_model_v2(self, model: bytes, path: str | None = None) -> bool:
        """Whether a whole model can be added; errors go to the list, and the network does not change."""
        before = len(self._errors)
        fits = self.load_model_proto(model, path)
        loaded = self._loaded
        fits = fits and loaded is not None and self._add(loaded, INetworkDefinition()) is not None
        count = 0 if loaded is None else len(loaded.proto.graph.node)
        wrong = {error.node() for error in self._errors[before:]}
        if loaded is not None and not fits:
            plugins = [key_of(name) for name in self._plugins(loaded)]
            wrong |= {node.outermost for nodes in unknown_operators(loaded, plugins).values() for node in nodes}
        self._subgraphs = _runs(count, wrong)
        return fits

    @property
    def num_subgraphs(self) -> int:
        """The number of subgraphs found by ``supports_model_v2``, alternately supported and unsupported."""
        return len(self._subgraphs)

    def is_subgraph_supported(self, index: int) -> bool:
        """Whether the nodes of a subgraph have no errors."""
        return item(self._subgraphs, index, "subgraph", "the parser")[1]

    def get_subgraph_nodes(self, index: int) -> NodeIndices:
        """The indices of the nodes of a subgraph."""
        return NodeIndices(item(self._subgraphs, index, "subgraph", "the parser")[0])

    def supports_model(self, model: bytes, path: str | None = None) -> tuple[bool, SubGraphCollection]:
        """Whether a whole model can be added, and its subgraphs; see ``supports_model_v2``. From TensorRT 10."""
        fits = self.supports_model_v2(model, path)
        return fits, SubGraphCollection((NodeIndices(nodes), supported) for nodes, supported in self._subgraphs)

    def get_layer_output_tensor(self, name: str, i: int) -> ITensor | None:
        """Output ``i`` of the node of a name; None if there is none."""
        outputs = self._outputs.get(name, ())
        result = outputs[i] if 0 <= i < len(outputs) else None
        return result if isinstance(result, ITensor) else None

    # ------------------------------------------------------------------ flags

    @property
    def _plugins_override(self) -> bool:
        return self.get_flag(OnnxParserFlag.ENABLE_PLUGIN_OVERRIDE)

    def set_flag(self, flag: OnnxParserFlag) -> None:
        """Set a flag."""
        self.flags |= flag_bit(flag, OnnxParserFlag)

    def clear_flag(self, flag: OnnxParserFlag) -> None:
        """Clear a flag."""
        self.flags &= ~flag_bit(flag, OnnxParserFlag)

    def get_flag(self, flag: OnnxParserFlag) -> bool:
        """Whether a flag is set."""
        return bool(self.flags & flag_bit(flag, OnnxParserFlag))

    def set_builder_config(self, builder_config: IBuilderConfig) -> bool:
        """True; the import of a model does not depend on the config."""
        return check_instance("builder_config", builder_config, IBuilderConfig) is builder_config

    def get_used_vc_plugin_libraries(self) -> list[str]:
        """Empty: no node needs a library of plugins."""
        return []


def _runs(count: int, wrong: set[int]) -> list[tuple[list[int], bool]]:
    """Split the nodes 0 to ``count`` - 1 into runs of nodes that all have no error or all have one."""
    runs: list[tuple[list[int], bool]] = []
    for number in range(count):
        fits = number not in wrong
        if not runs or runs[-1][1] is not fits:
            runs.append(([], fits))
        runs[-1][0].append(number)
    return runs
