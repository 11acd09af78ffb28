"""Calls of engines: arrays by name, their checks, and a copy of the network that later edits do not change."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from netloop.compiler.execution.weight_loading import own_copy
from tests.support.devices import only_on_cpus
from tests.support.networks import (
    COUNT,
    EXAMPLES,
    F,
    X,
    assert_outputs,
    chain,
    combine,
    constant,
    count_is_an_input,
    counted,
    counter,
    dynamic_axis,
    last,
    length_is_an_input,
    lstm,
    mark,
    newton,
    running_sum,
    stacked,
)

# ---------------------------------------------------------------------- inputs


def refused(engine, inputs, code, *whats):
    with pytest.raises(trt.InputError) as caught:
        engine(inputs)
    assert [(finding.code, finding.what) for finding in caught.value.findings] == [(code, what) for what in whats]
    return caught.value.findings


def test_missing_input_is_reported():
    refused(trt.compile(running_sum()), {}, "NL602", "input 'x' is missing; it is float32[5,3]")


def test_unknown_input_is_reported():
    refused(trt.compile(running_sum()), {"x": X, "q": X}, "NL602", "the network has no input 'q'; it has 'x'")


def test_misspelt_input_gets_the_right_name(network):
    network.mark_output(network.add_input("tokens", trt.float32, ()))
    with pytest.raises(trt.InputError, match=r"did you mean 'tokens'\?") as caught:
        trt.compile(network)({"token": F(1)})

    assert len(caught.value.findings) == 2


def test_every_input_that_is_wrong_is_reported(network):
    for name in "ab":
        network.mark_output(network.add_input(name, trt.float32, ()))

    refused(
        trt.compile(network),
        {"a": np.float64(1), "b": F([1])},
        "NL603",
        "input 'a' is float32[], and its value is float64[]",
        "input 'b' is float32[], and its value is float32[1]",
    )


def test_other_element_type_is_refused_with_the_right_one():
    (found,) = refused(
        trt.compile(running_sum()),
        {"x": X.astype(np.float64)},
        "NL603",
        "input 'x' is float32[5,3], and its value is float64[5,3]",
    )

    assert found.fix == "pass an array of dtype float32; numpy's own default is float64"


@pytest.mark.parametrize("shape", [(3, 5), (5, 4), (5,), (1, 5, 3), (0, 3)])
def test_other_shape_is_refused(shape):
    shown = ",".join(map(str, shape))
    refused(
        trt.compile(running_sum()),
        {"x": np.zeros(shape, F)},
        "NL603",
        f"input 'x' is float32[5,3], and its value is float32[{shown}]",
    )


def test_other_rank_is_refused_where_lengths_are_open():
    refused(
        trt.compile(dynamic_axis()),
        {"x": F([1, 2])},
        "NL603",
        "input 'x' is float32[-1,2], and its value is float32[2]",
    )


@pytest.mark.parametrize("inputs", [None, [X], X, {"x"}, "x"])
def test_inputs_are_a_mapping(inputs):
    with pytest.raises(TypeError, match="inputs must be a dict from names to arrays, not"):
        trt.compile(running_sum())(inputs)


@pytest.mark.parametrize("value", ["text", [[1], [1, 2]], object(), None])
def test_other_objects_than_arrays_are_refused(network, value):
    network.mark_output(network.add_input("x", trt.float32, (2,)))
    with pytest.raises(trt.InputError, match="input 'x' is float32"):
        trt.compile(network)({"x": value})


def test_python_numbers_are_arrays_of_numpys_types(network):
    names = {"i": trt.int64, "f": trt.float64, "b": trt.bool}
    for name, dtype in names.items():
        network.mark_output(network.add_input(name, dtype, ()))
    got = trt.compile(network)({"i": 2**40, "f": 0.1, "b": True})

    assert_outputs(
        {name: np.asarray(value) for name, value in got.items()},
        {"i": np.int64(2**40), "f": np.float64(0.1), "b": np.bool_(True)},
    )


def test_lists_are_arrays(network):
    mark(network, y=combine(network, network.add_input("x", trt.int64, (2,)), 1))

    assert trt.compile(network)({"x": [1, 2]})["y"].tolist() == [2, 3]


@pytest.mark.parametrize("wrap", [jnp.asarray, np.asfortranarray, lambda x: np.repeat(x, 2, 0)[::2]])
def test_arrays_may_be_of_jax_or_of_any_layout(wrap):
    np.testing.assert_array_equal(trt.compile(running_sum())({"x": wrap(X)})["y"], [9, 12, 15])


def test_results_may_be_put_in_again():
    engine = trt.compile(chain(1))
    y = engine({"x": engine({"x": F([1, 2])})["y"]})["y"]

    assert y.tolist() == [1, 2]


def test_outputs_are_jax_arrays_in_the_order_in_which_they_were_marked(network):
    a, b = (network.add_input(name, trt.float32, ()) for name in "ab")
    mark(network, second=combine(network, b, 1), first=combine(network, a, 1))
    got = trt.compile(network)({"a": F(1), "b": F(2)})

    assert list(got) == ["second", "first"]
    assert all(isinstance(value, jax.Array) for value in got.values())


def test_input_may_be_an_output(network):
    network.mark_output(network.add_input("x", trt.int64, (2,)))
    got = trt.compile(network)({"x": np.int64([1, 2])})

    assert_outputs({"x": np.asarray(got["x"])}, {"x": np.int64([1, 2])})


def test_constant_may_be_an_output(network):
    mark(network, i=constant(network, [1, 2], np.int64), f=constant(network, 0.1, np.float64))
    got = {name: np.asarray(value) for name, value in trt.compile(network)({}).items()}

    assert_outputs(got, {"i": np.int64([1, 2]), "f": np.float64(0.1)})


def test_tensor_that_is_marked_twice_is_one_output(network):
    x = network.add_input("x", trt.float32, ())
    network.mark_output(x)
    network.mark_output(x)

    assert list(trt.compile(network)({"x": F(1)})) == ["x"]


def test_shape_may_be_an_input(network):
    shuffle = network.add_shuffle(network.add_input("x", trt.float32, (6,)))
    shuffle.set_input(1, network.add_input("shape", trt.int32, (2,)))
    engine = trt.compile(mark(network, y=shuffle.get_output(0)))

    for shape in [(2, 3), (3, 2), (6, 1), (2, -1)]:
        got = engine({"x": np.arange(6, dtype=F), "shape": np.int32(shape)})["y"]
        np.testing.assert_array_equal(got, np.arange(6).reshape(shape))


def test_shape_that_does_not_fit_is_reported_in_the_call(network):
    shuffle = network.add_shuffle(network.add_input("x", trt.float32, (6,)))
    shuffle.set_input(1, network.add_input("shape", trt.int32, (2,)))
    engine = trt.compile(mark(network, y=shuffle.get_output(0)))
    with pytest.raises(trt.NetworkError, match="NL401"):
        engine({"x": np.arange(6, dtype=F), "shape": np.int32([4, 2])})


def test_dims_that_do_not_match_are_reported_in_the_call():
    inputs = {"x": np.ones((2, 3, 7), F), "h0": np.ones((3, 5), F), "c0": np.ones((2, 5), F)}
    with pytest.raises(trt.NetworkError, match=r"NL(205|401)"):
        trt.compile(lstm())(inputs)


def test_refused_call_leaves_the_engine_fit_for_the_next():
    engine = trt.compile(length_is_an_input())
    with pytest.raises(trt.ExecutionError):
        engine({"n": np.int32(-1)})

    assert engine({"n": np.int32(2)})["y"].tolist() == [0, 1]


def test_length_too_large_at_run_time_is_an_error(network):
    length = network.add_input("length", trt.int64, ())
    loop = counted(network, 3)
    mark(network, y=stacked(loop, counter(network, loop), length))
    engine = trt.compile(network)

    with pytest.raises(trt.ExecutionError, match="bytes"):
        engine({"length": np.int64(2**62)})


# ---------------------------------------------------------------------- its own copy of the network


def test_edits_of_the_network_do_not_reach_the_engine(network):
    x = network.add_input("x", trt.float32, (-1,))
    layer = network.add_activation(x, trt.ActivationType.LEAKY_RELU)
    layer.alpha = 0.5
    engine = trt.compile(mark(network, y=layer.get_output(0)))
    layer.alpha = 7
    layer.set_input(0, combine(network, x, 100))
    mark(network, z=combine(network, x, 1))
    x.name = "renamed"

    assert {name: value.tolist() for name, value in engine({"x": F([-2])}).items()} == {"y": [-1]}


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("size", [3, 3000])
def test_edits_of_the_weights_do_not_reach_the_engine(network, dtype, size):
    weights = np.ones(size, dtype)
    x = network.add_input("x", trt.float32 if dtype == np.float32 else trt.int32, (-1,))
    engine = trt.compile(mark(network, y=combine(network, x, network.add_constant((size,), weights).get_output(0))))
    weights[:] = 100
    first = engine({"x": np.zeros(size, dtype)})["y"]
    weights[:] = 1000

    assert np.unique(first).tolist() == [1]
    assert np.unique(engine({"x": np.zeros(size, dtype)})["y"]).tolist() == [1]


def test_edits_of_a_count_do_not_reach_the_engine(network):
    count = np.array(2, np.int32)
    x = network.add_input("x", trt.int32, (-1,))
    loop = network.add_loop()
    loop.add_trip_limit(network.add_constant((), count).get_output(0), trt.TripLimit.COUNT)
    state = loop.add_recurrence(x)
    state.set_input(1, combine(network, state.get_output(0), 1))
    engine = trt.compile(mark(network, y=last(loop, state.get_output(0))))
    count[...] = 5

    assert engine({"x": np.int32([0])})["y"].tolist() == [2]
    assert engine({"x": np.int32([0, 1])})["y"].tolist() == [2, 3]


def test_engine_outlives_its_network():
    network = running_sum()
    engine = trt.compile(network)
    network.layers.clear()
    network.outputs.clear()

    assert engine({"x": X})["y"].tolist() == [9, 12, 15]


# ---------------------------------------------------------------------- loops


def test_engine_reports_the_strategy_of_each_loop():
    engine = trt.compile(running_sum())
    (strategy,) = engine.loop_strategies.values()
    assert (strategy.name, strategy.trips) == ("scan", 3)

    (strategy,) = trt.compile(count_is_an_input()).loop_strategies.values()
    assert (strategy.name, strategy.trips) == ("while", None)
    assert re.search("known only in the call", strategy.why)


def test_loop_that_a_length_decides_is_a_scan():
    engine = trt.compile(dynamic_axis())
    engine({"x": X[:, :2]})

    assert [strategy.trips for strategy in engine.loop_strategies.values()] == [5]


def test_strategies_of_loops_of_one_name_are_all_reported(network):
    n = network.add_input("n", trt.int32, ())
    for limit, name in ((constant(network, 2, np.int32), "a"), (n, "b")):
        loop = network.add_loop()
        loop.name = "loop"
        loop.add_trip_limit(limit, COUNT)
        mark(network, **{name: last(loop, counter(network, loop))})
    engine = trt.compile(network)

    assert {name: strategy.name for name, strategy in engine.loop_strategies.items()} == {
        "loop#0": "scan",
        "loop#1": "while",
    }


# ---------------------------------------------------------------------- outputs


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_second_call_gives_the_same(example):
    engine = trt.compile(example.make())
    first, second = engine(example.inputs), engine(example.inputs)

    for name, wanted in example.outputs.items():
        np.testing.assert_array_equal(first[name], wanted)
        np.testing.assert_array_equal(second[name], wanted)


def test_float64_loop_runs_in_float64():
    got = trt.compile(newton())({"x": np.float64(2)})

    assert got["y"].dtype == np.float64
    assert abs(float(got["y"]) - 2**0.5) < 1e-11


def test_failing_call_names_the_layer_and_leaves_the_engine_fit(network):
    loop = counted(network, network.add_input("n", trt.int32, ()))
    output = loop.add_loop_output(counter(network, loop), trt.LoopOutput.CONCATENATE)
    output.set_input(1, constant(network, 2, np.int32))
    engine = trt.compile(mark(network, y=output.get_output(0)))
    with pytest.raises(trt.ExecutionError) as caught:
        engine({"n": np.int32(3)})

    assert caught.value.findings[0].where == f"{output.source_location}, ILoopOutputLayer {output.name!r}"
    assert engine({"n": np.int32(2)})["y"].tolist() == [0, 1]


# ---------------------------------------------------------------------- what compiling does once


def test_types_of_fixed_inputs_are_inferred_once(monkeypatch):
    seen = []
    infer = trt.IUnaryLayer.infer
    monkeypatch.setattr(trt.IUnaryLayer, "infer", lambda self, x: seen.append(self.name) or infer(self, x))
    trt.compile(chain(5))

    assert len(seen) == 5


@only_on_cpus("other devices have memory of their own")
def test_weights_are_copied_to_the_device_once():
    given = np.arange(5000, dtype=np.float32)
    made = own_copy(given)

    assert not np.shares_memory(made, given)
    assert np.shares_memory(np.asarray(jax.device_put(made)), made)


@pytest.mark.parametrize("size", [1, 5000])
def test_later_edits_of_an_array_do_not_reach_the_engine(network, size):
    given = np.ones(size, np.float32)
    x = network.add_input("x", trt.float32, (size,))
    mark(network, y=combine(network, x, network.add_constant((size,), trt.Weights(given)).get_output(0)))
    network.layers[0].weights = given
    engine = trt.compile(network)
    given[:] = 7

    assert engine({"x": np.zeros(size, np.float32)})["y"].tolist() == [1] * size
    assert engine.network.layers[0].weights.tolist() == [1] * size


def test_latest_program_is_that_of_the_latest_call_after_another_one_was_prepared():
    core = trt.compile(dynamic_axis()).executable
    inputs = [{"x": X[:length, :2]} for length in (3, 2)]
    core(inputs[0])
    first = core.latest
    core.prepare(inputs[1])
    assert core.latest is not first
    core(inputs[0])

    assert core.latest is first
