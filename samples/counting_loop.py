"""Add an input to itself as often as a second input says: a COUNT limit, a recurrence, and its last value.

The number of trips is an input of the network, so that one engine serves every number.

    python samples/counting_loop.py

It prints the sum after 0, 1 and 5 trips:

    0 trips: [0. 0. 0.]
    1 trips: [1. 2. 3.]
    5 trips: [ 5. 10. 15.]
"""

import numpy as np

import netloop as trt


def build() -> trt.INetworkDefinition:
    """A network with the inputs ``x`` [3] and ``trips`` [], and the output ``total`` [3]."""
    builder = trt.Builder(trt.Logger(trt.Logger.WARNING))
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    x = network.add_input("x", trt.float32, (3,))
    trips = network.add_input("trips", trt.int32, ())
    zeros = network.add_constant((3,), np.zeros(3, np.float32))

    loop = network.add_loop()
    loop.add_trip_limit(trips, trt.TripLimit.COUNT)
    total = loop.add_recurrence(zeros.get_output(0))
    plus = network.add_elementwise(total.get_output(0), x, trt.ElementWiseOperation.SUM)
    total.set_input(1, plus.get_output(0))
    last = loop.add_loop_output(total.get_output(0), trt.LoopOutput.LAST_VALUE)

    last.get_output(0).name = "total"
    network.mark_output(last.get_output(0))
    return network


def main() -> None:
    """Run one engine three times."""
    engine = trt.compile(build())
    x = np.array([1, 2, 3], np.float32)
    for trips in (0, 1, 5):
        outputs = engine({"x": x, "trips": np.array(trips, np.int32)})
        print(f"{trips} trips: {outputs['total']}")


if __name__ == "__main__":
    main()
