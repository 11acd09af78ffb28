"""``netloop.onnx.load``: an ONNX model as a network."""

import os
from collections.abc import Collection, Mapping, Sequence
from os import PathLike
from typing import Any

import onnx

from netloop.formats.onnx.importer.graph import OnnxImporter
from netloop.formats.onnx.importer.model import read
from netloop.formats.shared.import_errors import MOST_FINDINGS
from netloop.formats.shared.own_operators import OwnOperator, checked
from netloop.model.network import INetworkDefinition
from netloop.process.file_reading import memory_errors_as
from netloop.values.diagnostics import Finding, ModelError


def load(
    model: str | PathLike[str] | bytes | onnx.ModelProto,
    *,
    base_dir: str | PathLike[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    as_inputs: Collection[str] = (),
    operators: Mapping[str, OwnOperator] | None = None,
    inputs: Mapping[str, Any] | None = None,
) -> INetworkDefinition:
    """Import an ONNX model as a network, with the names of the model's inputs and outputs.

    An axis whose length the model leaves open has the length -1, to be given by each call of the engine. ``Loop``,
    ``Scan`` and ``If`` become loops and conditionals of the network.

    Args:
        model: the path of a file, its bytes, or the model itself.
        base_dir: the folder of external tensors; by default the folder of the file, and none for bytes or a model.
        input_shapes: shapes for some inputs, by name, instead of those in the model.
        as_inputs: initializers to import as inputs; they must be among the model's inputs too.
        operators: functions for operators, by ``domain::Name`` or, for ONNX's own, ``Name``; they replace netloop's.
            ``function(network, inputs, attributes)`` adds the layers of a node to the network and returns its output
            or outputs; ``inputs`` are tensors, None for one that is left out, and ``attributes`` a dict.
        inputs: values for some inputs, by name, which become constants instead of inputs of the network. An array has
            the element type of its input, and a Python number or list takes it.

    Raises:
        ModelError: the model is invalid or has unsupported operators; it has all errors.
        InputError: a value of ``inputs`` does not fit its input, or the model has no such input.
        TypeError: an argument is of the wrong Python type.
    """
    findings: list[Finding] = []
    with memory_errors_as(ModelError, os.fspath(model) if isinstance(model, str | PathLike) else "the model"):
        opened = read(model, base_dir, findings)
        if findings:
            raise ModelError(*findings[:MOST_FINDINGS])
        network = INetworkDefinition()
        OnnxImporter(opened, network, input_shapes, as_inputs, checked(operators), inputs).add()
        opened.forgiven.issue()
    return network
