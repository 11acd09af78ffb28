"""Add a vector up a number of times: a loop with a COUNT limit, a recurrence, and its last value.

The trip count is an input of the network, so one engine serves every count.

    python samples/counting_loop.py

It prints the sum after 0, 1 and 5 iterations:

    0 iterations: [0. 0. 0.]
    1 iterations: [1. 2. 3.]
    5 iterations: [ 5. 10. 15.]
"""

import numpy as np

import netloop as trt


def build() -> trt.INetworkDefinition:
    """Return a network from ``x`` [3] and ``count`` [] to ``total`` [3]."""
    builder = trt.Builder(trt.Logger(trt.Logger.WARNING))
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    x = network.add_input("x", trt.float32, (3,))
    count = network.add_input("count", trt.int32, ())
    zeros = network.add_constant((3,), np.zeros(3, np.float32))

    loop = network.add_loop()
    loop.add_trip_limit(count, trt.TripLimit.COUNT)
    total = loop.add_recurrence(zeros.get_output(0))
    plus = network.add_elementwise(total.get_output(0), x, trt.ElementWiseOperation.SUM)
    total.set_input(1, plus.get_output(0))
    last = loop.add_loop_output(total.get_output(0), trt.LoopOutput.LAST_VALUE)

    last.get_output(0).name = "total"
    network.mark_output(last.get_output(0))
    return network


def main() -> None:
    """Run one engine with three counts."""
    engine = trt.compile(build())
    x = np.array([1, 2, 3], np.float32)
    for count in (0, 1, 5):
        outputs = engine({"x": x, "count": np.array(count, np.int32)})
        print(f"{count} iterations: {outputs['total']}")


if __name__ == "__main__":
    main()
