"""A loop inside a loop: the products of all pairs, as a table, and the sum of each of its rows.

Nothing says that one loop is inside the other. The inner loop multiplies an element of the outer loop with its own, so
that what comes out of it is different in each trip of the outer loop, and this is what nesting means.

    python samples/nested_loops.py

For the vectors 1, 2, 3 and 10, 20 it prints the table and the sums:

    [[10 20]
     [20 40]
     [30 60]]
    [30 60 90]
"""

import numpy as np

import netloop as trt

ROWS = np.array([1, 2, 3], np.int32)
COLUMNS = np.array([10, 20], np.int32)


def build() -> trt.INetworkDefinition:
    """A network with the inputs ``rows`` [3] and ``columns`` [2], and the outputs ``table`` [3, 2] and ``sums`` [3]."""
    builder = trt.Builder(trt.Logger(trt.Logger.WARNING))
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))

    def scalar(value: int) -> trt.ITensor:
        return network.add_constant((), np.array(value, np.int32)).get_output(0)

    rows = network.add_input("rows", trt.int32, ROWS.shape)
    columns = network.add_input("columns", trt.int32, COLUMNS.shape)
    height, width = scalar(len(ROWS)), scalar(len(COLUMNS))

    outer = network.add_loop()
    outer.name = "rows"
    outer.add_trip_limit(height, trt.TripLimit.COUNT)
    a = outer.add_iterator(rows)

    inner = network.add_loop()
    inner.name = "columns"
    inner.add_trip_limit(width, trt.TripLimit.COUNT)
    b = inner.add_iterator(columns)
    product = network.add_elementwise(a.get_output(0), b.get_output(0), trt.ElementWiseOperation.PROD)
    total = inner.add_recurrence(scalar(0))
    plus = network.add_elementwise(total.get_output(0), product.get_output(0), trt.ElementWiseOperation.SUM)
    total.set_input(1, plus.get_output(0))
    row = inner.add_loop_output(product.get_output(0), trt.LoopOutput.CONCATENATE)
    row.set_input(1, width)
    row_sum = inner.add_loop_output(total.get_output(0), trt.LoopOutput.LAST_VALUE)

    for name, tensor in (("table", row.get_output(0)), ("sums", row_sum.get_output(0))):
        output = outer.add_loop_output(tensor, trt.LoopOutput.CONCATENATE)
        output.set_input(1, height)
        output.get_output(0).name = name
        network.mark_output(output.get_output(0))
    return network


def main() -> None:
    """Make a table."""
    outputs = trt.compile(build())({"rows": ROWS, "columns": COLUMNS})
    print(outputs["table"])
    print(outputs["sums"])


if __name__ == "__main__":
    main()
