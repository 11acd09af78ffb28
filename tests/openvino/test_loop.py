"""Loop becomes a loop, and gives what a loop in numpy gives."""

import numpy as np

from tests.openvino.models import F, check, constant, load, ops, ov, parameter

X = F([[1, 2], [3, 4], [5, 6]])


def test_sum_over_slices():
    x, start = parameter("x", [3, 2]), parameter("start", [1, 2])
    row, total = parameter("row", [1, 2]), parameter("total", [1, 2])
    after = ops.result(ops.add(total, row))
    goes_on = ops.result(constant(True))
    loop = ops.loop(constant(3), constant(True))
    loop.set_function(ov.Model([goes_on, after], [row, total]))
    loop.set_special_body_ports([-1, 0])
    loop.set_sliced_input(row, x.output(0), 0, 1, 1, -1, 0)
    loop.set_merged_input(total, start.output(0), after.output(0))
    last = loop.get_iter_value(after.output(0), -1)
    rows = loop.get_concatenated_slices(after.output(0), 0, 1, 1, -1, 0)
    network = load(ov.Model([ops.result(last), ops.result(rows)], [x, start]))

    sums = np.cumsum(X, 0, dtype=F) + 1
    check(network, {"x": X, "start": F([[1, 1]])}, sums[-1:], sums, road="scan")
