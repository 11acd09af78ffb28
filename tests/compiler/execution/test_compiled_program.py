"""Compilation of long, deep and large networks, and weights as arguments of programs."""

import sys
import time

import jax
import numpy as np
import pytest

import netloop as trt
from tests.support.devices import only_on_cpus
from tests.support.networks import (
    F,
    chain,
    chain_in_loop,
    combine,
    constant,
    counted,
    counter,
    deep,
    last,
    mark,
    running_sum,
    stacked,
)


def test_weights_are_arguments_of_the_program(network, monkeypatch):
    texts = []
    lower = jax.stages.Lowered.compile
    monkeypatch.setattr(
        jax.stages.Lowered, "compile", lambda self, **named: texts.append(self.as_text()) or lower(self, **named)
    )
    big = constant(network, np.arange(300_000, dtype=np.float32))
    whole = constant(network, np.ones((300, 1000), np.float32))
    loop = counted(network, 3)
    state = loop.add_recurrence(big)
    state.set_input(1, combine(network, state.get_output(0), big))
    turned = network.add_matrix_multiply(whole, trt.MatrixOperation.TRANSPOSE, whole, trt.MatrixOperation.NONE)
    trt.compile(mark(network, y=last(loop, state.get_output(0)), z=turned.get_output(0)))

    assert len(texts) == 2  # the weights that are folded, and the program
    assert max(map(len, texts)) < 20_000


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


@only_on_cpus("a GPU launches kernels in each iteration, and one of unknown number waits for each")
@pytest.mark.parametrize("count", ["constant", "input"])
def test_million_iterations(network, count):
    trips = 10**6
    loop = counted(network, trips if count == "constant" else network.add_input("n", trt.int32, ()))
    mark(network, y=last(loop, counter(network, loop)))
    engine = trt.compile(network)
    inputs = {} if count == "constant" else {"n": np.int32(trips)}
    start = time.perf_counter()
    got = int(engine(inputs)["y"])

    assert got == trips
    assert time.perf_counter() - start < 60  # iterations on the host take minutes


def test_iterations_of_a_long_scan_take_no_memory(network):
    loop = counted(network, 2**31 - 1)
    mark(network, y=last(loop, counter(network, loop)))
    engine = trt.compile(network)
    kept = engine.executable._programs.latest

    assert kept.compiled.memory_analysis().temp_size_in_bytes < 10_000


@pytest.mark.parametrize("loops", [20, 100])
def test_loops_in_each_other(loops):
    assert int(trt.compile(deep(loops, 1))({"x": np.int64(5)})["y"]) == 6


def test_more_than_a_hundred_loops_in_each_other_are_refused():
    with pytest.raises(trt.NetworkError, match="NL502") as caught:
        trt.compile(deep(101, 1))

    (found,) = caught.value.findings
    assert found.what == "'(Unnamed Loop* 100)' is inside 100 other loops and conditionals"


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


def test_network_that_cannot_fail_has_no_error_flag():
    engine = trt.compile(running_sum())
    program = engine.executable._programs.latest

    assert program.program.errors.findings == []


def test_rows_enough_for_a_known_count_cannot_fail(network):
    loop = counted(network, 3)
    mark(network, y=stacked(loop, counter(network, loop), constant(network, 4, np.int32)))
    program = trt.compile(network).executable._programs.latest

    assert program.program.errors.findings == []
