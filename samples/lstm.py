"""An LSTM layer, written out: four gates, two recurrences, and one iteration for each row of the input.

An iterator reads row ``t`` of the input in iteration ``t``. The hidden state and the cell state are recurrences, and
the gates are products of a vector and a matrix. The first dim of the input is -1, so its length may differ between
calls, and the trip count is read from its shape.

    python samples/lstm.py

With all weights 0.5, no biases and a hidden size of 2, it prints the hidden states for 3 rows, and their shape for 5:

    3 rows in, hidden states of shape (3, 2) out
    [[0.5144 0.5144]
     [0.7993 0.7993]
     [0.8892 0.8892]]
    5 rows in, hidden states of shape (5, 2) out
"""

import numpy as np

import netloop as trt

WIDTH, HIDDEN = 3, 2
SIGMOID, TANH = trt.ActivationType.SIGMOID, trt.ActivationType.TANH
SUM, PROD = trt.ElementWiseOperation.SUM, trt.ElementWiseOperation.PROD


def build() -> trt.INetworkDefinition:
    """Return a network from ``x`` [-1, WIDTH] to ``hidden`` [-1, HIDDEN]."""
    builder = trt.Builder(trt.Logger(trt.Logger.WARNING))
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))

    def constant(array: np.ndarray) -> trt.ITensor:
        return network.add_constant(array.shape, array).get_output(0)

    def combine(a: trt.ITensor, b: trt.ITensor, op: trt.ElementWiseOperation) -> trt.ITensor:
        return network.add_elementwise(a, b, op).get_output(0)

    def product(vector: trt.ITensor, matrix: trt.ITensor) -> trt.ITensor:
        vectors, plain = trt.MatrixOperation.VECTOR, trt.MatrixOperation.NONE
        return network.add_matrix_multiply(vector, vectors, matrix, plain).get_output(0)

    x = network.add_input("x", trt.float32, (-1, WIDTH))
    rows = network.add_gather(network.add_shape(x).get_output(0), constant(np.array(0, np.int32)), 0).get_output(0)
    zeros = constant(np.zeros(HIDDEN, np.float32))

    loop = network.add_loop()
    loop.add_trip_limit(rows, trt.TripLimit.COUNT)
    row = loop.add_iterator(x).get_output(0)
    hidden, cell = loop.add_recurrence(zeros), loop.add_recurrence(zeros)

    def gate(activation: trt.ActivationType) -> trt.ITensor:
        kernel = constant(np.full((WIDTH, HIDDEN), 0.5, np.float32))
        recurrent = constant(np.full((HIDDEN, HIDDEN), 0.5, np.float32))
        both = combine(product(row, kernel), product(hidden.get_output(0), recurrent), SUM)
        return network.add_activation(both, activation).get_output(0)

    forget, enter, leave, candidate = gate(SIGMOID), gate(SIGMOID), gate(SIGMOID), gate(TANH)
    memory = combine(combine(forget, cell.get_output(0), PROD), combine(enter, candidate, PROD), SUM)
    cell.set_input(1, memory)
    hidden.set_input(1, combine(leave, network.add_activation(memory, TANH).get_output(0), PROD))

    states = loop.add_loop_output(hidden.get_input(1), trt.LoopOutput.CONCATENATE)
    states.set_input(1, rows)
    states.get_output(0).name = "hidden"
    network.mark_output(states.get_output(0))
    return network


def main() -> None:
    """Run one engine on sequences of two lengths."""
    engine = trt.compile(build())
    for rows in (3, 5):
        hidden = np.asarray(engine({"x": np.ones((rows, WIDTH), np.float32)})["hidden"])
        print(f"{rows} rows in, hidden states of shape {hidden.shape} out")
        if rows == 3:
            print(hidden.round(4))


if __name__ == "__main__":
    main()
