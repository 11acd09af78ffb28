"""A script in the style of TensorRT 10 that runs unchanged, although TensorRT 11 dropped some of its calls.

The network doubles a number until it is above a limit. The script sets the EXPLICIT_BATCH and FP16 flags, opens its
objects in ``with`` statements, registers plugins, writes the plan to a file and reads it back, indexes the engine for
tensor names, and assigns ``__class__`` of a layer found by iterating over the network. It casts with an identity layer,
sets the precision of layers, and sets the type of an int32 output to float32.

    python samples/tensorrt10_style.py

It prints a layer before and after an edit, the inputs and outputs of the plan, and two results:

    twice LayerType.ELEMENTWISE ElementWiseOperation.PROD
    twice LayerType.ELEMENTWISE ElementWiseOperation.SUM
    limit DataType.INT32 () 4 bytes, INPUT
    first_above DataType.FLOAT () 4 bytes, OUTPUT
    limit 20 gives 32.0
    limit 1000 gives 1024.0
"""

import tempfile
from pathlib import Path

import numpy as np

import netloop as trt

LOGGER = trt.Logger(trt.Logger.ERROR)
EXPLICIT_BATCH = 1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH)


def populate(network: trt.INetworkDefinition) -> None:
    """Add the layers, with PROD instead of SUM, which ``edit`` corrects."""
    limit = network.add_input("limit", trt.int32, ())
    one = network.add_constant((), np.array(1, np.int32)).get_output(0)
    loop = network.add_loop()
    state = loop.add_recurrence(one)
    now = state.get_output(0)
    quotient = network.add_elementwise(limit, now, trt.ElementWiseOperation.FLOOR_DIV)
    condition = network.add_identity(quotient.get_output(0))
    condition.set_output_type(0, trt.bool)
    loop.add_trip_limit(condition.get_output(0), trt.TripLimit.WHILE)
    twice = network.add_elementwise(now, now, trt.ElementWiseOperation.PROD)
    twice.name = "twice"
    state.set_input(1, twice.get_output(0))
    output = loop.add_loop_output(now, trt.LoopOutput.LAST_VALUE).get_output(0)
    output.name = "first_above"
    network.mark_output(output)


def edit(network: trt.INetworkDefinition) -> None:
    """Find the product by its name, and change it to a sum."""
    for layer in network:
        layer.precision = trt.float32
        if layer.type == trt.LayerType.ELEMENTWISE and layer.name == "twice":
            layer.__class__ = trt.IElementWiseLayer
            print(layer.name, layer.type, layer.op)
            layer.op = trt.ElementWiseOperation.SUM
            print(layer.name, layer.type, layer.op)
    network.get_output(0).dtype = trt.float32


def build(path: Path) -> None:
    """Build the network and write its plan to a file."""
    with trt.Builder(LOGGER) as builder, builder.create_network(EXPLICIT_BATCH) as network:
        populate(network)
        edit(network)
        with builder.create_builder_config() as config:
            config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, 1 << 28)
            config.set_flag(trt.BuilderFlag.FP16)
            path.write_bytes(builder.build_serialized_network(network, config))


def run(path: Path) -> None:
    """Read the plan from the file and run it twice."""
    with trt.Runtime(LOGGER) as runtime, runtime.deserialize_cuda_engine(path.read_bytes()) as engine:
        host = {}
        for index in range(engine.num_io_tensors):
            name = engine[index]
            dtype, shape = engine.get_tensor_dtype(name), engine.get_tensor_shape(name)
            size = trt.volume(shape) * dtype.itemsize
            print(f"{name} {dtype} {shape} {size} bytes, {engine.get_tensor_mode(name).name}")
            host[name] = np.zeros(trt.volume(shape), trt.nptype(dtype))
        with engine.create_execution_context() as context:
            for limit in (20, 1000):
                host["limit"][0] = limit
                context.execute_v2([value.ctypes.data for value in host.values()])
                print(f"limit {limit} gives {host['first_above'][0]}")


def main() -> None:
    """Build a plan and run it."""
    trt.init_libnvinfer_plugins(LOGGER, "")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "doubling.plan"
        build(path)
        run(path)


if __name__ == "__main__":
    main()
