"""Sliced inputs and concatenated outputs of TensorIterator and Loop."""

import numpy as np
import pytest

import netloop
from netloop import ExecutionError, ModelError
from tests.support.openvino_models import F, Loop, check, constant, document, network_of, ops, ov, parameter

ROWS = np.arange(12, dtype=F).reshape(6, 2)


def parts_of(x, axis, start, end, stride, part):
    """The slices of an array, from the first to the last element that a port map names."""
    start, end = (value + x.shape[axis] if value < 0 else value for value in (start, end))
    low, high = min(start, end), max(start, end)
    region = x.take(range(low, high + 1), axis)
    count = (region.shape[axis] - part) // abs(stride) + 1
    parts = [region.take(range(n * abs(stride), n * abs(stride) + part), axis) for n in range(count)]
    return parts if stride > 0 else parts[::-1]


def reading(shape, part_shape, trips=None, dtype=np.float32, **how):
    """The XML and weights of a loop that outputs the slices that it reads."""
    x = parameter("x", shape, dtype)
    loop = Loop(trips)
    part = loop.sliced(x, part_shape, **how)
    size = how.get("part", 1)
    outputs = loop.outputs(rows=[(ops.add(part, constant(F(0))), how.get("axis", 0), size, size)])
    return document(ov.Model([ops.result(outputs[0])], [x]))


def rewritten(documents, before, after, *times):
    xml, weights = documents
    assert before in xml
    return netloop.openvino.load(xml.replace(before, after, *times), weights)


@pytest.mark.parametrize(
    ("start", "end", "stride", "part"),
    [(0, -1, 1, 1), (-1, 0, -1, 1), (0, -1, 2, 2), (-1, 0, -2, 2), (1, -1, 1, 1), (0, -3, 2, 2), (-2, 1, -1, 1)],
)
@pytest.mark.parametrize("axis", [0, 1])
def test_iterator_reads_the_parts_that_it_names(start, end, stride, part, axis):
    x = ROWS if axis == 0 else ROWS.T
    shape, whole = [list(x.shape) for _ in range(2)]
    shape[axis] = part
    documents = reading(whole, shape, axis=axis, start=start, end=end, stride=stride, part=part)

    check(
        netloop.openvino.load(*documents), {"x": x}, np.concatenate(parts_of(x, axis, start, end, stride, part), axis)
    )


WHOLE = b'start="0" end="-1" stride="1" part_size="1"'


@pytest.mark.parametrize(
    ("start", "end", "stride", "part"),
    [(1, 3, 1, 1), (4, 2, -1, 1), (0, 4, 2, 1), (0, -1, 1, 2), (-1, 0, -2, 2), (2, 2, 1, 1)],
)
def test_loop_reads_what_openvino_would_not(start, end, stride, part):
    wanted = parts_of(ROWS, 0, start, end, stride, part)
    xml, weights = reading([6, 2], [1, 2], trips=len(wanted))
    how = f'start="{start}" end="{end}" stride="{stride}" part_size="{part}"'.encode()
    network = netloop.openvino.load(xml.replace(WHOLE, how, 1), weights)

    check(network, {"x": ROWS}, np.concatenate(wanted))


@pytest.mark.parametrize("axis", [-1, -2])
def test_axis_may_count_from_the_end(axis):
    documents = reading([6, 2], [1, 2] if axis == -2 else [6, 1], axis=axis % 2)
    old, new = (f'axis="{value}"'.encode() for value in (axis % 2, axis))

    check(rewritten(documents, old, new), {"x": ROWS}, ROWS)


def test_parts_are_read_backwards_and_written_backwards():
    x = parameter("x", [6, 2])
    loop = Loop()
    part = loop.sliced(x, [2, 2], 0, -1, -2, 2, 0)
    network = network_of(loop.outputs(rows=[(ops.negative(part), 0, -2, 2)]), [x])

    check(network, {"x": ROWS}, -ROWS)


@pytest.mark.parametrize("trips", [None, 6])
def test_length_may_be_given_by_the_call(trips):
    documents = reading([-1, 2], [1, 2], trips)

    check(netloop.openvino.load(*documents), {"x": ROWS}, ROWS)


def test_parts_of_open_lengths_may_start_anywhere():
    documents = reading([-1, -1], [1, -1])
    network = rewritten(documents, WHOLE, b'start="-2" end="1" stride="-1" part_size="1"', 1)

    check(network, {"x": ROWS}, ROWS[4:0:-1])


def test_iterator_over_nothing_gives_nothing():
    check(netloop.openvino.load(*reading([-1, 2], [1, 2])), {"x": ROWS[:0]}, ROWS[:0])


def test_unused_slice_counts():
    """OpenVINO 2026.4 removes the input, and then runs one iteration."""
    x, start = parameter("x", [6, 2]), parameter("start", [1])
    loop = Loop()
    loop.sliced(x, [1, 2])
    now = loop.state(start)
    network = network_of(loop.outputs([(now, after := ops.add(now, constant(F([1]))))], [after]), [x, start])

    check(network, {"x": ROWS, "start": F([0])}, F([6]))


def test_iterator_without_slices_has_one_iteration():
    x = parameter("x", [1])
    loop = Loop()
    now = loop.state(x)

    check(network_of(loop.outputs([(now, after := ops.add(now, now))], [after]), [x]), {"x": F([3])}, F([6]))


def test_iterator_in_a_loop():
    x, zero = parameter("x", [6, 2]), constant(F([[0, 0]]))
    outer = Loop(2)
    total, rows = outer.state(zero), outer.same(x)
    inner = Loop()
    now, row = inner.state(total), inner.sliced(rows, [1, 2])
    (sum_,) = inner.outputs([(now, after := ops.add(now, row))], [after])
    network = network_of(outer.outputs([(total, sum_.get_node())], [sum_.get_node()]), [x])

    check(network, {"x": ROWS}, 2 * ROWS.sum(0, keepdims=True))


def test_slices_of_different_lengths_are_refused():
    x, y = parameter("x", [6, 2]), parameter("y", [6, 2])
    loop = Loop()
    a, b = loop.sliced(x, [1, 2]), loop.sliced(y, [1, 2])
    documents = document(ov.Model([ops.result(loop.outputs(rows=[(ops.add(a, b), 0)])[0])], [x, y]))

    with pytest.raises(ModelError, match=r"have \[5, 6\] slices, but must have equally many"):
        rewritten(documents, b'shape="6,2"', b'shape="5,2"', 1)


def test_loop_that_reads_past_the_end_of_its_slices_is_an_error_of_the_call():
    engine = netloop.compile(netloop.openvino.load(*reading([-1, 2], [1, 2], trips=7)))

    with pytest.raises(ExecutionError, match="reads past the end"):
        engine({"x": ROWS})


@pytest.mark.parametrize(
    ("how", "why"),
    [
        (b'start="7" end="-1" stride="1" part_size="1"', "axis 0 has 6 elements, and slices range from 7 to -1"),
        (b'start="0" end="-9" stride="1" part_size="1"', "axis 0 has 6 elements, and slices range from 0 to -9"),
        (b'start="0" end="-1" stride="-1" part_size="1"', "axis 0 has 6 elements, and slices range from 0 to -1"),
        (b'start="0" end="-1" stride="4" part_size="4"', "slices of 4 elements do not fill 6"),
        (b'start="0" end="-1" stride="0" part_size="1"', "the slices have the size 1 and the stride 0"),
        (b'start="0" end="-1" stride="1" part_size="-1"', "the slices have the size -1 and the stride 1"),
        (b'start="x" end="-1" stride="1" part_size="1"', "start of <input> is 'x', but must be an integer"),
    ],
)
def test_parts_that_are_none_are_refused(how, why):
    xml, weights = reading([6, 2], [1, 2])

    with pytest.raises(ModelError, match=why):
        netloop.openvino.load(xml.replace(WHOLE, how, 1), weights)


@pytest.mark.parametrize("how", [b'start="1" end="-1" stride="1" part_size="1"', b'start="0" end="-1" stride="-1"'])
def test_output_that_is_not_written_as_a_whole_is_refused(how):
    xml, weights = reading([6, 2], [1, 2])
    first = xml.index(WHOLE) + len(WHOLE)

    with pytest.raises(ModelError, match="outputs are complete"):
        netloop.openvino.load(xml[:first] + xml[first:].replace(WHOLE, how, 1), weights)
