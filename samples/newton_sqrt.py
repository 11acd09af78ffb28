"""Square roots by Newton's method: a WHILE limit ends the loop when the result is accurate.

Each iteration replaces the guess y by (y + x / y) / 2, as long as y * y differs from x by more than a millionth of x. A
second recurrence counts the iterations, and a COUNT limit ends the loop after at most 50.

    python samples/newton_sqrt.py

It prints three roots, and the number of iterations for each:

    sqrt(1.0) = 1.000000, 0 iterations
    sqrt(2.0) = 1.414214, 4 iterations
    sqrt(100.0) = 10.000000, 7 iterations
"""

import numpy as np

import netloop as trt

Op = trt.ElementWiseOperation


def build() -> trt.INetworkDefinition:
    """Return a network from ``x`` [] to ``root`` [] and ``iterations`` []."""
    builder = trt.Builder(trt.Logger(trt.Logger.WARNING))
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))

    def scalar(value: float, dtype: type) -> trt.ITensor:
        return network.add_constant((), np.array(value, dtype)).get_output(0)

    def combine(a: trt.ITensor, b: trt.ITensor, op: Op) -> trt.ITensor:
        return network.add_elementwise(a, b, op).get_output(0)

    x = network.add_input("x", trt.float32, ())
    loop = network.add_loop()
    root = loop.add_recurrence(scalar(1, np.float32))
    iterations = loop.add_recurrence(scalar(0, np.int32))
    y = root.get_output(0)

    error = network.add_unary(combine(combine(y, y, Op.PROD), x, Op.SUB), trt.UnaryOperation.ABS)
    allowed = combine(x, scalar(1e-6, np.float32), Op.PROD)
    loop.add_trip_limit(combine(error.get_output(0), allowed, Op.GREATER), trt.TripLimit.WHILE)
    loop.add_trip_limit(scalar(50, np.int32), trt.TripLimit.COUNT)

    twice = combine(y, combine(x, y, Op.DIV), Op.SUM)
    root.set_input(1, combine(twice, scalar(0.5, np.float32), Op.PROD))
    iterations.set_input(1, combine(iterations.get_output(0), scalar(1, np.int32), Op.SUM))
    for recurrence, name in ((root, "root"), (iterations, "iterations")):
        output = loop.add_loop_output(recurrence.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0)
        output.name = name
        network.mark_output(output)
    return network


def main() -> None:
    """Print three square roots."""
    engine = trt.compile(build())
    for x in (1.0, 2.0, 100.0):
        outputs = engine({"x": np.array(x, np.float32)})
        print(f"sqrt({x}) = {outputs['root']:.6f}, {outputs['iterations']} iterations")


if __name__ == "__main__":
    main()
