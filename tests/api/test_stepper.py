"""Steps of one sequence whose states stay on the device."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from tests.support.networks import F, combine, mark

PROD, SUM = trt.ElementWiseOperation.PROD, trt.ElementWiseOperation.SUM
STATES = {"total": "new_total", "count": "new_count"}


def averaging(length=2):
    """A step of an average: states before and after the other inputs, outputs before and after the next states."""
    network = trt.INetworkDefinition()
    total = network.add_input("total", trt.float32, (length,))
    x = network.add_input("x", trt.float32, (length,))
    count = network.add_input("count", trt.int64, ())
    weight = network.add_constant((1,), F([1]))
    weight.name = "weight"
    added = combine(network, total, combine(network, x, weight.get_output(0), PROD), SUM)
    more = combine(network, count, network.add_constant((), np.array(1, np.int64)).get_output(0), SUM)
    as_float = network.add_cast(more, trt.float32).get_output(0)
    shaped = network.add_shuffle(as_float)
    shaped.reshape_dims = (1,)
    mean = combine(network, added, shaped.get_output(0), trt.ElementWiseOperation.DIV)
    return mark(network, mean=mean, new_count=more, new_total=added, doubled=combine(network, mean, mean, SUM))


@pytest.fixture
def step():
    return trt.Stepper(trt.compile(averaging()), STATES)


def means(step, *rows):
    return [step({"x": F(row)})["mean"].tolist() for row in rows]


def test_states_of_a_step_are_those_that_the_step_before_left(step):
    assert means(step, [2, 4], [4, 8], [0, 0]) == [[2, 4], [3, 6], [2, 4]]


def test_step_takes_the_inputs_and_returns_the_outputs_that_are_no_states(step):
    assert step.inputs == ["x"]
    assert step.outputs == ["mean", "doubled"]
    outputs = step(x=F([2, 4]))
    assert {name: tensor.tolist() for name, tensor in outputs.items()} == {"mean": [2, 4], "doubled": [4, 8]}


@pytest.mark.parametrize("make", [np.asarray, jnp.asarray, list])
def test_inputs_are_of_any_kind_that_an_engine_takes(step, make):
    assert [step({"x": make(F(row))})["mean"].tolist() for row in ([2, 4], [4, 8])] == [[2, 4], [3, 6]]


def test_states_are_set_and_read_by_name(step):
    step.reset({"total": F([3, 3]), "count": np.array(1)})
    assert means(step, [1, 3]) == [[2, 3]]
    saved = step.states
    assert {name: (array.dtype, array.tolist()) for name, array in saved.items()} == {
        "total": (np.float32, [4, 6]),
        "count": (np.int64, 2),
    }
    means(step, [9, 9])
    step.reset(saved)
    assert means(step, [2, 3]) == [[2, 3]]
    step.reset()
    assert means(step, [2, 3]) == [[2, 3]]


def test_initial_states_are_zeros_unless_they_are_given():
    step = trt.Stepper(trt.compile(averaging()), STATES, initial={"total": jnp.asarray(F([1, 1]))})

    assert means(step, [1, 3]) == [[2, 4]]


def test_open_lengths_are_those_of_the_shapes():
    engine = trt.compile(averaging(-1))
    shapes = {"x": (3,), "total": (3,)}

    assert means(trt.Stepper(engine, STATES, shapes=shapes), [1, 2, 3]) == [[1, 2, 3]]
    assert means(trt.Stepper(engine, STATES), [5]) == [[5]]


def test_program_is_compiled_when_the_stepper_is_made():
    engine = trt.compile(averaging(-1))
    step = trt.Stepper(engine, STATES)
    assert engine.program_count == 1
    means(step, [1], [2])

    assert engine.program_count == 1


@pytest.mark.parametrize("first", [[], [[1, 2]]], ids=["first step", "later step"])
@pytest.mark.parametrize(
    ("inputs", "what"),
    [
        ({}, "input 'x' is missing"),
        ({"x": F([1, 2]), "y": F([1])}, "no input 'y'"),
        ({"x": F([1, 2]), "total": F([1, 2])}, "no input 'total'"),
        ({"x": np.zeros(2)}, r"input 'x' is float32\[2\], and its value is float64\[2\]"),
        ({"x": np.zeros(2, ">f4")}, "input 'x'"),
        ({"x": F([1])}, r"input 'x' is float32\[2\], and its value is float32\[1\]"),
        ({"x": None}, "input 'x'"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_and_leave_the_states(step, first, inputs, what):
    means(step, *first)
    with pytest.raises(trt.InputError, match=what):
        step(inputs)

    assert len(means(step, [0, 0])) == 1
    assert int(step.states["count"]) == len(first) + 1


def test_input_of_another_length_than_that_of_the_stepper_is_refused():
    step = trt.Stepper(trt.compile(averaging(-1)), STATES)
    with pytest.raises(
        trt.InputError, match=r"'x' is float32\[1\] in a step of a sequence, and was given float32\[3\]"
    ):
        step({"x": F([1, 2, 3])})


def test_input_that_jax_traces_is_refused(step):
    means(step, [1, 2])
    with pytest.raises(trt.InputError, match="JAX is tracing input 'x'"):
        jax.jit(step)({"x": F([1, 2])})


def test_dict_and_names_together_are_refused(step):
    with pytest.raises(TypeError, match="not both"):
        step({"x": F([1, 2])}, x=F([1, 2]))


@pytest.mark.parametrize(
    ("states", "what"),
    [
        ({"totl": "new_total"}, "no input 'totl'; did you mean 'total'"),
        ({"total": "new_totl"}, "no output 'new_totl'; did you mean 'new_total'"),
        ({"total": "mean", "x": "mean"}, "two states have the same output"),
    ],
)
def test_names_are_checked(states, what):
    with pytest.raises(ValueError, match=what):
        trt.Stepper(trt.compile(averaging()), states)


def test_next_state_of_another_type_is_refused():
    with pytest.raises(trt.NetworkError, match=r"NL646: state 'total' is float32\[2\], and its next value 'new_count'"):
        trt.Stepper(trt.compile(averaging()), {"total": "new_count"})


@pytest.mark.parametrize(
    ("initial", "error", "what"),
    [
        ({"x": F([1, 2])}, ValueError, "no state 'x' to set"),
        ({"total": np.zeros(2)}, trt.InputError, "input 'total' is float32"),
        ({"total": F([1])}, trt.InputError, "input 'total' is float32"),
    ],
)
def test_initial_states_are_checked(step, initial, error, what):
    with pytest.raises(error, match=what):
        trt.Stepper(step.engine, STATES, initial=initial)
    with pytest.raises(error, match=what):
        step.reset(initial)


# ---------------------------------------------------------------------- failures and donated states


def limited(length=4):
    """A step that adds to a total, and fails where n is more than 4."""
    network = trt.INetworkDefinition()
    total, n = network.add_input("total", trt.float32, (2,)), network.add_input("n", trt.int32, ())
    loop = network.add_loop()
    loop.add_trip_limit(n, trt.TripLimit.COUNT)
    state = loop.add_recurrence(total)
    one = network.add_constant((1,), F([1])).get_output(0)
    state.set_input(1, combine(network, state.get_output(0), one, SUM))
    rows = loop.add_loop_output(state.get_output(0), trt.LoopOutput.CONCATENATE)
    rows.set_input(1, network.add_constant((), np.array(length, np.int32)).get_output(0))
    last = loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0)
    return mark(network, new_total=last, rows=rows.get_output(0))


def test_step_that_fails_leaves_the_states():
    step = trt.Stepper(trt.compile(limited()), {"total": "new_total"})
    step(n=np.int32(2))
    with pytest.raises(trt.ExecutionError, match="NL601"):
        step(n=np.array(5, np.int32))

    step(n=np.array(1, np.int32))
    assert step.states["total"].tolist() == [3, 3]


def test_step_that_fails_loses_the_states_that_it_donates_until_they_are_reset():
    step = trt.Stepper(trt.compile(limited(), donate=["total"]), {"total": "new_total"})
    for n in (1, 2):
        step(n=np.array(n, np.int32))
    with pytest.raises(trt.ExecutionError, match="NL601"):
        step(n=np.array(5, np.int32))
    for _ in range(2):
        with pytest.raises(trt.InputError, match=r"NL626: the states are lost[^$]*fix: reset the Stepper"):
            step(n=np.array(1, np.int32))
    step.reset({"total": F([7, 7])})

    step(n=np.array(1, np.int32))
    assert step.states["total"].tolist() == [8, 8]


def test_donated_states_are_not_the_arrays_of_the_caller():
    total = jnp.asarray(F([1, 2]))
    step = trt.Stepper(trt.compile(averaging(), donate=["total"]), STATES, initial={"total": total})
    before = step.states["total"]
    means(step, [1, 2], [3, 4])

    assert before.is_deleted()
    assert total.tolist() == [1, 2]


# ---------------------------------------------------------------------- refits, threads, hosts


def test_step_after_a_refit_has_the_new_weights(step):
    assert means(step, [1, 2], [1, 2]) == [[1, 2], [1, 2]]
    refitter = trt.Refitter(step.engine, trt.Logger(trt.Logger.ERROR))
    refitter.set_named_weights("weight", F([4]))
    refitter.refit_cuda_engine()

    assert means(step, [1, 2], [1, 2]) == [[2, 4], [2.5, 5]]


def test_engine_without_weights_is_refused():
    network = trt.INetworkDefinition()
    total = network.add_input("total", trt.float32, (300,))
    weights = network.add_constant((300,), np.ones(300, F)).get_output(0)
    config = trt.ISerializationConfig()
    config.set_flag(trt.SerializationFlag.EXCLUDE_WEIGHTS)
    plan = trt.compile(mark(network, new_total=combine(network, total, weights, SUM))).serialize_with_config(config)
    engine = trt.Runtime(trt.Logger(trt.Logger.ERROR)).deserialize_cuda_engine(plan)

    with pytest.raises(trt.InputError, match="NL621"):
        trt.Stepper(engine, {"total": "new_total"})


def test_threads_make_steps_one_after_another(step):
    threads = [threading.Thread(target=lambda: means(step, *[[1, 1]] * 50), daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)

    assert step.states["count"].tolist() == 200
    assert step.states["total"].tolist() == [200, 200]


@pytest.mark.parametrize(
    "setting", [jax.disable_jit, lambda: jax.debug_nans(True), lambda: jax.enable_x64(True)], ids=["jit", "nans", "x64"]
)
def test_settings_of_jax_do_not_reach_steps(step, setting):
    means(step, [1, 2])
    with setting():
        made = [step({"x": F(entry)})["mean"] for entry in ([3, 4], [np.nan, 0])]

    np.testing.assert_array_equal(np.asarray(made), [[2, 3], [np.nan, 2]])
