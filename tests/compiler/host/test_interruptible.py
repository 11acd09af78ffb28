"""Interruptible engines: their outputs are the same, and Ctrl-C ends a call that would never end."""

import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import netloop as trt
from netloop.compiler.host import compiled_pieces
from tests.compiler.execution.test_failures import (
    MAX_TRIPS,
    assertion,
    at_the_top,
    failing,
    in_a_condition,
    in_a_while,
    too_many_trips,
)
from tests.support.networks import (
    EXAMPLES,
    WHILE,
    F,
    assert_outputs,
    chain_in_loop,
    constant,
    counted,
    counter,
    last,
    mark,
)

ROOT = Path(__file__).parents[3]


@pytest.fixture
def all_long(monkeypatch):
    """Make every loop of two iterations a long one. With 0, a body without a loop would be long too."""
    monkeypatch.setattr(compiled_pieces, "MOST_TRIPS_AT_ONCE", 1)


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_outputs_are_the_same(example, all_long):
    engine = trt.compile(example.make(), interruptible=True)

    assert_outputs({name: np.asarray(value) for name, value in engine(example.inputs).items()}, example.outputs)


@pytest.mark.parametrize("fail", [too_many_trips, assertion])
@pytest.mark.parametrize("place", [at_the_top, in_a_while, in_a_condition])
def test_errors_have_the_same_message(fail, place):
    network = failing(fail, place, host=False)
    engine = trt.compile(network, max_trips=MAX_TRIPS, interruptible=True)
    messages = []
    for run in (lambda inputs: trt.evaluate(network, inputs, max_trips=MAX_TRIPS), engine):
        with pytest.raises(trt.ExecutionError) as caught:
            run({"n": np.int32(4)})
        messages.append(str(caught.value))

    assert messages[0] == messages[1]


def test_input_that_a_loop_begins_with_is_left_alone():
    network = chain_in_loop(1, 20_000)
    engine = trt.compile(network, interruptible=True)
    x = engine({"x": F([1, 2])})["y"]
    engine({"x": x})

    assert x.tolist() == [1, 2]


def test_short_loop_is_part_of_a_program():
    engine = trt.compile(chain_in_loop(1, 2), interruptible=True)
    engine({"x": F([1, 2])})

    assert [strategy.name for strategy in engine.loop_strategies.values()] == ["scan"]


def test_long_loop_runs_in_chunks():
    engine = trt.compile(chain_in_loop(1, 20_000), interruptible=True)

    assert engine({"x": F([1, 2])})["y"].tolist() == [1, 2]
    assert [strategy.why for strategy in engine.loop_strategies.values()] == ["it runs a chunk of iterations at a time"]


def test_loop_around_a_long_one_runs_on_the_host():
    network = trt.INetworkDefinition()
    outer, inner = counted(network, 2), counted(network, 20_000)
    total = outer.add_recurrence(constant(network, 0, np.int32))
    number = inner.add_recurrence(total.get_output(0))
    number.set_input(1, network.add_elementwise(number.get_output(0), counter(network, inner), MAX).get_output(0))
    total.set_input(1, last(inner, number.get_output(0)))
    mark(network, y=last(outer, total.get_output(0)))
    engine = trt.compile(network, interruptible=True)

    assert engine({})["y"] == 19_999
    assert [strategy.name for strategy in engine.loop_strategies.values()] == ["host", "while"]


MAX = trt.ElementWiseOperation.MAX


def test_interruptible_is_part_of_a_plan():
    logger = trt.Logger()
    builder = trt.Builder(logger)
    config = builder.create_builder_config()
    config.interruptible = True
    plan = builder.build_serialized_network(chain_in_loop(1, 2), config)

    assert trt.Runtime(logger).deserialize_cuda_engine(plan).interruptible is True


def test_engine_is_not_interruptible_by_default():
    plan = trt.compile(chain_in_loop(1, 2)).serialize()

    assert trt.Runtime(trt.Logger()).deserialize_cuda_engine(plan).interruptible is False


def test_interruptible_is_a_bool():
    with pytest.raises(TypeError, match="interruptible must be bool, not 'yes'"):
        trt.compile(chain_in_loop(1, 2), interruptible="yes")


# ---------------------------------------------------------------------------- Ctrl-C


def endless(inner: bool) -> trt.INetworkDefinition:
    """A loop that never ends, with ``inner`` inside another one."""
    network = trt.INetworkDefinition()
    yes = network.add_input("yes", trt.bool, ())
    outer, loop = counted(network, 3), network.add_loop()
    state = loop.add_recurrence(counter(network, outer) if inner else constant(network, 0, np.int32))
    state.set_input(1, state.get_output(0))
    # the limit varies in the loop, so that the check cannot find that it never ends
    again = loop.add_recurrence(yes)
    again.set_input(1, again.get_output(0))
    loop.add_trip_limit(again.get_output(0), WHILE)
    made = last(loop, state.get_output(0))
    return mark(network, y=last(outer, made) if inner else made)


def wait_for_ever() -> None:
    """Begin calls that never end, and print when each begins and is interrupted."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background is started without one
    inputs = {"yes": np.bool_(True)}
    calls = [trt.compile(endless(inner), interruptible=True) for inner in (False, True)]
    for call in (*calls, lambda inputs: trt.evaluate(endless(True), inputs)):
        print("begins", flush=True)
        try:
            call(inputs)
        except KeyboardInterrupt:
            print("interrupted", flush=True)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT to send")
def test_ctrl_c_ends_calls_that_never_end():
    script = "from tests.compiler.host.test_interruptible import wait_for_ever; wait_for_ever()"
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            for _ in range(3):
                assert process.stdout.readline() == "begins\n"
                time.sleep(0.7)
                assert answer_to_ctrl_c(process) == "interrupted\n"
        finally:
            process.kill()


def answer_to_ctrl_c(process: subprocess.Popen) -> str:
    """The output of a process after Ctrl-C: a second is promised, and a busy machine may need longer.

    A signal that arrives in JAX's callback of the garbage collector is lost, and so it is sent again.
    """
    for _ in range(6):
        process.send_signal(signal.SIGINT)
        if select.select([process.stdout], [], [], 5)[0]:
            return process.stdout.readline()
    return ""
