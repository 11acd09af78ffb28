"""The shapes of layers' outputs as nodes, against the type rules of the layers."""

import pytest

import netloop as trt
from netloop.formats.onnx.exporter.proto import model
from netloop.formats.onnx_graph.exporter import NetworkExporter
from netloop.formats.onnx_graph.exporter_table import EXPORTERS
from netloop.formats.onnx_graph.graph import OnnxGraph
from netloop.formats.onnx_graph.node_builder import INT64
from netloop.formats.onnx_graph.row_shapes import row_shape
from netloop.formats.onnx_graph.shape_rules import SHAPES
from netloop.formats.onnx_graph.value_scope import ValueScope
from netloop.model.check import require_valid
from netloop.values.types import TensorType
from tests.support.layer_cases import add_case, all_cases, network_of
from tests.support.onnx_runtime import run

FROM_NUMBERS = {
    "IConstantLayer", "IShapeLayer", "INonZeroLayer", "INMSLayer", "IImageDecoderLayer", "IMapLayer", "IPluginV3Layer",
    "ISequenceLayer", "ISequenceInsertLayer", "ISequenceEraseLayer", "ISequenceAtLayer", "ISequenceLengthLayer",
    "ISequenceConcatenationLayer", "ISequenceSplitLayer", "IOptionalLayer", "IOptionalHasLayer", "IOptionalGetLayer",
    "IConditionLayer",
}  # fmt: skip
"""The kinds whose lengths are known while building, or follow from elements and from what sequences hold."""


def is_open(case):
    """Whether a case is valid for inputs of unknown dims, and computes arrays."""
    try:
        network, arrays = network_of(case, dynamic=True)
        require_valid(network)
    except (trt.NetworkError, ValueError, TypeError):
        return False
    # onnxruntime cannot be given the other types, nor convert all of them without its optimizer
    return all(array.dtype.isbuiltin == 1 for array in arrays.values()) and any(array.ndim for array in arrays.values())


def inferred(case):
    """The shapes of the outputs by the type rule, which knows the dims of all inputs; 0 where it knows none."""
    types = [None if tensor is None else TensorType.of(tensor) for tensor in case.inputs]
    shape_inputs = case.layer.SHAPE_INPUTS
    known = [type_ if type_ is None or at in shape_inputs else type_.without_value() for at, type_ in enumerate(types)]
    made = case.layer.infer(*known)
    made = made if isinstance(made, tuple) else (made,)
    return [tuple(max(0, length) for length in array.shape) for array in made]


def distinct_cases():
    """A case for each combination of a kind, input shapes and output shapes."""
    cases = [case_ for case_ in all_cases() if type(case_.layer) in SHAPES and is_open(case_)]
    shapes = [[None if array is None else array.shape for array in case.inputs] for case in cases]
    return list(
        {(type(c.layer), str(before), str(inferred(c))): c for c, before in zip(cases, shapes, strict=True)}.values()
    )


def shapes_by_nodes(network, arrays):
    """The shapes of the outputs of a network by the rules, in onnxruntime."""
    exporter = NetworkExporter(network, require_valid(network), True)
    graph = OnnxGraph("shapes")
    scope = ValueScope(graph)
    for tensor in network.inputs:
        scope.values[tensor] = graph.add_input(tensor.name, network.types[tensor])
    for tensor in network.outputs:
        found = row_shape(exporter, tensor, scope)
        graph.add_output(found, TensorType(INT64, (network.types[tensor].rank,)), tensor.name).name = tensor.name
    return run(model(graph, 24), arrays, optimized=False)


def test_lengths_follow_from_those_of_the_inputs():
    network, arrays, meant = trt.INetworkDefinition(), {}, {}
    cases = distinct_cases()
    for number, case in enumerate(cases):
        arrays |= add_case(network, case, True, f"{number} ")
        meant |= {f"{number} y{at}": shape for at, shape in enumerate(inferred(case))}
    got = shapes_by_nodes(network, arrays)

    wrong = {str(cases[int(k.split()[0])]): (got[k], v) for k, v in meant.items() if tuple(got[k]) != v}
    assert not wrong


@pytest.mark.parametrize("kind", [*EXPORTERS])
def test_every_kind_has_a_rule_unless_its_lengths_follow_from_elements(kind):
    assert (kind in SHAPES) != (kind.__name__ in FROM_NUMBERS)
