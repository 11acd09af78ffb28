"""Requests of many callers as batched calls of an engine."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import netloop as trt
from netloop.serve import Closed, Overloaded, Server, TimedOut
from tests.support.networks import WHILE, combine, constant, last, mark
from tests.tools.serve.test_sequences import SECONDS, Gate, Time

Op = trt.ElementWiseOperation


def affine(network, factor=2):
    """Rows [3] of int32 times a factor, which must all be less than 100."""
    x = network.add_input("x", trt.int32, (-1, 3))
    weights = network.add_constant((1, 1), np.full((1, 1), factor, np.float32)).get_output(0)
    product = network.add_elementwise(network.add_cast(x, trt.float32).get_output(0), weights, Op.PROD).get_output(0)
    return mark(network, y=product)


def limited(network):
    """Rows [] of int32 that must be less than 100."""
    x = network.add_input("x", trt.int32, (-1,))
    less = combine(network, x, constant(network, [100], np.int32), Op.LESS)
    every = network.add_reduce(network.add_cast(less, trt.int32).get_output(0), trt.ReduceOperation.MIN, 1, False)
    network.add_assertion(network.add_cast(every.get_output(0), trt.bool).get_output(0), "100 or more")
    return mark(network, y=combine(network, x, constant(network, [1], np.int32)))


def rows(*values):
    return {"x": np.array([[value] * 3 for value in values], np.int32)}


def test_requests_of_many_threads_get_their_own_rows(network):
    with Server(trt.compile(affine(network)), (1, 4, 16)) as server:
        inputs = [rows(*range(count, count + 1 + count % 5)) for count in range(200)]
        with ThreadPoolExecutor(32) as pool:
            found = [*pool.map(server, inputs)]

        for given, made in zip(inputs, found, strict=True):
            np.testing.assert_array_equal(made["y"], 2 * given["x"])
        assert server.metrics().completed == 200


def test_requests_that_wait_share_a_call(network):
    with Server(trt.compile(affine(network)), (1, 4, 16)) as server:
        gate = Gate(server)
        futures = [server.submit(rows(0))]
        assert gate.reached.wait(SECONDS)
        futures += [server.submit(rows(index)) for index in range(1, 13)]
        gate.open()

        assert [future.result(SECONDS)["y"][0, 0] for future in futures] == [2 * index for index in range(13)]
        assert server.metrics().calls == 2
        assert server.metrics().batch_size == 6.5


def test_a_full_queue_refuses_at_once(network):
    with Server(trt.compile(affine(network)), queue=1) as server:
        gate = Gate(server)
        running = server.submit(rows(1))
        assert gate.reached.wait(SECONDS)
        waiting = server.submit(rows(2))
        with pytest.raises(Overloaded, match="NL641: 1 of at most 1 requests wait in the queue"):
            server(rows(3))
        gate.open()

        assert running.result(SECONDS)["y"][0, 0] == 2
        assert waiting.result(SECONDS)["y"][0, 0] == 4
        assert (server.metrics().accepted, server.metrics().refused) == (2, 1)


def test_a_request_whose_time_is_over_is_not_run(network):
    clock = Time()
    with Server(trt.compile(affine(network)), clock=clock) as server:
        gate = Gate(server)
        running = server.submit(rows(1))
        assert gate.reached.wait(SECONDS)
        late, later = server.submit(rows(2), timeout=1), server.submit(rows(3), timeout=3)
        clock.now = 2
        gate.open()

        with pytest.raises(TimedOut, match="NL642"):
            late.result(SECONDS)
        assert later.result(SECONDS)["y"][0, 0] == 6
        assert running.result(SECONDS)["y"][0, 0] == 2
        assert server.metrics().timed_out == 1


def test_a_caller_does_not_wait_for_a_call_that_takes_too_long(network):
    with Server(trt.compile(affine(network)), timeout=0.01) as server:
        gate = Gate(server)
        with pytest.raises(TimedOut, match="NL642: a request has no result in time"):
            server(rows(1))
        gate.open()


def test_an_error_reaches_its_own_caller_only(network):
    with Server(trt.compile(limited(network)), (1, 8)) as server:
        gate = Gate(server)
        futures = [server.submit({"x": np.int32([0])})]
        assert gate.reached.wait(SECONDS)
        futures += [server.submit({"x": np.int32([number])}) for number in (1, 100, 3)]
        gate.open()

        assert futures[1].result(SECONDS)["y"] == 2
        with pytest.raises(trt.ExecutionError, match="100 or more"):
            futures[2].result(SECONDS)
        assert futures[3].result(SECONDS)["y"] == 4
        assert server.metrics().failed == 1


def test_an_engine_is_replaced_between_calls(network):
    with Server(trt.compile(affine(network))) as server:
        assert server(rows(5))["y"][0, 0] == 10
        server.reload(trt.compile(affine(trt.INetworkDefinition(), 3)))
        assert server(rows(5))["y"][0, 0] == 15
        with pytest.raises(trt.NetworkError, match="NL646: the inputs of the new engine are"):
            server.reload(trt.compile(limited(trt.INetworkDefinition())))
        assert server(rows(5))["y"][0, 0] == 15


def test_wrong_rows_are_refused_before_the_queue(network):
    with Server(trt.compile(affine(network))) as server:
        with pytest.raises(trt.InputError, match="NL615: the rows of a request: 'x' has 0"):
            server(x=np.zeros((0, 3), np.int32))
        with pytest.raises(trt.InputError, match="NL603"):
            server(x=np.zeros((2, 4), np.int32))
        assert server.metrics().accepted == 0


def test_metrics_are_text_for_prometheus(network):
    with Server(trt.compile(affine(network))) as server:
        server(rows(1))
        lines = dict(splitline.split() for splitline in server.metrics().as_text().splitlines())

    assert lines["netloop_serve_completed"] == "1"
    assert float(lines["netloop_serve_p99"]) >= float(lines["netloop_serve_median"]) > 0


def test_a_closed_server_refuses(network):
    with Server(trt.compile(affine(network))) as server:
        pass
    with pytest.raises(Closed, match="NL644: the service is closed"):
        server(rows(1))
    assert not [thread for thread in threading.enumerate() if thread is server._thread]


# ---------------------------------------------------------------------------- without rows, and shared inputs


def scaled(network):
    """Rows [2] of float32 times a number, which all rows share."""
    x, factor = network.add_input("x", trt.float32, (-1, 2)), network.add_input("factor", trt.float32, (1, 1))
    return mark(network, y=combine(network, x, factor, Op.PROD))


def of_scaled(value, factor):
    return {"x": np.full((1, 2), value, np.float32), "factor": np.full((1, 1), factor, np.float32)}


def test_requests_with_equal_shared_inputs_share_a_call(network):
    with Server(trt.compile(scaled(network)), (1, 4), shared=["factor"]) as server:
        gate = Gate(server)
        futures = [server.submit(of_scaled(1, 1))]
        assert gate.reached.wait(SECONDS)
        futures += [server.submit(of_scaled(index, factor)) for index in (1, 2) for factor in (10, 20)]
        gate.open()

        assert [future.result(SECONDS)["y"].tolist() for future in futures] == [
            [[value] * 2] for value in (1, 10, 20, 20, 40)
        ]
        assert server.metrics().calls == 3


def test_without_sizes_each_request_is_a_call_of_any_shape(network):
    network.add_input("n", trt.int32, ())
    x = network.add_input("x", trt.float32, (2, 3))
    mark(network, y=network.add_shuffle(x).get_output(0), z=combine(network, x, x))
    with Server(trt.compile(network), ()) as server:
        gate = Gate(server)
        inputs = {"n": np.int32(1), "x": np.arange(6, dtype=np.float32).reshape(2, 3)}
        futures = [server.submit(inputs) for _ in range(3)]
        gate.open()

        for future in futures:
            np.testing.assert_array_equal(future.result(SECONDS)["z"], 2 * inputs["x"])
        assert server.metrics().calls == 3
        with pytest.raises(trt.InputError, match="NL603"):
            server(n=np.int32(1), x=np.zeros((3, 2), np.float32))


def test_programs_are_compiled_ahead_without_a_call(network):
    """A call with zeros would never end."""
    x = network.add_input("x", trt.int64, (-1,))
    loop = network.add_loop()
    now = loop.add_recurrence(x)
    most = network.add_reduce(now.get_output(0), trt.ReduceOperation.MAX, 1, False).get_output(0)
    loop.add_trip_limit(combine(network, most, 100, Op.LESS), WHILE)
    now.set_input(1, combine(network, now.get_output(0), now.get_output(0)))
    engine = trt.compile(mark(network, y=last(loop, now.get_output(0))))
    with Server(engine, (1,)) as server:
        server.compile({"x": np.zeros(1, np.int64)})
        assert engine.program_count == 1
        assert server(x=np.array([7]))["y"].tolist() == [112]
        assert engine.program_count == 1
