"""Plugins that several tests share."""

import ctypes
from typing import Any

import jax.numpy as jnp
import numpy as np

import netloop as trt


@trt.jax_plugin("circular_pad", namespace="tests")
def circular_pad(x, *, pads):
    """x with circular padding."""
    return jnp.pad(x, pads, mode="wrap")


@trt.jax_plugin("backwards", namespace="tests")
def backwards(x):
    """x reversed along all axes."""
    return jnp.flip(x)


def array_at(address: int, desc: trt.PluginTensorDesc) -> np.ndarray:
    """The tensor at an address."""
    dtype, shape = np.dtype(trt.nptype(desc.type)), tuple(max(length, 0) for length in desc.dims)
    memory = (ctypes.c_char * (int(np.prod(shape)) * dtype.itemsize)).from_address(address)
    return np.frombuffer(memory, dtype).reshape(shape)


class Plugin(trt.IPluginV3, trt.IPluginV3OneCore, trt.IPluginV3OneBuild, trt.IPluginV3OneRuntime):
    """A plugin that doubles its input and records its calls."""

    def __init__(self, **own: Any) -> None:
        trt.IPluginV3.__init__(self)
        trt.IPluginV3OneCore.__init__(self)
        trt.IPluginV3OneBuild.__init__(self)
        trt.IPluginV3OneRuntime.__init__(self)
        self.num_outputs = 1
        self.plugin_name, self.plugin_version, self.plugin_namespace = type(self).__name__, "1", ""
        self.calls: list[str] = []
        vars(self).update(own)

    def get_capability_interface(self, type):
        return self

    def clone(self):
        twin = type(self)()
        vars(twin).update(vars(self))
        return twin

    def get_output_data_types(self, input_types):
        return [input_types[0]]

    def get_output_shapes(self, inputs, shape_inputs, expr_builder):
        return [trt.DimsExprs(inputs[0])]

    def supports_format_combination(self, pos, in_out, num_inputs):
        return in_out[pos].desc.format == trt.TensorFormat.LINEAR

    def configure_plugin(self, inp, out):
        self.calls.append(f"configure {[desc.desc.dims for desc in inp]} {[desc.max for desc in out]}")

    def attach_to_context(self, resource_context):
        self.calls.append("attach")
        return self.clone()

    def set_tactic(self, tactic):
        self.calls.append(f"tactic {tactic}")

    def on_shape_change(self, inp, out):
        self.calls.append(f"shapes {[desc.dims for desc in inp]} {[desc.dims for desc in out]}")

    def get_fields_to_serialize(self):
        return trt.PluginFieldCollection()

    def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
        self.calls.append("enqueue")
        arrays = [array_at(*entry) for entry in zip(inputs, input_desc, strict=True)]
        self.compute(*arrays, *(array_at(*entry) for entry in zip(outputs, output_desc, strict=True)))

    def compute(self, x, y):
        y[...] = 2 * x


class CircularPad(Plugin):
    """Circular padding of the input: ``pads`` has two numbers for each axis, the last axis first."""

    pads = np.zeros(0, np.int32)

    def get_output_shapes(self, inputs, shape_inputs, expr_builder):
        made = trt.DimsExprs(inputs[0])
        for axis, (before, after) in zip(reversed(range(len(made))), self.pads.reshape(-1, 2), strict=False):
            more = expr_builder.constant(before + after)
            made[axis] = expr_builder.operation(trt.DimensionOperation.SUM, made[axis], more)
        return [made]

    def get_fields_to_serialize(self):
        return trt.PluginFieldCollection([trt.PluginField("pads", self.pads, trt.PluginFieldType.INT32)])

    def compute(self, x, y):
        pads = self.pads.reshape(-1, 2)[::-1].tolist()
        y[...] = np.pad(x, [(0, 0)] * (x.ndim - len(pads)) + pads, mode="wrap")


class CircularPadCreator(trt.IPluginCreatorV3One):
    """Creates ``CircularPad`` and records the phases."""

    def __init__(self) -> None:
        trt.IPluginCreatorV3One.__init__(self)
        self.name, self.plugin_version, self.plugin_namespace = "CircularPad", "1", ""
        self.field_names = trt.PluginFieldCollection([trt.PluginField("pads", np.array([]), trt.PluginFieldType.INT32)])
        self.phases: list[trt.TensorRTPhase] = []

    def create_plugin(self, name, field_collection, phase):
        self.phases.append(phase)
        return CircularPad(pads=field_collection[0].data)


class NonZero(Plugin):
    """The indices of the nonzero elements, one row each, and their number."""

    def __init__(self, **own: Any) -> None:
        super().__init__(**{"num_outputs": 2, "told": None, **own})

    def get_output_data_types(self, input_types):
        return [trt.int32, trt.int32]

    def get_output_shapes(self, inputs, shape_inputs, expr_builder):
        most = expr_builder.constant(1)
        for length in inputs[0]:
            most = expr_builder.operation(trt.DimensionOperation.PROD, most, length)
        half = expr_builder.operation(trt.DimensionOperation.FLOOR_DIV, most, expr_builder.constant(2))
        found = trt.DimsExprs(2)
        found[0] = expr_builder.declare_size_tensor(1, half, most)
        found[1] = expr_builder.constant(len(inputs[0]))
        return [found, trt.DimsExprs(0)]

    def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
        found = np.argwhere(array_at(inputs[0], input_desc[0])).astype(np.int32, order="C")
        ctypes.memmove(outputs[0], found.ctypes.data, found.nbytes)
        array_at(outputs[1], output_desc[1])[...] = len(found) if self.told is None else self.told
