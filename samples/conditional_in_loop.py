"""A conditional inside a loop: the way of a number under n -> n / 2 if n is even, 3 n + 1 if it is odd, down to 1.

The loop ends by a WHILE limit when the number is 1. In each trip only the branch that is taken is computed.

    python samples/conditional_in_loop.py

It prints the way of 6, and how many trips it took:

    6 3 10 5 16 8 4 2 after 8 trips: 1
"""

import numpy as np

import netloop as trt

Op = trt.ElementWiseOperation
ROOM = 200


def build() -> trt.INetworkDefinition:
    """A network with the input ``start`` [], and the outputs ``way`` [ROOM], ``trips`` [] and ``end`` []."""
    builder = trt.Builder(trt.Logger(trt.Logger.WARNING))
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))

    def scalar(value: int) -> trt.ITensor:
        return network.add_constant((), np.array(value, np.int32)).get_output(0)

    def combine(a: trt.ITensor, b: trt.ITensor, op: Op) -> trt.ITensor:
        return network.add_elementwise(a, b, op).get_output(0)

    start = network.add_input("start", trt.int32, ())
    loop = network.add_loop()
    number, trips = loop.add_recurrence(start), loop.add_recurrence(scalar(0))
    n = number.get_output(0)
    loop.add_trip_limit(combine(n, scalar(1), Op.GREATER), trt.TripLimit.WHILE)

    half = combine(n, scalar(2), Op.FLOOR_DIV)
    is_even = combine(combine(half, scalar(2), Op.PROD), n, Op.EQUAL)
    conditional = network.add_if_conditional()
    conditional.set_condition(is_even)
    inside = conditional.add_input(n).get_output(0)
    if_even = combine(inside, scalar(2), Op.FLOOR_DIV)
    if_odd = combine(combine(inside, scalar(3), Op.PROD), scalar(1), Op.SUM)
    number.set_input(1, conditional.add_output(if_even, if_odd).get_output(0))
    trips.set_input(1, combine(trips.get_output(0), scalar(1), Op.SUM))

    way = loop.add_loop_output(n, trt.LoopOutput.CONCATENATE)
    way.set_input(1, scalar(ROOM))
    count = loop.add_loop_output(trips.get_output(0), trt.LoopOutput.LAST_VALUE)
    end = loop.add_loop_output(n, trt.LoopOutput.LAST_VALUE)
    for name, output in (("way", way), ("trips", count), ("end", end)):
        output.get_output(0).name = name
        network.mark_output(output.get_output(0))
    return network


def main() -> None:
    """Follow 6."""
    outputs = trt.compile(build())({"start": np.array(6, np.int32)})
    trips = int(outputs["trips"])
    print(*outputs["way"][:trips], "after", trips, "trips:", outputs["end"])


if __name__ == "__main__":
    main()
