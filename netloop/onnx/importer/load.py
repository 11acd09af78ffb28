"""From an ONNX model to a network."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from os import PathLike

import onnx

from netloop.diagnostics import Finding, ModelError
from netloop.network import INetworkDefinition
from netloop.onnx.importer.graph import Importer
from netloop.onnx.importer.model import read


def load(
    model: str | PathLike[str] | bytes | onnx.ModelProto,
    *,
    base_dir: str | PathLike[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    as_inputs: Collection[str] = (),
) -> INetworkDefinition:
    """The network that an ONNX model describes, its inputs and outputs named as in the model.

    A length that the model leaves open is -1, and each call of the engine tells it. ``Loop``, ``Scan`` and ``If``
    become netloop's own loops and conditionals.

    Args:
        model: the path of a file, the bytes of one, or the model itself.
        base_dir: the folder of the files that hold tensors outside of the model; of a file by default its own, and of
            bytes none.
        input_shapes: shapes for some inputs, by name, instead of those in the model.
        as_inputs: initializers that each call gives; they must be among the inputs of the model too.

    Raises:
        ModelError: the model is damaged, or has what netloop does not know; all that is wrong is told.
        TypeError: an argument is of the wrong Python type.
    """
    findings: list[Finding] = []
    opened = read(model, base_dir, findings)
    if findings:
        raise ModelError(*findings)
    network = INetworkDefinition()
    Importer(opened, network, input_shapes, as_inputs).add()
    return network
