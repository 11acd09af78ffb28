"""An LSTM of any sequence length and batch size, with TensorRT's runtime classes: plan, runtime, context, addresses.

Every call is TensorRT 11's, so only the import of a TensorRT script has to change. The addresses are those of numpy
arrays, instead of GPU memory.

    python samples/tensorrt_lstm.py

With all weights 0.5, no biases and ones for an input, it prints the first element of the hidden state after each row:

    hidden has shape (-1, -1, 2), for shapes of x from (1, 1, 3) to (16, 4, 3)
    x (3, 1, 3), hidden (3, 1, 2): 0.5144 0.7993 0.8892
    x (5, 2, 3), hidden (5, 2, 2): 0.5144 0.7993 0.8892 0.9112 0.9164
"""

import numpy as np

import netloop as trt

WIDTH, HIDDEN = 3, 2
LOGGER = trt.Logger(trt.Logger.WARNING)
SUM, PROD = trt.ElementWiseOperation.SUM, trt.ElementWiseOperation.PROD
SIGMOID, TANH, NONE = trt.ActivationType.SIGMOID, trt.ActivationType.TANH, trt.MatrixOperation.NONE


def add_lstm(network: trt.INetworkDefinition, x: trt.ITensor, first: list[trt.ITensor]) -> trt.ITensor:
    """Add an LSTM layer over x [time, batch, WIDTH] and return its hidden states [time, batch, HIDDEN]."""
    zero = network.add_constant((), np.array(0, np.int32)).get_output(0)
    length = network.add_gather(network.add_shape(x).get_output(0), zero, 0).get_output(0)
    loop = network.add_loop()
    loop.add_trip_limit(length, trt.TripLimit.COUNT)
    row = loop.add_iterator(x).get_output(0)
    hidden, cell = (loop.add_recurrence(tensor) for tensor in first)

    def gate(activation: trt.ActivationType) -> trt.ITensor:
        kernel = network.add_constant((WIDTH, HIDDEN), np.full((WIDTH, HIDDEN), 0.5, np.float32)).get_output(0)
        recurrent = network.add_constant((HIDDEN, HIDDEN), np.full((HIDDEN, HIDDEN), 0.5, np.float32)).get_output(0)
        new = network.add_matrix_multiply(row, NONE, kernel, NONE).get_output(0)
        old = network.add_matrix_multiply(hidden.get_output(0), NONE, recurrent, NONE).get_output(0)
        return network.add_activation(network.add_elementwise(new, old, SUM).get_output(0), activation).get_output(0)

    kept = network.add_elementwise(gate(SIGMOID), cell.get_output(0), PROD).get_output(0)
    added = network.add_elementwise(gate(SIGMOID), gate(TANH), PROD).get_output(0)
    memory = network.add_elementwise(kept, added, SUM).get_output(0)
    shown = network.add_elementwise(gate(SIGMOID), network.add_activation(memory, TANH).get_output(0), PROD)
    cell.set_input(1, memory)
    hidden.set_input(1, shown.get_output(0))
    states = loop.add_loop_output(shown.get_output(0), trt.LoopOutput.CONCATENATE, 0)
    states.set_input(1, length)
    return states.get_output(0)


def build() -> trt.IHostMemory:
    """Build the plan of a network from x, hidden_in and cell_in to hidden."""
    builder = trt.Builder(LOGGER)
    network = builder.create_network(0)
    x = network.add_input("x", trt.float32, (-1, -1, WIDTH))
    first = [network.add_input(name, trt.float32, (-1, HIDDEN)) for name in ("hidden_in", "cell_in")]
    states = add_lstm(network, x, first)
    states.name = "hidden"
    network.mark_output(states)
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    profile.set_shape("x", (1, 1, WIDTH), (8, 2, WIDTH), (16, 4, WIDTH))
    for tensor in first:
        profile.set_shape(tensor.name, (1, HIDDEN), (2, HIDDEN), (4, HIDDEN))
    config.add_optimization_profile(profile)
    return builder.build_serialized_network(network, config)


def infer(context: trt.IExecutionContext, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Run the context on arrays, and return each output as a new array."""
    for name, array in inputs.items():
        context.set_input_shape(name, array.shape)
        context.set_tensor_address(name, array.ctypes.data)
    if missing := context.infer_shapes():
        raise ValueError(f"shapes are missing: {missing}")
    engine, outputs = context.engine, {}
    for name in (engine.get_tensor_name(index) for index in range(engine.num_io_tensors)):
        if engine.get_tensor_mode(name) == trt.TensorIOMode.OUTPUT:
            outputs[name] = np.empty(context.get_tensor_shape(name), trt.nptype(engine.get_tensor_dtype(name)))
            context.set_tensor_address(name, outputs[name].ctypes.data)
    if not context.execute_async_v3(0):
        raise RuntimeError("the run failed; the log has the reason")
    return outputs


def main() -> None:
    """Run sequences of two lengths in batches of two sizes."""
    engine = trt.Runtime(LOGGER).deserialize_cuda_engine(build())
    least, _, most = engine.get_tensor_profile_shape("x", 0)
    print(f"hidden has shape {engine.get_tensor_shape('hidden')}, for shapes of x from {least} to {most}")
    context = engine.create_execution_context()
    for rows, batch in ((3, 1), (5, 2)):
        x, zeros = np.ones((rows, batch, WIDTH), np.float32), np.zeros((batch, HIDDEN), np.float32)
        hidden = infer(context, {"x": x, "hidden_in": zeros, "cell_in": zeros})["hidden"]
        print(f"x {x.shape}, hidden {hidden.shape}:", *(f"{value:.4f}" for value in hidden[:, 0, 0]))


if __name__ == "__main__":
    main()
