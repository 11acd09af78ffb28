"""Exported networks in onnxruntime."""

from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
from onnx import ModelProto, TensorProto, checker, helper
from onnx.reference import ReferenceEvaluator

import netloop as trt
from netloop.onnx import to_model
from netloop.values.string_arrays import STRING

NOT_IN_NUMPY = {
    TensorProto.BFLOAT16: ml_dtypes.bfloat16,
    TensorProto.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
    TensorProto.FLOAT4E2M1: ml_dtypes.float4_e2m1fn,
    TensorProto.FLOAT8E8M0: ml_dtypes.float8_e8m0fnu,
    TensorProto.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    TensorProto.FLOAT8E5M2: ml_dtypes.float8_e5m2,
    TensorProto.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    TensorProto.INT4: ml_dtypes.int4,
    TensorProto.UINT4: ml_dtypes.uint4,
    TensorProto.INT2: ml_dtypes.int2,
    TensorProto.UINT2: ml_dtypes.uint2,
}
"""Types that onnxruntime does not accept from numpy; they are passed as float32, which holds all of their values."""

NOT_FROM_NUMPY = {**NOT_IN_NUMPY, TensorProto.STRING: STRING}
"""The types of outputs that onnxruntime gives in another type: strings as objects."""


def export(network: trt.INetworkDefinition, **options: Any) -> ModelProto:
    """Export a network, and check the model in full."""
    model = to_model(network, **options)
    checker.check_model(model, full_check=True)
    assert model.ir_version <= 13
    return model


def run(model: ModelProto, inputs: dict[str, Any], optimized: bool = True) -> dict[str, np.ndarray]:
    """The outputs of a model in onnxruntime, with or without its optimizer."""
    wanted = {info.name: info.type.tensor_type.elem_type for info in model.graph.output}
    with_floats = _with_floats_outside(model)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(with_floats.SerializeToString(), options, ["CPUExecutionProvider"])
    types = {info.name: info.type.tensor_type.elem_type for info in model.graph.input}
    feeds = {
        name: np.asarray(value, np.float32) if types[name] in NOT_IN_NUMPY else _plain(value)
        for name, value in inputs.items()
    }
    names = [info.name for info in with_floats.graph.output]
    found = dict(zip([info.name for info in model.graph.output], session.run(names, feeds), strict=True))
    return {
        name: np.asarray(array).astype(NOT_FROM_NUMPY[wanted[name]]) if wanted[name] in NOT_FROM_NUMPY else array
        for name, array in found.items()
    }


def _plain(value: Any) -> Any:
    if isinstance(value, list | dict | None):
        return value
    array = np.asarray(value)
    return array.astype(object) if array.dtype == STRING else array


def run_by_reference(model: ModelProto, inputs: dict[str, Any]) -> dict[str, np.ndarray]:
    """The outputs of a model by the slow runtime of the onnx package, which has types that onnxruntime lacks."""
    names = [info.name for info in model.graph.output]
    return dict(zip(names, ReferenceEvaluator(model).run(names, inputs), strict=True))


def _with_floats_outside(model: ModelProto) -> ModelProto:
    """The model with float32 inputs and outputs in place of types that numpy lacks."""
    made = ModelProto()
    made.CopyFrom(model)
    renamed = {}
    for info in made.graph.input:
        kind = info.type.tensor_type
        if kind.elem_type in NOT_IN_NUMPY:
            renamed[info.name] = f"{info.name} in its type"
            node = helper.make_node("Cast", [info.name], [renamed[info.name]], to=kind.elem_type)
            made.graph.node.insert(0, node)
            kind.elem_type = TensorProto.FLOAT
    casts = len(renamed)
    _rename(made.graph, renamed, casts)
    for info in made.graph.output:
        kind = info.type.tensor_type
        if kind.elem_type in NOT_IN_NUMPY:
            source = renamed.get(info.name, info.name)
            info.name += " in float32"
            made.graph.node.append(helper.make_node("Cast", [source], [info.name], to=TensorProto.FLOAT))
            kind.elem_type = TensorProto.FLOAT
    return made


def _rename(graph: Any, names: dict[str, str], first: int = 0) -> None:
    for node in graph.node[first:]:
        for position, name in enumerate(node.input):
            node.input[position] = names.get(name, name)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _rename(attribute.g, names)
