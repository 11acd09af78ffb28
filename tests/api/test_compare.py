"""A comparison finds the first tensor and iteration in which an engine is wrong."""

import math

import numpy as np
import pytest

import netloop as trt
from netloop.compiler.execution.weight_loading import DeviceWeights
from netloop.model.layers.pointwise import IElementWiseLayer, IUnaryLayer
from tests.support.networks import (
    EXAMPLES,
    F,
    Op,
    combine,
    constant,
    counted,
    counter,
    last,
    mark,
    newton,
    stacked,
    table,
)


@pytest.fixture
def wrong(monkeypatch):
    """Change the lowering of the layers of a name: a function replaces its result."""

    def plant(kind, name, fault):
        right = kind.lower

        def lower(self, *arrays):
            made = right(self, *arrays)
            return fault(made, *arrays) if self.name == name else made

        monkeypatch.setattr(kind, "lower", lower)

    return plant


def named(tensor, name):
    tensor.name = tensor.producer.name = name
    return tensor


def squares(network, trips=5):
    """A loop 'steps': 'square' of the iteration index, 'next' one more, y all of these."""
    loop = counted(network, trips)
    loop.name = "steps"
    square = named(combine(network, *[counter(network, loop)] * 2, Op.PROD), "square")
    following = named(combine(network, square, 1), "next")
    mark(network, y=stacked(loop, following, constant(network, trips, np.int32)))
    return square


# ---------------------------------------------------------------------------- agreement


COMPARED = [*[*EXAMPLES][::3], "delay line"]


@pytest.mark.parametrize("example", [EXAMPLES[name] for name in COMPARED], ids=COMPARED)
def test_engine_agrees(example):
    found = trt.compare(example.make(), example.inputs)

    assert found.agrees
    assert found.skipped == ()
    assert found.elements > 0


def test_everything_in_loops_is_compared(network):
    squares(network)
    found = trt.compare(network, {})

    # the index, the next index except in the last iteration, the square, one more, and the output
    assert found.elements == 5 + 4 + 5 + 5 + 1
    assert str(found) == "20 elements agree"


def test_tensors_inside_may_have_equal_names(network):
    x = network.add_input("probe 1", trt.float32, (2,))
    for _ in range(3):
        x = named(network.add_unary(x, trt.UnaryOperation.NEG).get_output(0), "same")
    mark(network, y=network.add_unary(x, trt.UnaryOperation.ABS).get_output(0))
    found = trt.compare(network, {"probe 1": np.float32([1, 2])})

    assert found.agrees
    assert found.elements == 4


def test_rounding_is_no_difference():
    assert trt.compare(newton(), {"x": np.float64(2)}).agrees


def test_edits_of_a_comparison_do_not_reach_the_network(network):
    squares(network)
    layers, outputs = len(network.layers), len(network.outputs)
    trt.compare(network, {})

    assert (len(network.layers), len(network.outputs)) == (layers, outputs)


# ---------------------------------------------------------------------------- difference


def test_first_tensor_and_iteration_are_reported(network, wrong):
    square = squares(network)
    wrong(IElementWiseLayer, "square", lambda made, a, b: made + (a == 3))
    found = trt.compare(network, {})

    assert not found.agrees
    assert (found.difference.tensor, found.difference.iterations) == ("square", {"steps": 3})
    assert (found.difference.expected, found.difference.got, found.difference.ulps) == (9, 10, None)
    assert str(found) == (
        "'square' differs first in iteration 3 of 'steps': the engine computes 10, and the reference 9\n"
        f"  at {square.producer.where}"
    )


def test_earlier_iteration_of_a_later_layer_is_first(network, wrong):
    squares(network)
    wrong(IElementWiseLayer, "square", lambda made, a, b: made + (a == 3))
    wrong(IElementWiseLayer, "next", lambda made, a, b: made - (a == 4))
    found = trt.compare(network, {})

    assert (found.difference.tensor, found.difference.iterations) == ("next", {"steps": 2})


def test_iterations_of_nested_loops_are_reported(wrong):
    network = table()
    network.loops[0].name, network.loops[1].name = "rows", "columns"
    (product,) = [layer for layer in network if isinstance(layer, IElementWiseLayer)]
    product.name = "product"
    wrong(IElementWiseLayer, "product", lambda made, a, b: made + (made == 8))
    found = trt.compare(network, {"x": F([1, 2]), "z": F([3, 4, 5])})

    assert found.difference.iterations == {"rows": 1, "columns": 1}
    assert "in iteration 1 of 'columns' in iteration 1 of 'rows'" in str(found)


def test_largest_difference_of_an_element_is_reported(network, wrong):
    x = network.add_input("x", trt.float32, (2, 2))
    mark(network, y=named(network.add_unary(x, trt.UnaryOperation.NEG).get_output(0), "minus"))
    wrong(IUnaryLayer, "minus", lambda made, a: made.at[1, 0].add(2).at[0, 1].add(1))
    found = trt.compare(network, {"x": np.ones((2, 2), F)}).difference

    assert (found.index, found.expected, found.got) == ((1, 0), -1, 1)


@pytest.mark.parametrize(("dtype", "x"), [(np.float32, 1), (np.float64, -3), (np.float16, 2)])
def test_ulps_are_the_numbers_between(network, wrong, dtype, x):
    tensor = network.add_input("x", trt.DataType({2: 1, 4: 0, 8: 100}[np.dtype(dtype).itemsize]), ())
    mark(network, y=named(network.add_unary(tensor, trt.UnaryOperation.ABS).get_output(0), "size"))
    third = dtype(np.nextafter(np.nextafter(np.nextafter(dtype(abs(x)), dtype(9)), dtype(9)), dtype(9)))
    wrong(IUnaryLayer, "size", lambda made, a: made * 0 + third)

    assert trt.compare(network, {"x": dtype(x)}, rtol=0, atol=0).difference.ulps == 3


def test_tolerance_is_what_is_given(network, wrong):
    x = network.add_input("x", trt.float32, ())
    mark(network, y=named(network.add_unary(x, trt.UnaryOperation.NEG).get_output(0), "minus"))
    wrong(IUnaryLayer, "minus", lambda made, a: made * 1.01)
    inputs = {"x": F(1)}

    assert trt.compare(network, inputs, rtol=0.1).agrees
    assert trt.compare(network, inputs, atol=0.1).agrees
    assert not trt.compare(network, inputs).agrees


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_infinities_and_nan_differ(network, wrong, value):
    x = network.add_input("x", trt.float32, ())
    mark(network, y=named(network.add_unary(x, trt.UnaryOperation.NEG).get_output(0), "minus"))
    wrong(IUnaryLayer, "minus", lambda made, a: made * value)

    assert trt.compare(network, {"x": F(1)}, rtol=1e9).difference.tensor == "y"


# ---------------------------------------------------------------------------- engines


def test_engine_that_was_compiled_before_is_compared(network, wrong):
    squares(network)
    right = trt.compile(network)
    wrong(IElementWiseLayer, "square", lambda made, a, b: made + 1)
    broken = trt.compile(network)

    assert trt.compare(network, {}, broken).difference.tensor == "square"
    # the engine was compiled before the error was planted, so only its outputs are right
    assert [int(value) for value in right({})["y"]] == [1, 2, 5, 10, 17]


def test_output_that_is_wrong_only_in_the_engine_itself_is_reported(network):
    x = network.add_input("x", trt.float32, ())
    mark(network, y=combine(network, x, constant(network, 2, F), Op.PROD))
    engine = trt.compile(network, passes=[])
    engine.executable.weights = DeviceWeights(weight + 1 for weight in engine.executable.weights)
    found = trt.compare(network, {"x": F(1)}, engine)

    assert (found.difference.tensor, found.difference.got) == ("y", 3)


def test_engine_of_another_network_is_refused(network):
    squares(network)
    with pytest.raises(ValueError, match="the engine belongs to another network"):
        trt.compare(network, {}, trt.compile(newton()))


def test_engine_is_an_engine(network):
    squares(network)
    with pytest.raises(TypeError, match="engine must be ICudaEngine, not 3"):
        trt.compare(network, {}, 3)


# ---------------------------------------------------------------------------- data-dependent shapes


def test_difference_is_found_in_data_dependent_shapes(network, wrong):
    x = network.add_input("x", trt.int32, (-1,))
    found = network.add_cast(network.add_non_zero(x).get_output(0), trt.int32).get_output(0)
    loop = counted(network, 3)
    loop.name = "steps"
    total = loop.add_recurrence(network.add_reduce(found, trt.ReduceOperation.SUM, 3, False).get_output(0))
    total.set_input(1, named(combine(network, total.get_output(0), counter(network, loop)), "next"))
    mark(network, y=last(loop, total.get_output(0)))
    inputs = {"x": np.int32([0, 1, 1])}

    assert trt.compare(network, inputs).agrees
    wrong(IElementWiseLayer, "next", lambda made, a, b: made + (b == 1))
    assert trt.compare(network, inputs).difference.iterations == {"steps": 1}


# ---------------------------------------------------------------------------- errors


def test_errors_that_are_alike_are_no_difference(network):
    loop = counted(network, network.add_input("n", trt.int32, ()))
    mark(network, y=stacked(loop, counter(network, loop), constant(network, 2, np.int32)))
    found = trt.compare(network, {"n": np.int32(3)})

    assert found.agrees
    assert "the engine fails: NL601" in str(found)


def test_loop_that_only_the_engine_does_not_end_is_found(network, wrong):
    loop = network.add_loop()
    loop.name = "steps"
    now = counter(network, loop)
    loop.add_trip_limit(named(combine(network, now, 4, Op.LESS), "below"), trt.TripLimit.WHILE)
    mark(network, y=last(loop, now))
    wrong(IElementWiseLayer, "below", lambda made, a, b: made | True)
    found = trt.compare(network, {}, max_trips=10)

    assert not found.agrees
    assert "executes more than 10 iterations" in str(found.engine_error)
    assert found.reference_error is None
