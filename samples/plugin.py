"""Circular padding, a layer that TensorRT lacks, as two plugins: a JAX function and an IPluginV3.

The function becomes part of the compiled program. The class reads and writes addresses of host memory.

    python samples/plugin.py

It pads [[0, 1, 2], [3, 4, 5]] circularly, by one column on either side and one row below:

    JaxPlugin:     [[2, 0, 1, 2, 0], [5, 3, 4, 5, 3], [2, 0, 1, 2, 0]]
    IPluginV3:     [[2, 0, 1, 2, 0], [5, 3, 4, 5, 3], [2, 0, 1, 2, 0]]
    from its plan: [[2, 0, 1, 2, 0], [5, 3, 4, 5, 3], [2, 0, 1, 2, 0]]
"""

import ctypes
from typing import Any

import jax.numpy as jnp
import numpy as np

import netloop as trt

X = np.arange(6, dtype=np.int32).reshape(2, 3)


@trt.jax_plugin("CircularPad", namespace="jax")
def circular_pad(x: jnp.ndarray, *, pads: tuple[tuple[int, int], ...]) -> jnp.ndarray:
    """Pad ``x`` circularly, by two numbers for each axis."""
    return jnp.pad(x, pads, mode="wrap")


class CircularPad(trt.IPluginV3, trt.IPluginV3OneCore, trt.IPluginV3OneBuild, trt.IPluginV3OneRuntime):
    """Pad the input circularly; ``pads`` has two numbers for each axis, the last axis first."""

    plugin_name, plugin_version, num_outputs = "CircularPadPlugin", "1", 1

    def __init__(self, pads: Any) -> None:
        self.pads = np.asarray(pads, np.int32)

    def get_capability_interface(self, type: trt.PluginCapabilityType) -> Any:
        return self

    def clone(self) -> "CircularPad":
        return CircularPad(self.pads)

    def attach_to_context(self, resource_context: trt.IPluginResourceContext) -> "CircularPad":
        return self.clone()

    def get_output_data_types(self, input_types: Any) -> list[trt.DataType]:
        return [input_types[0]]

    def get_output_shapes(self, inputs: Any, shape_inputs: Any, expr_builder: trt.IExprBuilder) -> list[trt.DimsExprs]:
        more = map(expr_builder.constant, self.pads.reshape(-1, 2)[::-1].sum(1))
        plus = trt.DimensionOperation.SUM
        return [trt.DimsExprs(expr_builder.operation(plus, a, b) for a, b in zip(inputs[0], more, strict=True))]

    def supports_format_combination(self, pos: int, in_out: Any, num_inputs: int) -> bool:
        return in_out[pos].desc.type is trt.int32

    def enqueue(self, input_desc: Any, output_desc: Any, inputs: Any, outputs: Any, *_: int) -> None:
        x, y = array_at(inputs[0], input_desc[0]), array_at(outputs[0], output_desc[0])
        y[...] = np.pad(x, self.pads.reshape(-1, 2)[::-1], mode="wrap")

    def get_fields_to_serialize(self) -> trt.PluginFieldCollection:
        return trt.PluginFieldCollection([trt.PluginField("pads", self.pads, trt.PluginFieldType.INT32)])


class CircularPadCreator(trt.IPluginCreatorV3One):
    """Create the plugin from its serialized fields."""

    name, plugin_version = "CircularPadPlugin", "1"

    def create_plugin(self, name: str, field_collection: Any, phase: trt.TensorRTPhase) -> CircularPad:
        return CircularPad(field_collection[0].data)


def array_at(address: int, desc: trt.PluginTensorDesc) -> Any:
    """Return the int32 tensor at an address."""
    return np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_int32)), tuple(desc.dims))


def build(plugin: trt.IPluginV3) -> trt.INetworkDefinition:
    """Return a network from ``x`` [-1, 3] to ``y``, the output of a plugin."""
    network = trt.INetworkDefinition()
    y = network.add_plugin_v3([network.add_input("x", trt.int32, (-1, 3))], [], plugin).get_output(0)
    y.name = "y"
    network.mark_output(y)
    return network


def main() -> None:
    """Run both plugins, and the class once more from a plan."""
    trt.get_plugin_registry().register_creator(CircularPadCreator())
    with_function, with_class = build(circular_pad(pads=((0, 1), (1, 1)))), build(CircularPad([1, 1, 0, 1]))
    again = trt.plan.loads(trt.plan.dumps(with_class))
    for name, network in (("JaxPlugin", with_function), ("IPluginV3", with_class), ("from its plan", again)):
        print(f"{name + ':':14}", trt.compile(network)({"x": X})["y"].tolist())


if __name__ == "__main__":
    main()
