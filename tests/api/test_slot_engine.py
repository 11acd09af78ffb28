"""Many requests of a network with a loop, in slots."""

import pickle
from concurrent.futures import CancelledError

import numpy as np
import pytest

import netloop as trt
from tests.support.examples import mostly_slow
from tests.support.generators import generator, prompts
from tests.support.networks import (
    EXAMPLES,
    asserted,
    combine,
    constant,
    count_is_an_input,
    counted,
    dynamic_axis,
    last,
    length_is_an_input,
    mark,
    newton,
    running_sum,
)

WITHOUT_A_LOOP = {"loop in a conditional", "loop in the branch not taken", "choice", "chain"}


def assert_same(found, alone):
    assert list(found) == list(alone)
    for name, array in alone.items():
        array = np.asarray(array)
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        if array.dtype.kind == "f":
            np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("name", mostly_slow(8, sorted(EXAMPLES.keys() - WITHOUT_A_LOOP)))
def test_each_example_has_the_outputs_that_it_has_alone(name):
    example = EXAMPLES[name]
    engine = trt.SlotEngine(example.make(), slots=2, trips=2)

    requests = list(engine.run([example.inputs] * 3))
    alone = trt.compile(example.make())(example.inputs)

    assert len(requests) == 3
    for request in requests:
        assert_same(request.result(), alone)
        for output, array in example.outputs.items():
            np.testing.assert_allclose(request.result()[output], array)


@pytest.mark.parametrize(("slots", "trips"), mostly_slow(2, [(3, 1), (4, 5), (1, 1), (40, 3)]))
def test_requests_of_different_lengths_have_the_outputs_that_they_have_alone(slots, trips):
    network, inputs = generator(), prompts(17)
    alone, engine = trt.compile(network), trt.SlotEngine(network, slots=slots, trips=trips)
    requests = [engine.submit(tensor) for tensor in inputs]

    found = [request.result() for request in requests]

    for given, outputs in zip(inputs, found, strict=True):
        assert_same(outputs, alone(given))
    assert len({request.trips for request in requests}) > 5


def test_slots_are_refilled_as_requests_end():
    engine = trt.SlotEngine(count_is_an_input(), slots=2)
    inputs = [{"n": np.int32(n)} for n in (8, 1, 1, 1, 1, 1, 1, 1, 1)]

    over = [int(request.inputs["n"]) for request in engine.run(inputs)]

    assert over == [1, 1, 1, 1, 1, 1, 1, 8, 1] or over == [1, 1, 1, 1, 1, 1, 1, 1, 8]
    assert engine.made == 16
    assert engine.offered <= 18


def test_rows_stream_before_the_request_ends():
    engine = trt.SlotEngine(count_is_an_input(), slots=2)
    request = engine.submit({"n": np.int32(5)})

    rows = request.rows()

    assert next(rows)["ys"] == 1
    assert request.state is trt.RequestState.RUNNING
    assert request.trips == 1
    assert [int(row["ys"]) for row in rows] == [2, 4, 8, 16]
    assert request.state is trt.RequestState.DONE


def test_on_row_is_called_for_each_row_in_order():
    told = []
    engine = trt.SlotEngine(count_is_an_input(), slots=2, trips=3)
    requests = [
        engine.submit({"n": np.int32(n)}, lambda request, row: told.append((int(request.inputs["n"]), int(row["ys"]))))
        for n in (2, 4, 1)
    ]

    results = [request.result() for request in requests]

    for n, result in zip((2, 4, 1), results, strict=True):
        assert [row for of, row in told if of == n] == [1, 2, 4, 8][:n]
        assert result["y"] == 2**n


def test_an_exception_of_on_row_leaves_the_requests_intact():
    def refuse(request, row):
        raise LookupError("no more")

    engine = trt.SlotEngine(count_is_an_input(), slots=2)
    bad, good = engine.submit({"n": np.int32(1)}, refuse), engine.submit({"n": np.int32(3)})

    with pytest.raises(LookupError, match="no more"):
        engine.step()

    assert bad.result()["y"] == 2
    assert good.result()["y"] == 8


def test_a_failure_is_of_one_request_alone():
    engine, alone = trt.SlotEngine(asserted(), slots=2, trips=2), trt.compile(asserted())
    requests = {n: engine.submit({"n": np.int32(n)}) for n in (2, 9, 3, 0, 4, 1)}

    for n, request in requests.items():
        if n <= 3:
            assert request.result()["y"] == n
            continue
        with pytest.raises(trt.ExecutionError) as expected:
            alone({"n": np.int32(n)})
        with pytest.raises(trt.ExecutionError) as caught:
            request.result()
        assert caught.value.findings[0].what == expected.value.findings[0].what
        assert request.state is trt.RequestState.FAILED


def test_a_stream_without_room_for_all_rows_fails_after_its_rows():
    request = trt.SlotEngine(count_is_an_input(), slots=2).submit({"n": np.int32(9)})

    rows = []
    with pytest.raises(trt.ExecutionError, match="NL601"):
        rows.extend(request.rows())

    assert len(rows) == 9


def test_a_loop_without_end_fails_at_max_trips():
    network = trt.INetworkDefinition()
    loop = network.add_loop()
    state = loop.add_recurrence(network.add_input("goes_on", trt.bool, ()))
    state.set_input(1, state.get_output(0))
    loop.add_trip_limit(state.get_output(0), trt.TripLimit.WHILE)
    number = loop.add_recurrence(constant(network, 0, np.int32))
    number.set_input(1, combine(network, number.get_output(0), 1))
    mark(network, y=last(loop, number.get_output(0)))
    engine = trt.SlotEngine(network, slots=3, trips=4, max_trips=10)
    endless, short = engine.submit({"goes_on": np.True_}), engine.submit({"goes_on": np.False_})

    assert short.result()["y"] == 0
    with pytest.raises(trt.ExecutionError, match=r"NL609: .* executes more than 10 iterations"):
        endless.result()


def test_a_count_that_is_also_a_length_needs_one_program():
    engine = trt.SlotEngine(length_is_an_input(), slots=2)

    found = [engine.submit({"n": np.int32(n)}).result()["y"].tolist() for n in (3, 0, 5)]

    assert found == [[0, 1, 2], [], [0, 1, 2, 3, 4]]
    assert engine.program_count == 1


def test_requests_of_different_shapes_share_the_slots():
    engine, alone = trt.SlotEngine(dynamic_axis(), slots=2), trt.compile(dynamic_axis())
    inputs = [{"x": np.arange(2 * n, dtype=np.float32).reshape(n, 2)} for n in (3, 1, 4, 3, 1)]
    requests = [engine.submit(tensor) for tensor in inputs]
    engine.step()

    assert repr(engine) == "<SlotEngine, 1 of 2 slots, 3 requests waiting>"
    for request, given in zip(requests, inputs, strict=True):
        assert_same(request.result(), alone(given))


def test_newton_ends_in_each_slot_by_itself():
    engine, alone = trt.SlotEngine(newton(), slots=4, trips=3), trt.compile(newton())
    inputs = [{"x": np.float64(x)} for x in (1, 2, 9, 1e6, 1e-3, 4, 1e12)]
    requests = [engine.submit(tensor) for tensor in inputs]

    for request, given in zip(requests, inputs, strict=True):
        assert_same(request.result(), alone(given))


def test_random_numbers_are_those_of_the_request_alone():
    network = trt.INetworkDefinition()
    loop = counted(network, network.add_input("n", trt.int32, ()))
    fill = network.add_fill((4,), trt.FillOperation.RANDOM_UNIFORM, trt.float32)
    fill.set_input(1, constant(network, 0, np.float32))
    fill.set_input(2, constant(network, 1, np.float32))
    total = loop.add_recurrence(constant(network, np.zeros(4, np.float32)))
    total.set_input(1, combine(network, total.get_output(0), fill.get_output(0)))
    mark(network, y=last(loop, total.get_output(0)))
    engine, alone = trt.SlotEngine(network, slots=2), trt.compile(network)

    for n in (1, 3, 2):
        np.testing.assert_array_equal(engine.submit({"n": np.int32(n)}).result()["y"], alone({"n": np.int32(n)})["y"])


def test_a_cancelled_request_gives_its_slot_to_another():
    engine = trt.SlotEngine(count_is_an_input(), slots=1)
    long, waiting, short = (engine.submit({"n": np.int32(n)}) for n in (8, 7, 2))
    engine.step()

    long.cancel()
    waiting.cancel()

    assert short.result()["y"] == 4
    assert short.trips == 2
    for request in (long, waiting):
        assert request.state is trt.RequestState.CANCELLED
        with pytest.raises(CancelledError):
            request.result()


def test_leaving_run_early_cancels_its_requests():
    engine = trt.SlotEngine(count_is_an_input(), slots=2)

    for request in engine.run([{"n": np.int32(n)} for n in (1, 8, 8, 8)]):
        assert request.result()["y"] == 2
        break

    assert repr(engine) == "<SlotEngine, 0 of 2 slots, 0 requests waiting>"


def test_inputs_are_refused_when_they_are_handed_in():
    engine = trt.SlotEngine(running_sum(), slots=2)

    with pytest.raises(trt.InputError, match="NL602"):
        engine.submit({"z": np.zeros(3)})
    (request,) = engine.run([{"x": np.zeros((5, 3))}])
    with pytest.raises(trt.InputError, match="NL603"):
        request.result()


def test_inputs_are_copied():
    engine, x = trt.SlotEngine(running_sum(), slots=2), np.ones((5, 3), np.float32)

    request = engine.submit({"x": x})
    x[:] = 7

    np.testing.assert_array_equal(request.result()["y"], [3, 3, 3])


@pytest.mark.parametrize("options", [{"slots": 0}, {"trips": 0}, {"max_trips": -1}])
def test_numbers_are_positive(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        trt.SlotEngine(running_sum(), **options)


def test_engines_and_requests_are_not_pickled():
    engine = trt.SlotEngine(running_sum(), slots=2)

    for other in (engine, engine.submit({"x": np.zeros((5, 3), np.float32)})):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(other)


# ---------------------------------------------------------------------------- phase times


def test_requests_that_run_go_on_after_a_profile():
    network, inputs = generator(), prompts(3)
    engine, alone = trt.SlotEngine(network, slots=2), trt.compile(network)
    requests = [engine.submit(tensor) for tensor in inputs]
    engine.step()
    phases = engine.profile(inputs[0])

    assert [*phases] == ["passes", "load", "trace", "compile", "call"]
    for request, given in zip(requests, inputs, strict=True):
        assert_same(request.result(), alone(given))
    assert engine.made == sum(request.trips for request in requests)


def test_profile_of_a_request_without_iterations():
    engine = trt.SlotEngine(count_is_an_input(), slots=2)

    assert engine.profile({"n": np.int32(0)})["call"] > 0


def test_profile_raises_the_failure_of_its_requests():
    engine = trt.SlotEngine(count_is_an_input(), slots=2, max_trips=2)

    with pytest.raises(trt.ExecutionError, match="more than 2 iterations"):
        engine.profile({"n": np.int32(3)})
    with pytest.raises(trt.InputError, match="missing"):
        engine.profile({})
    assert engine.submit({"n": np.int32(2)}).result()
