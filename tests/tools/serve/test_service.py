"""What ends the thread of a service, and what does not."""

import logging
import threading
from concurrent.futures import Future
from functools import cache

import numpy as np
import pytest

import netloop as trt
from netloop.serve import Closed, Sequences, Server, Streams
from netloop.tools.serve.answer import Answer
from tests.support.networks import mark
from tests.support.plugin_examples import Plugin
from tests.tools.serve.test_sequences import SECONDS, Gate, mixing
from tests.tools.serve.test_server import affine, rows
from tests.tools.serve.test_streams import endless, number

FAULTS = [SystemExit("done"), KeyboardInterrupt(), MemoryError("none left"), ValueError("broken")]
ends_its_thread = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
"""The traceback of a thread that ends is printed, which pytest makes a warning of."""


@cache
def engine(make):
    return trt.compile(make(trt.INetworkDefinition()))


class Used:
    """A service of a kind, and how a request is sent to it."""

    def __init__(self, kind, **options):
        self.kind = kind
        if kind is Server:
            self.service = Server(engine(affine), (1,), **options)
        elif kind is Sequences:
            self.service = Sequences(engine(mixing), {"s": "sn"}, sizes=(1,), **options)
        else:
            self.service = Streams(trt.SlotEngine(endless(trt.INetworkDefinition()), slots=1), **options)

    def submit(self):
        if self.kind is Sequences:
            return self.service.submit(object(), number(1), start=True)
        return self.service.submit(number(1) if self.kind is Streams else rows(1))

    def until_ended(self):
        self.service._thread.join(SECONDS)
        assert not self.service._thread.is_alive()


@pytest.fixture(params=[Server, Sequences, Streams])
def used(request):
    made = Used(request.param)
    yield made
    made.service.close()


class Failing:
    """Takes the place of a method: the thread of a service that calls it waits, and then gets an error."""

    def __init__(self, holder, name, service, error):
        self.opened, self.error, self.original = threading.Event(), error, getattr(holder, name)
        self.service = service
        setattr(holder, name, self)

    def __call__(self, *given):
        if threading.current_thread() is not self.service._thread:
            return self.original(*given)
        assert self.opened.wait(SECONDS)
        raise self.error


PLACES = ["_take", "_answer", "_most", "_admission", "_clock", "_starts"]
ENDS = [(place, FAULTS[number % len(FAULTS)]) for number, place in enumerate(PLACES)]


@ends_its_thread
@pytest.mark.parametrize(("place", "error"), ENDS, ids=PLACES)
def test_end_of_the_thread_is_told_to_those_who_wait_and_those_who_come(used, place, error):
    failing = Failing(used.service, place, used.service, error)
    with used.service._changed:  # most places are reached with the lock held, where a second request would wait for it
        futures = [used.submit(), used.submit()]
    failing.opened.set()

    message = f"NL648: the thread of the service was ended by {type(error).__name__}"
    for future in futures:
        with pytest.raises(Closed, match=message):
            future.result(SECONDS)
    used.until_ended()
    with pytest.raises(Closed, match=message):
        used.submit()
    assert used.service.is_closed
    assert used.service.metrics().failed == 2
    assert used.service.metrics().queued == 0


@ends_its_thread
def test_clock_that_fails_after_a_call_ends_the_service_and_answers_the_call():
    times = iter([0.0, 0.0])
    used = Used(Server, clock=lambda: next(times))
    future = used.submit()

    with pytest.raises(Closed, match="NL648: the thread of the service was ended by StopIteration"):
        future.result(SECONDS)
    used.until_ended()
    used.service.close()


@ends_its_thread
def test_plugin_that_exits_ends_its_service(network):
    class Exiting(Plugin):
        def compute(self, x, y):
            if x[0] == 3:
                raise SystemExit("no table")
            y[...] = 2 * x

    x = network.add_input("x", trt.float32, (-1,))
    server = Server(trt.compile(mark(network, y=network.add_plugin_v3([x], [], Exiting()).get_output(0))), (1,))
    assert server(x=np.float32([2]))["y"].tolist() == [4]
    with pytest.raises(Closed, match="ended by SystemExit: no table"):
        server(x=np.float32([3]))
    with pytest.raises(Closed, match="ended by SystemExit: no table"):
        server(x=np.float32([2]))
    server.close()


@ends_its_thread
def test_streams_that_run_and_wait_are_told_what_ended_the_thread():
    used = Used(Streams)
    began = threading.Event()
    futures = [used.service.submit(number(1), lambda _: began.set())]
    assert began.wait(SECONDS)
    futures.append(used.submit())
    Failing(used.service._engine, "step", used.service, SystemExit("done")).opened.set()

    for future in futures:
        with pytest.raises(Closed, match="NL648: the thread of the service was ended by SystemExit: done"):
            future.result(SECONDS)
    used.until_ended()
    assert used.service.metrics().failed == 2
    used.service.close()


# ---------------------------------------------------------------------------- callbacks


@pytest.mark.parametrize("error", FAULTS, ids=lambda value: type(value).__name__)
def test_callback_of_a_caller_does_not_end_the_thread(error, caplog):
    def failing(_):
        raise error

    used = Used(Server)
    gate, others = Gate(used.service), [threading.Event(), threading.Event()]
    future = used.submit()
    assert gate.reached.wait(SECONDS)
    future.add_done_callback(lambda _: others[0].set())
    future.add_done_callback(failing)
    future.add_done_callback(lambda _: others[1].set())
    with caplog.at_level(logging.CRITICAL, "concurrent.futures"):
        gate.open()
        assert future.result(SECONDS)["y"].tolist() == [[2, 2, 2]]
        assert all(other.wait(SECONDS) for other in others)
        assert used.submit().result(SECONDS)["y"].tolist() == [[2, 2, 2]]
    used.service.close()


@pytest.mark.parametrize("error", FAULTS, ids=lambda value: type(value).__name__)
def test_caller_of_rows_does_not_end_the_thread(error):
    def failing(_):
        raise error

    used = Used(Streams)
    future = used.service.submit(number(1), failing)
    ended = threading.Event()
    future.add_done_callback(lambda _: ended.set())
    assert ended.wait(SECONDS)

    assert future.cancelled()
    stream = used.service.rows(number(3))
    assert int(next(stream)["all"]) == 3
    stream.close()
    used.service.close()


def test_callback_in_the_thread_of_its_caller_may_end_that():
    def exiting(_):
        raise SystemExit

    future = Answer()
    future.add_done_callback(exiting)
    with pytest.raises(SystemExit):
        future.cancel()


def test_closing_answers_all_even_if_a_callback_interrupts_it():
    def interrupted(_):
        raise KeyboardInterrupt

    used = Used(Server)
    gate = Gate(used.service)
    running = used.submit()
    assert gate.reached.wait(SECONDS)
    waiting = [used.submit() for _ in range(3)]
    waiting[0].add_done_callback(interrupted)
    with pytest.raises(KeyboardInterrupt):
        used.service.close()
    gate.open()

    for future in waiting:
        with pytest.raises(Closed, match="NL644"):
            future.result(SECONDS)
    assert running.result(SECONDS)["y"].tolist() == [[2, 2, 2]]
    used.service.close()


# ---------------------------------------------------------------------------- seconds

NO_SECONDS = [1e10, 1e308, float("nan"), -1, -0.001, 1 << 23]


@pytest.mark.parametrize("kind", [Server, Sequences, Streams])
def test_seconds_that_no_thread_can_wait_are_refused_at_once(kind):
    names = {Server: ("timeout", "delay"), Sequences: ("timeout", "delay", "idle"), Streams: ("timeout",)}[kind]
    for name in names:
        for value in NO_SECONDS:
            with pytest.raises(ValueError, match=f"{name} must be at least 0 and at most 4194304 seconds"):
                Used(kind, **{name: value})
        for value in ("1", True, [1]):
            with pytest.raises(TypeError, match=f"{name} must be a number"):
                Used(kind, **{name: value})
    if "delay" in names:
        with pytest.raises(ValueError, match="delay must be at least 0"):
            Used(kind, delay=float("inf"))


def test_seconds_of_a_request_are_checked_before_the_queue():
    server, sequences, streams = (Used(kind) for kind in (Server, Sequences, Streams))
    for value in NO_SECONDS:
        with pytest.raises(ValueError, match="timeout must be"):
            server.service.submit(rows(1), timeout=value)
        with pytest.raises(ValueError, match="timeout must be"):
            sequences.service.step(1, number(1), start=True, timeout=value)
        with pytest.raises(ValueError, match="timeout must be"):
            streams.service.submit(number(1), timeout=value)
    for other in (server, sequences, streams):
        assert other.service.metrics().accepted == 0
        other.service.close()


def test_infinity_is_no_limit_of_time():
    endlessly = float("inf")
    with Used(Server, timeout=endlessly).service as server:
        assert server(rows(1))["y"].tolist() == [[2, 2, 2]]
        assert server.submit(rows(2), timeout=endlessly).result(SECONDS)["y"][0, 0] == 4
    with Used(Sequences, timeout=endlessly, idle=endlessly).service as sequences:
        assert sequences.step(1, number(0), start=True, timeout=endlessly)["y"] == 7


def test_clock_is_a_function():
    with pytest.raises(TypeError, match="clock must be a function that returns the time in seconds, not 'utc'"):
        Used(Server, clock="utc")


# ---------------------------------------------------------------------------- answers


def test_answer_is_failed_once_and_not_after_it_was_given_up():
    given_up, answered, running = Answer(), Answer(), Answer()
    given_up.cancel()
    answered.set_result({})
    assert running.set_running_or_notify_cancel()
    for answer in (given_up, answered, running):
        answer.fail(ValueError("late"))

    assert given_up.cancelled()
    assert answered.result(0) == {}
    with pytest.raises(ValueError, match="late"):
        running.result(0)
    assert isinstance(running, Future)
    assert np.all([answer.done() for answer in (given_up, answered, running)])
