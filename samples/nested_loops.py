"""A loop inside a loop: a multiplication table, and the sum of each of its rows.

No call places one loop inside the other: nesting follows from data flow. The inner loop reads an element of the outer
loop, so its results differ in each iteration of the outer loop, and it runs inside of it.

    python samples/nested_loops.py

It prints the table of 1, 2, 3 and 10, 20, and the sums:

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
    """Return a network from ``rows`` [3] and ``columns`` [2] to ``table`` [3, 2] and ``sums`` [3]."""
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
    """Print the table and its sums."""
    outputs = trt.compile(build())({"rows": ROWS, "columns": COLUMNS})
    print(outputs["table"])
    print(outputs["sums"])


if __name__ == "__main__":
    main()
