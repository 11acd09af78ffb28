"""Exported networks in OpenVINO's CPU plugin."""

import importlib
from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import netloop as trt
from netloop.openvino import to_model

pytest.importorskip("openvino")
ov = importlib.import_module("openvino")

CORE = ov.Core()
EXACT = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
NOT_IN_NUMPY = {
    np.dtype(ml_dtypes.bfloat16): ov.Type.bf16,
    np.dtype(ml_dtypes.float8_e4m3fn): ov.Type.f8e4m3,
    np.dtype(ml_dtypes.float8_e5m2): ov.Type.f8e5m2,
    np.dtype(ml_dtypes.float8_e8m0fnu): ov.Type.f8e8m0,
}


OF_CONSTANTS = "StaticMemory object"
"""Part of the plugin's error for a loop of only constants whose output lengths it cannot infer."""


def run_or_skip(model: tuple[bytes, bytes], inputs: dict[str, Any]) -> dict[str, np.ndarray]:
    """The outputs of a model; skips the test if the plugin refuses a loop of only constants."""
    try:
        return run(model, inputs)
    except RuntimeError as error:
        if OF_CONSTANTS in str(error):
            pytest.skip("the plugin refuses loops of only constants")
        raise


def run(model: tuple[bytes, bytes], inputs: dict[str, Any]) -> dict[str, np.ndarray]:
    """The outputs of a model in OpenVINO."""
    (outputs,) = run_calls(model, [inputs])
    return outputs


def run_calls(model: tuple[bytes, bytes], calls: Sequence[dict[str, Any]]) -> Iterator[dict[str, np.ndarray]]:
    """The outputs of each of several calls of one compiled model: the first may differ from the others.

    They are asynchronous calls, because synchronous ones ignore errors.
    """
    read = CORE.read_model(*model)
    given, wanted = ([value.any_name for value in side] for side in (read.inputs, read.outputs))
    compiled = CORE.compile_model(read, "CPU", EXACT)
    request = compiled.create_infer_request()
    for inputs in calls:
        for name, tensor in zip(given, compiled.inputs, strict=True):
            request.set_tensor(tensor, _tensor(np.asarray(inputs[name])))
        request.start_async()
        request.wait()
        yield {name: _array(request.get_tensor(tensor)) for name, tensor in zip(wanted, compiled.outputs, strict=True)}


def export(network: trt.INetworkDefinition, **options: Any) -> tuple[bytes, bytes]:
    """Export a network."""
    return to_model(network, **options)


def _tensor(array: np.ndarray) -> Any:
    kind = NOT_IN_NUMPY.get(array.dtype)
    if kind is None:
        return ov.Tensor(np.ascontiguousarray(array).reshape(array.shape))
    made = ov.Tensor(kind, ov.Shape(array.shape))
    made.data.reshape(-1).view(np.uint8)[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return made


def _array(tensor: Any) -> np.ndarray:
    dtypes = {kind: dtype for dtype, kind in NOT_IN_NUMPY.items()}
    data = np.array(tensor.data)
    return (
        data.view(dtypes[tensor.element_type]).reshape(tuple(tensor.shape)) if tensor.element_type in dtypes else data
    )
