"""Requests of a loop as a service."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import netloop as trt
from netloop.serve import Closed, Overloaded, Streams
from tests.support.networks import WHILE, combine, constant, counted, last, mark, stacked
from tests.tools.serve.test_sequences import SECONDS

Op = trt.ElementWiseOperation
ROOM = 64


def doubling(network, factor=2, room=ROOM):
    """all[room]: x, 2 x, 4 x ... while they are below 1000; root: the first that is not, plus 1."""
    loop = counted(network, room)
    state = loop.add_recurrence(network.add_input("x", trt.int64, ()))
    now = state.get_output(0)
    loop.add_trip_limit(combine(network, now, 1000, Op.LESS), WHILE)
    state.set_input(1, combine(network, now, factor, Op.PROD))
    rows = stacked(loop, now, constant(network, room, np.int32))
    return mark(network, all=rows, end=combine(network, last(loop, now), 1))


def doubled(x, factor=2):
    values = []
    while x < 1000 and len(values) < ROOM:
        values.append(x)
        x *= factor
    return values, x + 1


def number(x):
    return {"x": np.array(x, np.int64)}


def endless(network):
    """all: a million zeros, one by one."""
    loop = counted(network, 1_000_000)
    now = loop.add_recurrence(network.add_input("x", trt.int64, ()))
    now.set_input(1, combine(network, now.get_output(0), 0))
    return mark(network, all=stacked(loop, now.get_output(0), constant(network, 1_000_000, np.int32)))


def wait_for(condition):
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_many_threads_get_their_own_rows_and_outputs(network):
    with Streams(trt.SlotEngine(doubling(network), slots=4, trips=2)) as streams:

        def client(x):
            rows = [int(row["all"]) for row in streams.rows(number(x))]
            made = streams(number(x))
            return rows, made["all"][: len(rows)].tolist(), int(made["end"])

        with ThreadPoolExecutor(16) as pool:
            for x, (rows, every, end) in zip(range(1, 60), pool.map(client, range(1, 60)), strict=True):
                assert (rows, end) == doubled(x)
                assert every == rows
        metrics = streams.metrics()

    assert metrics.completed == 118
    assert metrics.queued == metrics.sequences == 0
    assert streams.streamed == {"all"}


def test_rows_arrive_before_the_request_ends(network):
    with Streams(trt.SlotEngine(endless(network), slots=1)) as streams:
        rows = streams.rows(number(1))

        assert int(next(rows)["all"]) == 1
        assert streams.metrics().completed == 0
        rows.close()
        # the slot is free again
        other = streams.rows(number(7))
        assert int(next(other)["all"]) == 7
        other.close()


def test_a_cancelled_request_frees_its_slot(network):
    with Streams(trt.SlotEngine(endless(network), slots=1)) as streams:
        began = threading.Event()
        first = streams.submit(number(1), lambda _: began.set())
        assert began.wait(SECONDS)
        second = threading.Event()
        waiting = streams.submit(number(2), lambda _: second.set())
        assert not second.is_set()
        first.cancel()
        assert second.wait(SECONDS)
        waiting.cancel()
        wait_for(lambda: streams.metrics().cancelled == 2)


def test_a_caller_that_raises_gives_its_request_up(network):
    def failing(_):
        raise RuntimeError("the caller has gone")

    with Streams(trt.SlotEngine(endless(network), slots=1)) as streams:
        future = streams.submit(number(1), failing)
        wait_for(future.cancelled)
        rows = streams.rows(number(3))
        assert int(next(rows)["all"]) == 3
        rows.close()


def test_a_full_queue_refuses_at_once(network):
    with Streams(trt.SlotEngine(endless(network), slots=1), queue=2) as streams:
        began = threading.Event()
        futures = [streams.submit(number(1), lambda _: began.set())]
        assert began.wait(SECONDS)
        futures += [streams.submit(number(1)) for _ in range(2)]
        with pytest.raises(Overloaded, match="2 of at most 2 requests"):
            streams.submit(number(1))
        assert streams.metrics().refused == 1
        assert not any(future.done() for future in futures)


def test_closing_answers_the_requests_that_run_and_wait(network):
    began = threading.Event()
    with Streams(trt.SlotEngine(endless(network), slots=1)) as streams:
        futures = [streams.submit(number(1), lambda _: began.set()), streams.submit(number(2))]
        assert began.wait(SECONDS)

    for future in futures:
        with pytest.raises(Closed):
            future.result(SECONDS)
    with pytest.raises(Closed):
        streams.submit(number(1))


def test_a_failing_request_fails_alone(network):
    with Streams(trt.SlotEngine(doubling(network), slots=2, max_trips=4)) as streams:
        futures = [streams.submit(number(x)) for x in (1, 500, 2, 900)]
        for future, x in zip(futures, (1, 500, 2, 900), strict=True):
            if x < 100:
                with pytest.raises(trt.ExecutionError, match="max_trips"):
                    future.result(SECONDS)
            else:
                assert future.result(SECONDS)["end"] == doubled(x)[1]
        assert streams.metrics().failed == 2


def test_an_engine_that_fails_answers_all(network, monkeypatch):
    engine = trt.SlotEngine(endless(network), slots=2)
    with Streams(engine) as streams:
        began = threading.Event()
        futures = [streams.submit(number(1), lambda _: began.set()), streams.submit(number(2))]
        assert began.wait(SECONDS)

        def failing():
            raise MemoryError("no memory")

        with monkeypatch.context() as patch:
            patch.setattr(engine, "step", failing)
            for future in futures:
                with pytest.raises(MemoryError):
                    future.result(SECONDS)
        rows = streams.rows(number(3))
        assert int(next(rows)["all"]) == 3
        rows.close()


def test_inputs_that_do_not_fit_are_refused_before_the_queue(network):
    with Streams(trt.SlotEngine(doubling(network))) as streams:
        with pytest.raises(trt.InputError, match="NL602"):
            streams.submit({})
        with pytest.raises(trt.InputError, match="NL603"):
            streams.rows(x=np.float32(1))
        with pytest.raises(TypeError, match="and not both"):
            streams(number(1), x=1)
        assert streams.metrics().accepted == 0


def test_another_engine_takes_the_requests_that_follow(network):
    with Streams(trt.SlotEngine(doubling(network), slots=1)) as streams:
        old = streams.rows(number(1))
        assert int(next(old)["all"]) == 1
        streams.reload(trt.SlotEngine(doubling(trt.INetworkDefinition(), 3)))
        assert [int(row["all"]) for row in streams.rows(number(1))] == doubled(1, 3)[0]
        assert [int(rows["all"]) for rows in old] == doubled(1)[0][1:]
        with pytest.raises(trt.NetworkError, match="NL646"):
            streams.reload(trt.SlotEngine(endless(trt.INetworkDefinition())))
