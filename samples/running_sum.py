"""The running sums of a list: an iterator, and every element of a recurrence, first to last and last to first.

CONCATENATE stacks what a tensor was in each trip, REVERSE stacks the same in opposite order. Input 1 of either is the
length of the new axis; where it is above the number of trips, zeros come last.

    python samples/running_sum.py

It prints both for the numbers 1 to 5, and CONCATENATE once more with room for seven:

    CONCATENATE: [ 1  3  6 10 15]
    REVERSE:     [15 10  6  3  1]
    with room:   [ 1  3  6 10 15  0  0]
"""

import numpy as np

import netloop as trt

NUMBERS = np.array([1, 2, 3, 4, 5], np.int32)


def build() -> trt.INetworkDefinition:
    """A network with the input ``x`` [5], and the outputs ``forwards`` [5], ``backwards`` [5] and ``padded`` [7]."""
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

    wanted = [
        ("forwards", trt.LoopOutput.CONCATENATE, length),
        ("backwards", trt.LoopOutput.REVERSE, length),
        ("padded", trt.LoopOutput.CONCATENATE, scalar(7)),
    ]
    for name, kind, room in wanted:
        output = loop.add_loop_output(after.get_output(0), kind, 0)
        output.set_input(1, room)
        output.get_output(0).name = name
        network.mark_output(output.get_output(0))
    return network


def main() -> None:
    """Sum up."""
    outputs = trt.compile(build())({"x": NUMBERS})
    print("CONCATENATE:", outputs["forwards"])
    print("REVERSE:    ", outputs["backwards"])
    print("with room:  ", outputs["padded"])


if __name__ == "__main__":
    main()
