"""Slots on a device."""

import contextlib
import threading
from concurrent.futures import CancelledError

import jax
import numpy as np
import pytest

import netloop as trt
from netloop.compiler.execution.slots import Slots
from tests.support.generators import generator, prompts
from tests.support.networks import combine, constant, count_is_an_input, counted, counter, mark, stacked


def test_a_failure_of_the_device_ends_the_requests_in_the_slots_and_no_other(monkeypatch):
    engine = trt.SlotEngine(count_is_an_input(), slots=2)
    lost, waiting = [engine.submit({"n": np.int32(n)}) for n in (5, 6)], engine.submit({"n": np.int32(2)})
    engine.step()

    with monkeypatch.context() as patch:
        patch.setattr(Slots, "generate", out_of_memory)
        over = engine.step()

    assert over == lost
    for request in lost:
        with pytest.raises(trt.ExecutionError, match="NL608"):
            request.result()
    assert waiting.result()["y"] == 4


def out_of_memory(slots):
    raise MemoryError


def test_an_interrupted_call_ends_its_requests(monkeypatch):
    def interrupt(slots):
        raise KeyboardInterrupt

    engine = trt.SlotEngine(count_is_an_input(), slots=2)
    lost = engine.submit({"n": np.int32(5)})
    with monkeypatch.context() as patch:
        patch.setattr(Slots, "generate", interrupt)
        with pytest.raises(KeyboardInterrupt):
            engine.step()

    assert lost.is_over
    assert engine.submit({"n": np.int32(1)}).result()["y"] == 2


@pytest.mark.parametrize("error", [MemoryError(), KeyboardInterrupt()])
def test_a_request_that_cannot_begin_ends_those_whose_slots_it_lost(error, monkeypatch):
    engine = trt.SlotEngine(count_is_an_input(), slots=3)
    lost = [engine.submit({"n": np.int32(n)}) for n in (5, 6)]
    engine.step()
    lost.append(engine.submit({"n": np.int32(4)}))
    waiting = [engine.submit({"n": np.int32(n)}) for n in (2, 3)]
    insert, errors = Slots.insert, [error]

    def lose(slots, prefix, slot):
        # as a program that fails after it has taken the slots
        if errors:
            slots._slots = None
            raise errors.pop()
        return insert(slots, prefix, slot)

    with monkeypatch.context() as patch:
        patch.setattr(Slots, "insert", lose)
        with contextlib.suppress(KeyboardInterrupt):
            assert engine.step() == lost

    assert all(request.is_over for request in lost)
    for request in lost:
        with pytest.raises((trt.ExecutionError, CancelledError)):
            request.result()
    assert [int(request.result()["y"]) for request in waiting] == [4, 8]


def test_an_error_before_the_loop_is_of_one_request(monkeypatch):
    engine = trt.SlotEngine(count_is_an_input(), slots=2)
    running = engine.submit({"n": np.int32(4)})
    engine.step()
    lost = [engine.submit({"n": np.int32(1)}) for _ in range(2)]
    for error, request in zip((RuntimeError("no"), KeyboardInterrupt()), lost, strict=True):
        with monkeypatch.context() as patch:
            patch.setattr(Slots, "prefill", raising(error))
            with contextlib.suppress(KeyboardInterrupt):
                engine.step()
        assert request.is_over

    assert running.result()["y"] == 16


def raising(error):
    def function(*arguments):
        raise error

    return function


def test_threads_share_the_iterations():
    network, inputs = generator(), prompts(8)
    engine, alone, found = trt.SlotEngine(network, slots=3, trips=2), trt.compile(network), {}

    def ask(number):
        found[number] = engine.submit(inputs[number]).result()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    for number, given in enumerate(inputs):
        np.testing.assert_array_equal(found[number]["text"], alone(given)["text"])


def test_jax_arrays_are_inputs_that_stay_usable():
    engine = trt.SlotEngine(count_is_an_input(), slots=1)
    n = jax.device_put(np.int32(3))
    requests = [engine.submit({"n": n}) for _ in range(3)]

    assert [int(request.result()["y"]) for request in requests] == [8, 8, 8]
    assert int(n) == 3


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_streams_are_stacked_along_the_axis_of_their_output(axis):
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (3,))
    loop = counted(network, network.add_input("n", trt.int32, ()))
    step = network.add_cast(counter(network, loop), trt.float32).get_output(0)
    row = network.add_shuffle(step)
    row.reshape_dims = (1,)
    rows = stacked(loop, combine(network, x, row.get_output(0)), constant(network, 4, np.int32), axis=axis)
    mark(network, y=rows)
    given = {"x": np.float32([1, 2, 3]), "n": np.int32(3)}

    found = trt.SlotEngine(network, slots=2).submit(given).result()["y"]

    np.testing.assert_array_equal(found, trt.compile(network)(given)["y"])


def test_changes_of_the_network_do_not_reach_the_engine():
    network = count_is_an_input()
    engine = trt.SlotEngine(network, slots=1)

    network.outputs[0].name = "changed"

    assert list(engine.submit({"n": np.int32(1)}).result()) == ["y", "ys"]
