"""Running sums of a list: an iterator, a recurrence, and stacked outputs in both orders.

CONCATENATE stacks the values of a tensor in all iterations, and REVERSE stacks them in opposite order. Input 1 is the
length of the stacked axis; if it is above the trip count, the rest is zeros.

    python samples/running_sum.py

It prints both for the numbers 1 to 5, and CONCATENATE once more with a length of 7:

    CONCATENATE: [ 1  3  6 10 15]
    REVERSE:     [15 10  6  3  1]
    length 7:    [ 1  3  6 10 15  0  0]
"""

import numpy as np

import netloop as trt

NUMBERS = np.array([1, 2, 3, 4, 5], np.int32)


def build() -> trt.INetworkDefinition:
    """Return a network from ``x`` [5] to ``forwards`` [5], ``backwards`` [5] and ``padded`` [7]."""
    builder = trt.Builder(trt.Logger(trt.Logger.WARNING))
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))

    def scalar(value: int) -> trt.ITensor:
        return network.add_constant((), np.array(value, np.int32)).get_output(0)

    x = network.add_input("x", trt.int32, NUMBERS.shape)
    length = scalar(len(NUMBERS))
    loop = network.add_loop()
    loop.add_trip_limit(length, trt.TripLimit.COUNT)
    element = loop.add_iterator(x, 0, False)
    before = loop.add_recurrence(scalar(0))
    after = network.add_elementwise(before.get_output(0), element.get_output(0), trt.ElementWiseOperation.SUM)
    before.set_input(1, after.get_output(0))

    stacked = [
        ("forwards", trt.LoopOutput.CONCATENATE, length),
        ("backwards", trt.LoopOutput.REVERSE, length),
        ("padded", trt.LoopOutput.CONCATENATE, scalar(7)),
    ]
    for name, kind, rows in stacked:
        output = loop.add_loop_output(after.get_output(0), kind, 0)
        output.set_input(1, rows)
        output.get_output(0).name = name
        network.mark_output(output.get_output(0))
    return network


def main() -> None:
    """Print the running sums in three forms."""
    outputs = trt.compile(build())({"x": NUMBERS})
    print("CONCATENATE:", outputs["forwards"])
    print("REVERSE:    ", outputs["backwards"])
    print("length 7:   ", outputs["padded"])


if __name__ == "__main__":
    main()
