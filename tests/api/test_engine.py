"""Engines: what goes in, what comes out, and when a program is compiled."""

import re
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from netloop.api.engine import ICudaEngine
from netloop.execution import program_cache
from tests.support.networks import (
    EXAMPLES,
    F,
    X,
    assert_outputs,
    chain,
    chain_in_loop,
    choice,
    combine,
    constant,
    count_is_an_input,
    counted,
    counter,
    deep,
    dynamic_axis,
    last,
    length_is_an_input,
    lstm,
    mark,
    newton,
    running_sum,
    stacked,
)


@pytest.fixture
def compiled(monkeypatch):
    """A list with an item for each program that was compiled."""
    made = []
    compile_ = ICudaEngine._compile

    def noted(self, *arguments):
        made.append(self)
        return compile_(self, *arguments)

    monkeypatch.setattr(ICudaEngine, "_compile", noted)
    return made


# ---------------------------------------------------------------------------- inputs


def refused(engine, inputs, code, *whats):
    with pytest.raises(trt.InputError) as caught:
        engine(inputs)
    assert [(each.code, each.what) for each in caught.value.findings] == [(code, what) for what in whats]
    return caught.value.findings


def test_missing_input_is_told():
    refused(trt.compile(running_sum()), {}, "NL602", "input 'x' is missing; it is float32[5,3]")


def test_unknown_input_is_told():
    refused(trt.compile(running_sum()), {"x": X, "q": X}, "NL602", "the network has no input 'q'; it has 'x'")


def test_misspelt_input_gets_the_right_name(network):
    network.mark_output(network.add_input("tokens", trt.float32, ()))
    with pytest.raises(trt.InputError, match=r"did you mean 'tokens'\?") as caught:
        trt.compile(network)({"token": F(1)})

    assert len(caught.value.findings) == 2


def test_every_input_that_is_wrong_is_told(network):
    for name in "ab":
        network.mark_output(network.add_input(name, trt.float32, ()))

    refused(
        trt.compile(network),
        {"a": np.float64(1), "b": F([1])},
        "NL603",
        "input 'a' is float32[], and was given float64[]",
        "input 'b' is float32[], and was given float32[1]",
    )


def test_other_element_type_is_refused_with_the_right_one():
    (found,) = refused(
        trt.compile(running_sum()),
        {"x": X.astype(np.float64)},
        "NL603",
        "input 'x' is float32[5,3], and was given float64[5,3]",
    )

    assert found.fix == "pass an array of dtype float32"


@pytest.mark.parametrize("shape", [(3, 5), (5, 4), (5,), (1, 5, 3), (0, 3)])
def test_other_shape_is_refused(shape):
    shown = ",".join(map(str, shape))
    refused(
        trt.compile(running_sum()),
        {"x": np.zeros(shape, F)},
        "NL603",
        f"input 'x' is float32[5,3], and was given float32[{shown}]",
    )


def test_other_rank_is_refused_where_lengths_are_open():
    refused(
        trt.compile(dynamic_axis()), {"x": F([1, 2])}, "NL603", "input 'x' is float32[-1,2], and was given float32[2]"
    )


@pytest.mark.parametrize("inputs", [None, [X], X, {"x"}, "x"])
def test_inputs_are_a_mapping(inputs):
    with pytest.raises(TypeError, match="inputs are a dict from names to arrays, not"):
        trt.compile(running_sum())(inputs)


@pytest.mark.parametrize("value", ["text", [[1], [1, 2]], object(), None])
def test_what_is_no_array_is_refused(network, value):
    network.mark_output(network.add_input("x", trt.float32, (2,)))
    with pytest.raises(trt.InputError, match="input 'x' is float32"):
        trt.compile(network)({"x": value})


def test_python_numbers_are_arrays_of_numpys_types(network):
    names = {"i": trt.int64, "f": trt.float64, "b": trt.bool}
    for name, dtype in names.items():
        network.mark_output(network.add_input(name, dtype, ()))
    got = trt.compile(network)({"i": 2**40, "f": 0.1, "b": True})

    assert_outputs(
        {name: np.asarray(each) for name, each in got.items()},
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


# ---------------------------------------------------------------------------- outputs


def test_outputs_are_jax_arrays_in_the_order_in_which_they_were_marked(network):
    a, b = (network.add_input(name, trt.float32, ()) for name in "ab")
    mark(network, second=combine(network, b, 1), first=combine(network, a, 1))
    got = trt.compile(network)({"a": F(1), "b": F(2)})

    assert list(got) == ["second", "first"]
    assert all(isinstance(each, jax.Array) for each in got.values())


def test_input_may_be_an_output(network):
    network.mark_output(network.add_input("x", trt.int64, (2,)))
    got = trt.compile(network)({"x": np.int64([1, 2])})

    assert_outputs({"x": np.asarray(got["x"])}, {"x": np.int64([1, 2])})


def test_constant_may_be_an_output(network):
    mark(network, i=constant(network, [1, 2], np.int64), f=constant(network, 0.1, np.float64))
    got = {name: np.asarray(each) for name, each in trt.compile(network)({}).items()}

    assert_outputs(got, {"i": np.int64([1, 2]), "f": np.float64(0.1)})


def test_tensor_that_is_marked_twice_is_one_output(network):
    x = network.add_input("x", trt.float32, ())
    network.mark_output(x)
    network.mark_output(x)

    assert list(trt.compile(network)({"x": F(1)})) == ["x"]


@pytest.mark.parametrize("setting", [False, True])
def test_wide_types_are_real_whatever_the_users_setting(network, setting):
    i, f = network.add_input("i", trt.int64, ()), network.add_input("f", trt.float64, ())
    mark(network, i2=combine(network, i, 1), f2=combine(network, f, 1e-15))
    with jax.enable_x64(setting):
        got = trt.compile(network)({"i": np.int64(2**40), "f": np.float64(1)})
        assert jnp.asarray(np.float64(1)).dtype == (np.float64 if setting else np.float32)

    assert got["i2"].dtype == np.int64
    assert int(got["i2"]) == 2**40 + 1
    assert float(got["f2"]) == 1 + 1e-15


@pytest.mark.parametrize("setting", [False, True])
def test_narrow_types_stay_narrow_whatever_the_users_setting(setting):
    with jax.enable_x64(setting):
        got = trt.compile(running_sum())({"x": X})["y"]

    assert got.dtype == np.float32


# ---------------------------------------------------------------------------- programs


def test_program_of_fixed_shapes_is_compiled_at_once(compiled):
    engine = trt.compile(running_sum())
    assert len(compiled) == 1
    for _ in range(3):
        engine({"x": X})

    assert len(compiled) == 1


def test_program_is_compiled_for_each_shape_once(compiled):
    engine = trt.compile(dynamic_axis())
    assert len(compiled) == 0
    for length in (3, 2, 3, 0, 2):
        assert_outputs({"y": np.asarray(engine({"x": X[:length, :2]})["y"])}, {"y": np.cumsum(X[:length, :2], 0, F)})

    assert len(compiled) == 3


def test_arrays_of_jax_need_no_program_of_their_own(compiled):
    engine = trt.compile(running_sum())
    engine({"x": jnp.asarray(X)})
    engine({"x": X})

    assert len(compiled) == 1


def test_program_is_compiled_for_each_value_that_decides_a_shape(compiled):
    engine = trt.compile(length_is_an_input())
    for n in (3, 0, 3, 5):
        assert engine({"n": np.int32(n)})["y"].tolist() == list(range(n))

    assert len(compiled) == 3


def test_value_that_decides_no_shape_needs_no_program_of_its_own(compiled):
    engine = trt.compile(count_is_an_input())
    for n in (3, 0, 5):
        engine({"n": np.int32(n)})

    assert len(compiled) == 1


def test_shape_may_be_an_input(network):
    shuffle = network.add_shuffle(network.add_input("x", trt.float32, (6,)))
    shuffle.set_input(1, network.add_input("shape", trt.int32, (2,)))
    engine = trt.compile(mark(network, y=shuffle.get_output(0)))

    for shape in [(2, 3), (3, 2), (6, 1), (2, -1)]:
        got = engine({"x": np.arange(6, dtype=F), "shape": np.int32(shape)})["y"]
        np.testing.assert_array_equal(got, np.arange(6).reshape(shape))


def test_shape_that_does_not_fit_is_told_in_the_call(network):
    shuffle = network.add_shuffle(network.add_input("x", trt.float32, (6,)))
    shuffle.set_input(1, network.add_input("shape", trt.int32, (2,)))
    engine = trt.compile(mark(network, y=shuffle.get_output(0)))
    with pytest.raises(trt.NetworkError, match="NL401"):
        engine({"x": np.arange(6, dtype=F), "shape": np.int32([4, 2])})


def test_lengths_that_do_not_fit_are_told_in_the_call():
    inputs = {"x": np.ones((2, 3, 7), F), "h0": np.ones((3, 5), F), "c0": np.ones((2, 5), F)}
    with pytest.raises(trt.NetworkError, match=r"NL(205|401)"):
        trt.compile(lstm())(inputs)


def test_programs_used_longest_ago_make_room(compiled, monkeypatch):
    monkeypatch.setattr(program_cache, "MOST_PROGRAMS", 2)
    engine = trt.compile(length_is_an_input())
    for n in (1, 2, 1, 3, 1, 2):
        engine({"n": np.int32(n)})

    # 1, 2 and 3 are compiled; 3 takes the place of 2, which is compiled again
    assert len(compiled) == 4


def test_refused_call_leaves_the_engine_fit_for_the_next():
    engine = trt.compile(length_is_an_input())
    with pytest.raises(trt.NetworkError):
        engine({"n": np.int32(-1)})

    assert engine({"n": np.int32(2)})["y"].tolist() == [0, 1]


def test_weights_are_arguments_of_the_program(network, monkeypatch):
    texts = []
    lower = jax.stages.Lowered.compile
    monkeypatch.setattr(
        jax.stages.Lowered, "compile", lambda self, **named: texts.append(self.as_text()) or lower(self, **named)
    )
    big = constant(network, np.arange(300_000, dtype=np.float32))
    whole = constant(network, np.arange(300_000, dtype=np.int32))
    loop = counted(network, 3)
    state = loop.add_recurrence(big)
    state.set_input(1, combine(network, state.get_output(0), big))
    index = combine(network, whole, 1)
    trt.compile(mark(network, y=last(loop, state.get_output(0)), z=index))

    assert len(texts) == 1
    assert len(texts[0]) < 20_000


# ---------------------------------------------------------------------------- an engine of its own


def test_edits_of_the_network_do_not_reach_the_engine(network):
    x = network.add_input("x", trt.float32, (-1,))
    layer = network.add_activation(x, trt.ActivationType.LEAKY_RELU)
    layer.alpha = 0.5
    engine = trt.compile(mark(network, y=layer.get_output(0)))
    layer.alpha = 7
    layer.set_input(0, combine(network, x, 100))
    mark(network, z=combine(network, x, 1))
    x.name = "renamed"

    assert {name: each.tolist() for name, each in engine({"x": F([-2])}).items()} == {"y": [-1]}


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


# ---------------------------------------------------------------------------- what an engine tells


def test_engine_tells_its_inputs_and_outputs():
    network = lstm()
    network.name = "lstm"
    engine = trt.compile(network)

    assert (engine.name, engine.num_io_tensors, engine.num_layers) == ("lstm", 6, network.num_layers)
    assert [engine[index] for index in range(6)] == ["x", "h0", "c0", "y", "c", "hs"]
    assert engine.get_tensor_mode("x") is trt.TensorIOMode.INPUT
    assert engine.get_tensor_mode("y") is trt.TensorIOMode.OUTPUT
    assert engine.get_tensor_mode("z") is trt.TensorIOMode.NONE
    assert engine.get_tensor_shape("hs") == (-1, -1, 5)
    assert engine.get_tensor_dtype("hs") is trt.float32


def test_engine_tells_how_each_loop_runs():
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


# ---------------------------------------------------------------------------- length and depth


def test_chain_of_three_hundred_layers():
    assert trt.compile(chain(300))({"x": F([1, 2])})["y"].tolist() == [1, 2]


@pytest.mark.parametrize("dtype", [trt.float32, trt.int32])
def test_chain_of_two_thousand_layers(dtype):
    network = chain(2000, dtype)
    x = np.array([1, 2], network.inputs[0].type.dtype)

    assert trt.compile(network)({"x": x})["y"].tolist() == [1, 2]


def test_chain_of_two_thousand_layers_on_a_constant(network):
    tensor = constant(network, [1, 2], np.int32)
    for _ in range(2000):
        tensor = network.add_unary(tensor, trt.UnaryOperation.NEG).get_output(0)

    assert trt.compile(mark(network, y=tensor))({})["y"].tolist() == [1, 2]


@pytest.mark.parametrize("count", ["constant", "input"])
def test_million_trips(network, count):
    trips = 10**6
    loop = counted(network, trips if count == "constant" else network.add_input("n", trt.int32, ()))
    mark(network, y=last(loop, counter(network, loop)))
    engine = trt.compile(network)
    inputs = {} if count == "constant" else {"n": np.int32(trips)}
    start = time.perf_counter()
    got = int(engine(inputs)["y"])

    assert got == trips
    assert time.perf_counter() - start < 10


def test_trips_of_a_long_scan_take_no_memory(network):
    loop = counted(network, 2**31 - 1)
    mark(network, y=last(loop, counter(network, loop)))
    engine = trt.compile(network)
    (kept,) = engine._programs._kept.values()

    assert kept.compiled.memory_analysis().temp_size_in_bytes < 10_000


@pytest.mark.parametrize("loops", [20, 40, 100])
def test_loops_in_each_other(loops):
    assert int(trt.compile(deep(loops, 1))({"x": np.int64(5)})["y"]) == 6


def test_more_than_a_hundred_loops_in_each_other_are_refused():
    with pytest.raises(trt.NetworkError, match="NL502") as caught:
        trt.compile(deep(101, 1))

    (found,) = caught.value.findings
    assert found.what == "'(Unnamed Loop* 100)' is inside 100 other loops"


def test_deep_networks_leave_pythons_recursion_limit_as_it_was():
    before = sys.getrecursionlimit()
    trt.compile(deep(30, 1))

    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize("layers", [1000, 3000])
def test_loop_with_a_long_body(layers):
    assert trt.compile(chain_in_loop(layers))({"x": F([1, 2])})["y"].tolist() == [1, 2]


def test_thirty_conditionals_in_each_other(network):
    flag = network.add_input("c", trt.bool, ())
    tensor, zero = network.add_input("x", trt.int32, ()), constant(network, 0, np.int32)
    for _ in range(30):
        conditional = network.add_if_conditional()
        conditional.set_condition(flag)
        tensor = conditional.add_output(combine(network, tensor, 1), zero).get_output(0)
    engine = trt.compile(mark(network, y=tensor))

    assert engine({"c": np.bool_(True), "x": np.int32(0)})["y"] == 30


# ---------------------------------------------------------------------------- threads


def in_threads(number, work):
    """What ``work`` gives for the numbers of some threads that run at once."""
    results, errors = [None] * number, []
    barrier = threading.Barrier(number)

    def run(index):
        barrier.wait()
        try:
            results[index] = work(index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(number)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert errors == []
    return results


def test_many_threads_may_call_one_engine(monkeypatch):
    monkeypatch.setattr(program_cache, "MOST_PROGRAMS", 5)
    engine = trt.compile(dynamic_axis())

    def work(index):
        for call in range(50):
            x = X[: (index + call) % 6, :2] + F(index)
            np.testing.assert_array_equal(engine({"x": x})["y"], np.cumsum(x, 0, F))
        return True

    assert in_threads(8, work) == [True] * 8


def test_many_threads_compile_a_shape_once(compiled):
    engine = trt.compile(dynamic_axis())
    in_threads(8, lambda index: engine({"x": X[:, :2]}))

    assert len(compiled) == 1


def test_many_threads_may_compile_networks():
    got = in_threads(4, lambda index: trt.compile(running_sum(index))({"x": X})["y"].tolist())

    assert got == [list(X[:index].sum(0)) for index in range(4)]


# ---------------------------------------------------------------------------- all examples


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_second_call_gives_the_same(example):
    engine = trt.compile(example.make())
    first, second = engine(example.inputs), engine(example.inputs)

    for name, wanted in example.outputs.items():
        np.testing.assert_array_equal(first[name], wanted)
        np.testing.assert_array_equal(second[name], wanted)


def test_both_branches_run_from_one_program(compiled):
    engine = trt.compile(choice())
    for flag, wanted in [(True, [2, 4, 6]), (False, [1, 2, 3])]:
        assert engine({"c": np.bool_(flag), "x": F([1, 2, 3])})["y"].tolist() == wanted

    assert len(compiled) == 1


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


def test_network_that_cannot_fail_has_no_status():
    engine = trt.compile(running_sum())
    (program,) = engine._programs._kept.values()

    assert program.program.failures.findings == []


def test_length_that_is_enough_for_a_known_count_cannot_fail(network):
    loop = counted(network, 3)
    mark(network, y=stacked(loop, counter(network, loop), constant(network, 4, np.int32)))
    (program,) = trt.compile(network)._programs._kept.values()

    assert program.program.failures.findings == []
