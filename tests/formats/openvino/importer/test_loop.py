"""Loop against loops in numpy."""

import itertools

import numpy as np
import pytest

import netloop
from netloop import ExecutionError, ModelError
from tests.support.onnx_runtime import run
from tests.support.openvino_models import TRUE, F, Loop, check, constant, document, network_of, ops, ov, parameter

X = F([[1, 2], [3, 4], [5, 6]])
ONE = F([1])


def doubling(trips, goes_on=True, limit=None, inputs=()):
    """The network of a loop that doubles a number while it is below a limit, and outputs all numbers."""
    x = parameter("x", [1])
    loop = Loop(trips, goes_on)
    now = loop.state(x)
    after = ops.multiply(now, constant(F(2)))
    condition = True if limit is None else ops.less(ops.squeeze(after, constant(np.int64([0]))), constant(F(limit)))
    return network_of(loop.outputs([(now, after)], [after], [(after, 0)], condition), [x, *inputs])


def doubled(trips, goes_on=True, limit=np.inf):
    """The outputs of that loop from 1: the last number, and all of them."""
    now, rows = F([1]), []
    for _ in range(trips) if trips >= 0 else itertools.count():
        if not goes_on:
            break
        now = now * 2
        rows.append(now)
        goes_on = now[0] < limit
    return now, np.concatenate([*rows, np.zeros(0, F)])


# ---------------------------------------------------------------------------- trip limits and conditions


@pytest.mark.parametrize("trips", [0, 1, 5])
def test_loop_of_a_count_is_a_scan(trips):
    check(doubling(trips), {"x": ONE}, *doubled(trips), strategy="scan")


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("shape", [[], [1]])
def test_count_may_be_an_input_of_either_integer_type_with_or_without_an_axis(dtype, shape):
    trips = parameter("trips", shape, dtype)
    network = doubling(trips, inputs=[trips])

    check(network, {"x": ONE, "trips": np.full(shape, 3, dtype)}, *doubled(3))


@pytest.mark.parametrize("trips", [-1, 4, 2**40])
@pytest.mark.parametrize("goes_on", [True, False])
@pytest.mark.parametrize("limit", [1, 8, 100])
def test_condition_false_in_one_iteration_keeps_that_one_as_the_last(trips, goes_on, limit):
    check(doubling(trips, goes_on, limit), {"x": ONE}, *doubled(trips, goes_on, limit))


@pytest.mark.parametrize(("trips", "goes_on"), [(0, True), (3, True), (9, True), (-7, True), (9, False)])
def test_both_limits_may_be_inputs(trips, goes_on):
    count, first = parameter("trips", [], np.int64), parameter("first", [1], bool)
    network = doubling(count, first, limit=20, inputs=[count, first])

    check(network, {"x": ONE, "trips": trips, "first": np.bool_([goes_on])}, *doubled(trips, goes_on, 20))


def test_body_that_ends_at_once_has_one_iteration():
    x = parameter("x", [1])
    loop = Loop(-1)
    now = loop.state(x)
    after = ops.add(now, now)

    check(network_of(loop.outputs([(now, after)], [after], condition=False), [x]), {"x": ONE}, F([2]), strategy="scan")


def test_loop_that_never_ends_is_refused():
    with pytest.raises(ModelError, match=r"no trip count, and its condition stays true\n.*'Loop_.*\n.*never end"):
        doubling(-1)


def test_negative_count_of_a_call_is_an_error_where_nothing_else_ends_the_loop():
    trips = parameter("trips", [], np.int32)
    engine = netloop.compile(doubling(trips, inputs=[trips]))

    with pytest.raises(ExecutionError, match="is at least 0, as its condition stays true"):
        engine({"x": ONE, "trips": np.int32(-1)})


def test_loop_whose_count_is_a_length_needs_no_check_and_can_be_saved():
    rows, one = parameter("rows", [-1, 4]), constant(np.int64([0]))
    length = ops.squeeze(ops.gather(ops.shape_of(rows, "i32"), one, constant(np.int64(0))), one)
    network = doubling(length, inputs=[rows])
    inputs = {"x": ONE, "rows": np.zeros((3, 4), F)}
    model, weights = netloop.openvino.to_model(network)
    again = netloop.openvino.load(model, weights=weights)

    for loaded in (network, again):
        assert sorted(map(np.shape, run(netloop.onnx.to_model(loaded), inputs).values())) == [(1,), (3,)]


def test_condition_handed_through_the_body_makes_a_counted_loop():
    x = parameter("x", [1])
    first = constant(True)
    loop = Loop(3, first)
    now, on = loop.state(x), loop.state(first)
    after = ops.add(now, now)
    outputs = loop.outputs([(now, after), (on, on)], [after], condition=on)

    check(network_of(outputs, [x]), {"x": ONE}, F([8]), strategy="scan")


def test_condition_may_be_carried_and_an_output():
    x, first = parameter("x", [1]), parameter("first", [], bool)
    loop = Loop(9, first)
    now, on = loop.state(x), loop.state(first)
    after = ops.add(now, now)
    small = ops.less(ops.squeeze(after, constant(np.int64([0]))), constant(F(7)))
    seen = ops.logical_and(on, small)
    network = network_of(loop.outputs([(now, after), (on, seen)], [after, seen], condition=seen), [x, first])

    check(network, {"x": ONE, "first": TRUE}, F([8]), np.bool_(False))
    check(network, {"x": ONE, "first": np.bool_(False)}, F([1]), np.bool_(False))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("shape", [[], [1]])
def test_iteration_number_is_as_the_body_declares_it(dtype, shape):
    start = parameter("start", [1], dtype)
    loop = Loop(4)
    trip, now = loop.counter(shape, dtype), loop.state(start)
    after = ops.add(now, trip)

    network = network_of(loop.outputs([(now, after)], [after], [(ops.add(now, trip), 0)]), [start])
    check(network, {"start": np.array([5], dtype)}, np.array([11], dtype), np.array([5, 6, 8, 11], dtype))


# ---------------------------------------------------------------------------- carried values


def test_states_step_at_once():
    a, b = parameter("a", [1]), parameter("b", [1])
    loop = Loop(3)
    left, right = loop.state(a), loop.state(b)
    outputs = loop.outputs([(left, right), (right, left)], [right, left])

    check(network_of(outputs, [a, b]), {"a": F([1]), "b": F([2])}, F([2]), F([1]))


def test_delay_line_keeps_the_last_values():
    x, zero = parameter("x", [4, 1]), constant(F([[0]]))
    loop = Loop(4)
    now = loop.sliced(x, [1, 1])
    first, second = loop.state(zero), loop.state(zero)
    outputs = loop.outputs([(second, first), (first, now)], rows=[(ops.add(second, now), 0)])

    numbers = F([[1], [2], [3], [4]])
    check(network_of(outputs, [x]), {"x": numbers}, numbers + F([[0], [0], [1], [2]]))


def test_state_may_grow():
    x = parameter("x", [1])
    loop = Loop(3)
    now = loop.state(x, [-1])
    outputs = loop.outputs([(now, after := ops.concat([now, ops.negative(now)], 0))], [after])

    check(network_of(outputs, [x]), {"x": ONE}, F([1, -1, -1, 1, -1, 1, 1, -1]), strategy="host")


def test_what_grows_is_joined_part_by_part():
    x = parameter("x", [1])
    loop = Loop(3)
    now = loop.state(x, [-1])
    after = ops.concat([now, constant(F([5]))], 0)
    outputs = loop.outputs([(now, after)], rows=[(after, 0)])

    check(network_of(outputs, [x]), {"x": ONE}, F([1, 5, 1, 5, 5, 1, 5, 5, 5]), strategy="host")


def test_loop_invariant_tensor_may_come_from_outside():
    x, w = parameter("x", [1, 2]), parameter("w", [2, 2])
    loop = Loop(2)
    now, weights = loop.state(x), loop.same(w)
    outputs = loop.outputs([(now, after := ops.matmul(now, weights, False, True))], [after])

    weights = F([[1, 2], [3, 4]])
    check(network_of(outputs, [x, w]), {"x": X[:1], "w": weights}, X[:1] @ weights.T @ weights.T)


def test_initial_value_of_another_type_is_refused():
    xml, weights = document_of_doubling()

    with pytest.raises(ModelError, match=r"carried value 0 is int32\[1\] before an iteration, and"):
        netloop.openvino.load(xml.replace(b'shape="1" element_type="f32"', b'shape="1" element_type="i32"'), weights)


def document_of_doubling():
    x = parameter("x", [1])
    loop = Loop(3)
    now = loop.state(x)
    after = ops.convert(ops.add(now, now), "f32")
    return document(ov.Model([ops.result(loop.outputs([(now, after)], [after])[0])], [x]))


# ---------------------------------------------------------------------------- outputs


@pytest.mark.parametrize("trips", [0, 1, 3])
def test_last_value_of_what_is_not_carried_is_zero_without_an_iteration(trips):
    x = parameter("x", [3, 2])
    loop = Loop(trips)
    row = loop.sliced(x, [1, 2])
    network = network_of(loop.outputs(last=[ops.multiply(row, row)]), [x])

    check(network, {"x": X}, X[trips - 1 : trips] ** 2 if trips else F([[0, 0]]))


def test_last_value_of_what_is_carried_under_another_name_is_its_state():
    x = parameter("x", [-1])
    loop = Loop(2)
    now = loop.state(x)
    after = ops.add(now, now)
    again = ops.reshape(after, constant(np.int64([-1])), False)

    check(network_of(loop.outputs([(now, after)], [again]), [x]), {"x": F([1, 2])}, F([4, 8]))


def test_last_value_of_a_length_that_the_call_gives():
    x = parameter("x", [-1, -1])
    loop = Loop(3)
    row = loop.sliced(x, [1, -1])
    network = network_of(loop.outputs(last=[ops.multiply(row, row)]), [x])

    check(network, {"x": X}, X[2:] ** 2)


def test_one_result_may_leave_in_several_ways():
    x = parameter("x", [1, 2])
    loop = Loop(3)
    now = loop.state(x)
    after = ops.add(now, now)
    outputs = loop.outputs([(now, after)], [after], [(after, 0), (after, 1)])

    rows = [X[:1] * 2**n for n in (1, 2, 3)]
    check(network_of(outputs, [x]), {"x": X[:1]}, rows[-1], np.concatenate(rows, 0), np.concatenate(rows, 1))


def test_value_without_axes_becomes_a_list():
    x = parameter("x", [])
    loop = Loop(3)
    now = loop.state(x)
    xml, weights = document(ov.Model([ops.result(loop.outputs([(now, after := ops.add(now, now))], [after])[0])], [x]))
    # OpenVINO itself cannot infer this shape
    single = b'<output external_port_id="3" internal_layer_id='
    row = b'<output axis="0" external_port_id="3" internal_layer_id='
    assert xml.count(single) == 1

    check(netloop.openvino.load(xml.replace(single, row), weights), {"x": F(1)}, F([2, 4, 8]))


def test_longer_parts_are_joined_too():
    x = parameter("x", [2, 3])
    loop = Loop(2)
    now = loop.state(x)
    after = ops.add(now, now)
    network = network_of(loop.outputs([(now, after)], rows=[(after, 0), (after, 1)]), [x])

    rows = [2 * X.T, 4 * X.T]
    check(network, {"x": X.T}, np.concatenate(rows, 0), np.concatenate(rows, 1))


@pytest.mark.parametrize("goes_on", [True, False])
def test_rows_of_no_iteration_are_none(goes_on):
    trips, first = parameter("trips", [], np.int64), parameter("first", [], bool)
    network = doubling(trips, first, inputs=[trips, first])

    inputs = {"x": ONE, "trips": np.int64(0 if goes_on else 3), "first": np.bool_(goes_on)}
    check(network, inputs, ONE, np.zeros(0, F))


# ---------------------------------------------------------------------------- nested loops


def test_loops_may_be_three_deep():
    def level(outer, depth):
        loop = Loop(2)
        now, trip = loop.state(outer), loop.counter(dtype=np.int32)
        after = ops.add(now, ops.convert(trip, "f32")) if depth == 1 else level(now, depth - 1)
        return loop.outputs([(now, after)], [after])[0].get_node()

    x = parameter("x", [1])

    check(network_of([level(x, 3)], [x]), {"x": ONE}, F([5]))


def test_inner_loop_may_depend_on_the_outer_iteration():
    x, zero = parameter("x", [3, 1]), constant(F([[0]]))
    outer = Loop(3)
    row, trip = outer.sliced(x, [1, 1]), outer.counter()
    inner = Loop(trip)
    total, same = inner.state(zero), inner.same(row)
    (product,) = inner.outputs([(total, after := ops.add(total, same))], [after])
    network = network_of(outer.outputs(rows=[(product.get_node(), 0)]), [x])

    numbers = F([[5], [6], [7]])
    check(network, {"x": numbers}, numbers * F([[0], [1], [2]]))


def test_loop_may_be_in_a_branch_and_a_branch_in_a_loop():
    x, flag = parameter("x", [1]), parameter("flag", [], bool)
    given, other = parameter("given", [1]), parameter("other", [1])
    loop = Loop(3)
    now, trip = loop.state(given), loop.counter()
    inner_given, inner_other = parameter("a", [1]), parameter("b", [1])
    inside = ops.if_op(ops.equal(trip, constant(np.int64(1))).output(0))
    doubled = ops.result(ops.add(inner_given, inner_given))
    inside.set_then_body(ov.Model([doubled], [inner_given]))
    plus = ops.result(ops.add(inner_other, constant(F([1]))))
    inside.set_else_body(ov.Model([plus], [inner_other]))
    inside.set_input(now.output(0), inner_given, inner_other)
    after = inside.set_output(doubled, plus).get_node()
    (last,) = loop.outputs([(now, after)], [after])
    looped, kept = ops.result(last), ops.result(other)
    choice = ops.if_op(flag)
    choice.set_then_body(ov.Model([looped], [given]))
    choice.set_else_body(ov.Model([kept], [other]))
    choice.set_input(x.output(0), given, other)
    network = network_of([choice.set_output(looped, kept)], [x, flag])

    check(network, {"x": ONE, "flag": TRUE}, F([5]))
    check(network, {"x": ONE, "flag": np.bool_(False)}, F([1]))


# ---------------------------------------------------------------------------- errors of OpenVINO


def test_recurrent_network_adds_the_slice_first():
    """OpenVINO 2026.4 overwrites the state with the next slice if the squeezed slice is the first operand of Add."""
    x, h, w = parameter("x", [3, 2]), parameter("h", [2]), constant(F([[1, 0.5], [-0.5, 1]]))
    loop = Loop(3)
    row, now = loop.sliced(x, [1, 2]), loop.state(h)
    after = ops.tanh(ops.add(ops.squeeze(row, constant(np.int64([0]))), ops.matmul(now, w, False, False)))
    network = network_of(loop.outputs([(now, after)], [after]), [x, h])

    state = F([0, 0])
    for value in X:
        state = np.tanh(value + state @ F([[1, 0.5], [-0.5, 1]]))
    check(network, {"x": X, "h": F([0, 0])}, state)


def test_swap_is_a_swap_in_either_order_of_declaration():
    """OpenVINO 2026.4 copies back edges one after another, so that one of the two states is lost."""
    a, b, x = parameter("a", [1]), parameter("b", [1]), parameter("x", [3, 1])
    loop = Loop(3)
    right, left, row = loop.state(b), loop.state(a), loop.sliced(x, [1, 1])
    turned = ops.add(right, ops.reshape(row, constant(np.int64([1])), False))
    network = network_of(loop.outputs([(right, left), (left, turned)], [left, turned]), [a, b, x])

    low, high = F([1]), F([2])
    for value in F([[1], [2], [3]]):
        low, high = high + value, low
    check(network, {"a": F([1]), "b": F([2]), "x": F([[1], [2], [3]])}, high, low)
