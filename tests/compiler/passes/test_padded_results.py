"""What has as many rows as a loop has iterations is padded in pure functions."""

import jax
import numpy as np
import pytest

import netloop as trt
from netloop.model.formulas import FormulaBuilder
from tests.support.networks import COUNT, WHILE, mark

X = np.float32([1.0, 0.5, 0.25])


def powers(make, name, least):
    """The states of a loop that halves x while its sum is above a number, row by row."""
    network = make.network
    loop = network.add_loop()
    loop.name = name
    state = loop.add_recurrence(make.x)
    now = state.get_output(0)
    state.set_input(1, make.mul(now, np.float32(0.5)))
    loop.add_trip_limit(make.greater(make.sum(now, [0]), np.float32(least)), WHILE)
    rows = loop.add_recurrence(make.constant(np.zeros((0, 3), np.float32)))
    rows.keeps_shape = False
    rows.set_input(1, make.concat([rows.get_output(0), make.expand_dims(now, [0])], 0))
    return make.last(loop, rows)


def builder():
    make = FormulaBuilder(trt.INetworkDefinition())
    make.x = make.network.add_input("x", trt.float32, (3,))
    return make


def check(network, **bound):
    function, weights = trt.to_jax(network, bound=bound)
    outputs, wanted = function(weights, {"x": X}), trt.evaluate(network, {"x": X})
    for name, array in wanted.items():
        got = np.asarray(outputs[name])
        if f"{name}.shape" in outputs:
            got = got[tuple(map(slice, outputs[f"{name}.shape"]))]
        np.testing.assert_allclose(got, array, 1e-6)
    return outputs


def test_output_has_zeros_behind_its_rows_and_a_shape():
    make = builder()
    outputs = check(mark(make.network, y=powers(make, "a", 0.3)), a=5)

    assert [*outputs] == ["y", "y.shape"]
    assert outputs["y.shape"].tolist() == [3, 3]
    assert outputs["y"].shape == (5, 3)
    assert not np.asarray(outputs["y"])[3:].any()


def test_lengths_of_several_loops_and_what_follows_from_them():
    make = builder()
    a, b = powers(make, "a", 0.3), powers(make, "b", 1.0)
    product = make.matmul(a, make.transpose(a, [1, 0]))
    outputs = check(
        mark(
            make.network,
            a=a,
            b=b,
            product=product,
            longer=make.concat([make.constant(np.ones((2, 3), np.float32)), a], 0),
            total=make.add(make.sum(a, [0]), make.mean(b, [0])),
            length=make.tensor(make.length(a, 0)),
            softmax=make.softmax(a, 0),
        ),
        a=5,
        b=4,
    )

    assert outputs["product"].shape == (5, 5)
    assert outputs["product.shape"].tolist() == [3, 3]
    assert outputs["longer"].shape == (7, 3)
    assert outputs["b"].shape == (4, 3)


def test_loop_over_the_rows_of_another_one():
    make = builder()
    rows = powers(make, "a", 0.3)
    loop = make.network.add_loop()
    loop.name = "b"
    loop.add_trip_limit(make.tensor(make.length(rows, 0)), COUNT)
    total = loop.add_recurrence(make.constant(np.zeros(3, np.float32)))
    row = make.gather(rows, make.counter(loop).get_output(0), 0)
    total.set_input(1, make.add(make.mul(total.get_output(0), np.float32(0.5)), row))
    network = mark(make.network, y=make.last(loop, total))
    check(network, a=5, b=5)
    function, weights = trt.to_jax(network, bound={"a": 5, "b": 5})

    # each row is x times a number
    slope = trt.evaluate(network, {"x": X})["y"] / X
    np.testing.assert_allclose(jax.grad(lambda x: function(weights, {"x": x})["y"].sum())(X), slope, 1e-6)


def test_rows_that_a_second_loop_stacks():
    """ONNX's scan outputs of a loop without a trip count: the first loop counts, the second stacks."""
    make = builder()
    network, loops = make.network, []
    for name in ("count", "stack"):
        loop = network.add_loop()
        loop.name = name
        state = loop.add_recurrence(make.x)
        state.set_input(1, make.mul(state.get_output(0), np.float32(0.5)))
        loops.append((loop, state.get_output(0)))
    (counting, now), (stacking, row) = loops
    counting.add_trip_limit(make.greater(make.sum(now, [0]), np.float32(0.3)), WHILE)
    number = make.last(counting, make.counter(counting))
    stacking.add_trip_limit(number, COUNT)
    mark(network, y=make.stacked(stacking, row, number))
    check(network, count=5)
    function, weights = trt.to_jax(network, bound={"count": 5})

    gradient = jax.grad(lambda x: function(weights, {"x": x})["y"].sum())(X)
    np.testing.assert_allclose(gradient, [1.75] * 3)


def stacked_powers(make, most, least=0.3):
    """The states of ``powers`` as ONNX's Loop stacks them: a COUNT and a WHILE, and the rows up to the trip count."""
    loop = make.network.add_loop()
    loop.name = "a"
    state = loop.add_recurrence(make.x)
    now = state.get_output(0)
    state.set_input(1, make.mul(now, np.float32(0.5)))
    loop.add_trip_limit(most, COUNT)
    loop.add_trip_limit(make.greater(make.sum(now, [0]), np.float32(least)), WHILE)
    return make.take_first(make.stacked(loop, now, most), make.last(loop, make.counter(loop)))


@pytest.mark.parametrize(("bound", "rows"), [({}, 7), ({"a": 5}, 5), ({"a": 9}, 7)])
def test_rows_that_a_loop_with_both_limits_stacks(bound, rows):
    make = builder()
    outputs = check(mark(make.network, y=stacked_powers(make, make.constant(7))), **bound)

    assert outputs["y"].shape == (rows, 3)
    assert outputs["y.shape"].tolist() == [3, 3]


def test_rows_of_a_count_that_follows_from_an_input():
    make = builder()
    network = mark(make.network, y=make.sum(stacked_powers(make, make.tensor(make.length(make.x, 0)), 0.9), [0]))
    check(network)
    function, weights = trt.to_jax(network, bound={"a": 3})

    gradient = jax.grad(lambda x: function(weights, {"x": x})["y"].sum())(X)
    np.testing.assert_allclose(gradient, [1] * 3)


def test_other_slices_of_the_rows_of_a_loop_have_no_program():
    make = builder()
    rows = stacked_powers(make, make.constant(7))
    (cut,) = [layer for layer in make.network.layers if isinstance(layer, trt.ISliceLayer)]
    cut.start = (1,)
    function, weights = trt.to_jax(mark(make.network, y=rows), bound={"a": 5})

    with pytest.raises(trt.NetworkError, match="NL501"):
        function(weights, {"x": X})


def test_layer_that_needs_all_rows_is_refused_with_the_reason():
    make = builder()
    rows = powers(make, "a", 0.3)
    backwards = make.output(
        make.network.add_cumulative(rows, make.constant(np.int32(0)), trt.CumulativeOperation.SUM, False, True)
    )
    function, weights = trt.to_jax(mark(make.network, y=backwards), bound={"a": 5})

    with pytest.raises(
        trt.NetworkError,
        match=r"NL675: 'a' makes tensors of other lengths in each iteration, and .* reads what grows whole",
    ):
        function(weights, {"x": X})


def test_state_that_is_no_buffer_is_refused_with_the_reason():
    make = builder()
    loop = make.network.add_loop()
    loop.name = "doubling"
    loop.add_trip_limit(make.constant(np.int64(3)), COUNT)
    state = loop.add_recurrence(make.x)
    state.keeps_shape = False
    state.set_input(1, make.concat([state.get_output(0)] * 2, 0))
    function, weights = trt.to_jax(mark(make.network, y=make.last(loop, state)))

    with pytest.raises(trt.NetworkError, match=r"NL675: 'doubling' .* does not grow by as many elements"):
        function(weights, {"x": X})
