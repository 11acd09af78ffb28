"""A conditional inside a loop: the Collatz sequence, n -> n / 2 if n is even and 3 n + 1 if n is odd, down to 1.

A WHILE limit ends the loop when the number is 1. Each iteration computes only the branch that the condition selects.

    python samples/conditional_in_loop.py

It prints the sequence of 6, and the number of iterations:

    6 3 10 5 16 8 4 2 -> 1 after 8 iterations
"""

import numpy as np

import netloop as trt

Op = trt.ElementWiseOperation
MAX_ITERATIONS = 200


def build() -> trt.INetworkDefinition:
    """Return a network from ``start`` [] to ``sequence`` [MAX_ITERATIONS], ``iterations`` [] and ``end`` []."""
    builder = trt.Builder(trt.Logger(trt.Logger.WARNING))
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))

    def scalar(value: int) -> trt.ITensor:
        return network.add_constant((), np.array(value, np.int32)).get_output(0)

    def combine(a: trt.ITensor, b: trt.ITensor, op: Op) -> trt.ITensor:
        return network.add_elementwise(a, b, op).get_output(0)

    start = network.add_input("start", trt.int32, ())
    loop = network.add_loop()
    number, iterations = loop.add_recurrence(start), loop.add_recurrence(scalar(0))
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
    iterations.set_input(1, combine(iterations.get_output(0), scalar(1), Op.SUM))

    sequence = loop.add_loop_output(n, trt.LoopOutput.CONCATENATE)
    sequence.set_input(1, scalar(MAX_ITERATIONS))
    count = loop.add_loop_output(iterations.get_output(0), trt.LoopOutput.LAST_VALUE)
    end = loop.add_loop_output(n, trt.LoopOutput.LAST_VALUE)
    for name, output in (("sequence", sequence), ("iterations", count), ("end", end)):
        output.get_output(0).name = name
        network.mark_output(output.get_output(0))
    return network


def main() -> None:
    """Print the sequence of 6."""
    outputs = trt.compile(build())({"start": np.array(6, np.int32)})
    iterations = int(outputs["iterations"])
    print(*outputs["sequence"][:iterations], "->", outputs["end"], "after", iterations, "iterations")


if __name__ == "__main__":
    main()
