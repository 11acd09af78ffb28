"""Errors of the lengths of stacked outputs: every execution reports them where the output is needed, and only there."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import netloop as trt
from netloop.model.graph.tensor import ITensor
from tests.support.log import Log
from tests.support.networks import CONCATENATE, WHILE, Op, cast, combine, constant, counted, counter, last, mark

WRONG = {
    "negative": (-1, "the length of 'rows' is -1, but cannot be negative"),
    "too short": (2, "'rows' has room for 2 elements, and"),
    "too large": (1 << 60, f"'rows' would be int32[{1 << 60}]"),
}
LENGTHS = [number for number, _ in WRONG.values()]


def rows(network: trt.INetworkDefinition, length: ITensor, kind: trt.LoopOutput = CONCATENATE) -> ITensor:
    """0, 1, 2, stacked."""
    loop = counted(network, 3)
    output = loop.add_loop_output(counter(network, loop), kind)
    output.name = "rows"
    output.set_input(1, length)
    return output.get_output(0)


def total(network: trt.INetworkDefinition, length: ITensor) -> ITensor:
    """Their sum, an int32 scalar."""
    return network.add_reduce(rows(network, length), trt.ReduceOperation.SUM, 1, False).get_output(0)


# ---------------------------------------------------------------------------- places, in which ``flag`` decides


def choose(network: trt.INetworkDefinition, flag: ITensor, true: ITensor) -> ITensor:
    choice = network.add_if_conditional()
    choice.set_condition(flag)
    return choice.add_output(true, constant(network, 7, np.int32)).get_output(0)


def in_a_branch(network: trt.INetworkDefinition, flag: ITensor, length: ITensor) -> ITensor:
    return choose(network, flag, total(network, length))


def in_a_reversed_branch(network: trt.INetworkDefinition, flag: ITensor, length: ITensor) -> ITensor:
    made = rows(network, length, trt.LoopOutput.REVERSE)
    return choose(network, flag, network.add_reduce(made, trt.ReduceOperation.SUM, 1, False).get_output(0))


def in_a_branch_of_a_scan(network: trt.INetworkDefinition, flag: ITensor, length: ITensor) -> ITensor:
    loop = counted(network, 2)
    state = loop.add_recurrence(constant(network, 7, np.int32))
    state.set_input(1, choose(network, flag, combine(network, state.get_output(0), total(network, length))))
    return last(loop, state.get_output(0))


def in_a_branch_of_a_while(network: trt.INetworkDefinition, flag: ITensor, length: ITensor) -> ITensor:
    loop = network.add_loop()
    now = counter(network, loop)
    loop.add_trip_limit(combine(network, now, 2, Op.LESS), WHILE)
    state = loop.add_recurrence(constant(network, 7, np.int32))
    state.set_input(1, choose(network, flag, combine(network, state.get_output(0), total(network, length))))
    return last(loop, state.get_output(0))


def in_a_loop_that_may_not_run(network: trt.INetworkDefinition, flag: ITensor, length: ITensor) -> ITensor:
    """The length is read in each iteration of the outer loop."""
    loop = counted(network, cast(network, flag, trt.int32))
    state = loop.add_recurrence(constant(network, 7, np.int32))
    made = total(network, combine(network, length, combine(network, counter(network, loop, 0, np.int64), 0, Op.PROD)))
    state.set_input(1, combine(network, state.get_output(0), made))
    return last(loop, state.get_output(0))


PLACES = [in_a_branch, in_a_branch_of_a_scan, in_a_branch_of_a_while, in_a_loop_that_may_not_run]
SOURCES = ["input", "computed", "constant"]
"""``computed`` is known only to host execution."""
CASES = [(place, "input") for place in PLACES] + [(in_a_branch, source) for source in SOURCES[1:]]
CASES += [(in_a_reversed_branch, "input"), (in_a_loop_that_may_not_run, "computed")]


def network_with(place: Callable[..., ITensor], source: str, length: int) -> tuple[trt.INetworkDefinition, Any]:
    """A network with its inputs but for ``flag``; ``y`` is 7 if it is false."""
    network, inputs = trt.INetworkDefinition(), {}
    flag = network.add_input("flag", trt.bool, ())
    if source == "constant":
        made = constant(network, length, np.int64)
    else:
        made, inputs["n"] = network.add_input("n", trt.int64, ()), np.int64(length)
    if source == "computed":
        found = network.add_non_zero(network.add_input("ones", trt.int32, (-1,))).get_output(0)
        zero = network.add_reduce(cast(network, found, trt.int64), trt.ReduceOperation.MAX, 3, False).get_output(0)
        made, inputs["ones"] = combine(network, made, zero), np.ones(1, np.int32)
    return mark(network, y=place(network, flag, made)), inputs


def executions(network: trt.INetworkDefinition) -> list[Callable[[Any], Any]]:
    """The reference, an engine, and host execution."""
    engine = trt.compile(network)
    tensors = [tensor for layer in engine.network.layers for tensor in layer.outputs]

    def watch(inputs: Any) -> Any:
        return engine.watch(inputs, tensors, lambda *seen: None)

    return [lambda inputs: trt.evaluate(network, inputs), engine, watch]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize(("place", "source"), CASES)
def test_wrong_length_is_an_error_only_where_the_output_is_needed(place, source, wrong):
    length, message = WRONG[wrong]
    network, inputs = network_with(place, source, length)
    messages = set()
    for run in executions(network):
        assert run({"flag": np.bool_(False), **inputs})["y"] == 7
        with pytest.raises(trt.ExecutionError) as caught:
            run({"flag": np.bool_(True), **inputs})
        messages.add(str(caught.value))

    (found,) = messages
    assert found.startswith(f"NL601: {message}")


@pytest.mark.parametrize("length", LENGTHS)
def test_wrong_length_of_an_output_that_nothing_reads_is_no_error(network, length):
    rows(network, network.add_input("n", trt.int64, ()))
    mark(network, y=network.add_identity(network.add_input("x", trt.int32, ())).get_output(0))
    for run in executions(network):
        assert run({"n": np.int64(length), "x": np.int32(5)})["y"] == 5


def test_shape_of_an_output_that_is_too_short_is_its_length(network):
    mark(network, y=network.add_shape(rows(network, network.add_input("n", trt.int64, ()))).get_output(0))
    for run in executions(network):
        assert run({"n": np.int64(2)})["y"].tolist() == [2]


@pytest.mark.parametrize("wrong", ["negative", "too large"])
def test_output_of_an_impossible_length_has_no_shape(network, wrong):
    length, message = WRONG[wrong]
    made = network.add_shape(rows(network, network.add_input("n", trt.int64, ()))).get_output(0)
    size = network.add_reduce(cast(network, made, trt.int32), trt.ReduceOperation.SUM, 1, False).get_output(0)
    mark(network, y=choose(network, network.add_input("flag", trt.bool, ()), size))
    for run in executions(network):
        assert run({"n": np.int64(length), "flag": np.bool_(False)})["y"] == 7
        with pytest.raises(trt.ExecutionError, match=message.replace("[", r"\[")):
            run({"n": np.int64(length), "flag": np.bool_(True)})


def test_shape_that_does_not_fit_a_wrong_length_is_no_error_in_the_branch_not_taken(network):
    """The layers that read the output are lazy as well."""
    three = combine(
        network, rows(network, network.add_input("n", trt.int64, ())), constant(network, [1, 2, 3], np.int32)
    )
    summed = network.add_reduce(three, trt.ReduceOperation.SUM, 1, False).get_output(0)
    mark(network, y=choose(network, network.add_input("flag", trt.bool, ()), summed))
    for run in executions(network):
        assert run({"n": np.int64(-1), "flag": np.bool_(False)})["y"] == 7
        assert run({"n": np.int64(3), "flag": np.bool_(True)})["y"] == 9


class Seen(trt.IDebugListener):
    def __init__(self):
        super().__init__()
        self.names = []

    def process_debug_tensor(self, addr, location, type, shape, name, stream):
        self.names.append(name)
        return True


@pytest.mark.parametrize("wrong", WRONG)
def test_debug_tensor_of_a_wrong_length_is_not_reported(wrong):
    length, message = WRONG[wrong]
    network, inputs = network_with(in_a_branch, "input", length)
    debugged = next(layer for layer in network.layers if layer.name == "rows").get_output(0)
    debugged.name = "seen"
    network.mark_debug(debugged)
    log, listener, y = Log(), Seen(), np.zeros((), np.int32)
    builder = trt.Builder(log)
    context = builder.build_engine_with_config(network, builder.create_builder_config()).create_execution_context()
    context.set_debug_listener(listener)
    context.set_all_tensors_debug_state(True)
    arrays = {"flag": np.zeros((), np.bool_), "n": np.array(inputs["n"]), "y": y}
    for name, array in arrays.items():
        context.set_tensor_address(name, array.ctypes.data)

    assert context.execute_async_v3(0)
    assert y == 7
    arrays["flag"][...] = True
    assert not context.execute_async_v3(0)
    assert message in log.lines[-1][1]
    assert listener.names == []


def test_pure_function_refuses_an_impossible_length_and_says_why(network):
    mark(network, y=rows(network, network.add_input("n", trt.int64, ())))
    function, weights = trt.to_jax(network)

    assert function(weights, {"n": np.int64(3)})["y"].tolist() == [0, 1, 2]
    with pytest.raises(trt.NetworkError, match="NL501: the length of 'rows' is -1, but cannot be negative"):
        function(weights, {"n": np.int64(-1)})


def test_output_for_which_the_memory_does_not_suffice_is_an_error_of_the_run(network, monkeypatch):
    mark(network, y=rows(network, network.add_input("n", trt.int64, ())))

    zeros = np.zeros

    def fail(shape: Any, *args: Any, **named: Any) -> Any:
        if shape == (3,):
            raise MemoryError
        return zeros(shape, *args, **named)

    monkeypatch.setattr("netloop.model.layers.loop.np.zeros", fail)
    with pytest.raises(trt.ExecutionError, match=r"'rows' is int32\[3\], and there is not enough memory for it"):
        trt.evaluate(network, {"n": np.int64(3)})


def test_rows_of_a_length_that_no_memory_holds_are_compiled_at_once_and_not_computed_where_they_are_not_taken():
    network, inputs = network_with(in_a_branch, "constant", 1 << 30)
    started = time.perf_counter()

    assert trt.compile(network)({"flag": np.bool_(False), **inputs})["y"] == 7
    assert time.perf_counter() - started < 20  # more than a minute, if XLA evaluates the sum of the zeros


def test_reversed_rows_that_int32_cannot_count_are_an_error_of_the_run():
    network, inputs = network_with(in_a_reversed_branch, "input", 1 << 31)
    for run in executions(network):
        with pytest.raises(trt.ExecutionError, match="NL601: the length of 'rows' is 2147483648"):
            run({"flag": np.bool_(True), **inputs})
