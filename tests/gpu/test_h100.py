"""With the CUDA plugin of JAX, programs are compiled for an H100, and engines know their launches."""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import netloop as trt
from benchmarks import h100, launches
from benchmarks.workloads import WORKLOADS
from netloop.compiler.launches import Launches
from netloop.compiler.xla_compilation import compiler_options
from netloop.model.layers.lax_forms import quotient
from tests.support import networks

with_plugin = pytest.mark.skipif(
    not h100.is_there() or "JAX_SKIP_CUDA_CONSTRAINTS_CHECK" not in os.environ,
    reason="it needs the extra cuda13, and JAX_SKIP_CUDA_CONSTRAINTS_CHECK=1",
)


@with_plugin
def test_recurrence_of_jax_launches_the_same_kernels_in_each_iteration():
    def recurrence(x, w):
        return lax.scan(lambda h, row: (jnp.tanh(h @ w + row),) * 2, jnp.zeros(512), x)[1]

    text = h100.compiled(recurrence, np.zeros((128, 512), np.float32), np.zeros((512, 512), np.float32)).as_text()
    (loop,) = Launches.of(text).loops

    assert 3 <= loop.launches <= 6
    assert loop.iterations == 128


@with_plugin
def test_engine_has_a_program_for_the_card_and_runs_here():
    with h100.programs_are_compiled_for_it() as programs:
        engine = trt.compile(networks.count_is_an_input())
        y = engine({"n": np.int32(3)})["y"]
        launches = engine.launches

    assert y == 8
    assert len(programs) == 1
    assert launches == Launches.of(programs[0].as_text())
    assert launches.total is None
    assert len(launches.loops) == 1


@with_plugin
def test_quotients_are_not_those_that_are_off_by_two_ulps():
    x = np.zeros(4, np.float32)
    text = h100.compiled(lambda a, b: quotient(jnp, a, b), x, x).as_text()

    assert "f64[4]{0} divide(" in text


@with_plugin
def test_softmax_of_int4_is_compiled_without_the_fusion_that_xla_refuses():
    x = np.zeros((4, 6), jnp.int4)

    assert "__triton" not in h100.compiled(lambda x: jax.nn.softmax(x.astype(np.float32), 1), x).as_text()


MOST = {
    "W1 LSTM 512 batch 1": 2.4 * 128,
    "W1 LSTM 512 batch 16": 2.4 * 128,
    "W1 GRU 512 batch 1": 2.4 * 128,
    "W4 running sum 4096 x 256": 12,
    "W8 selective scan 1 x 256 x 16, 1024 steps": 12,
    "W8 selective scan 4 x 256 x 16, 1024 steps": 12,
    "W3 Newton 100000 iterations": 1,
    "W3 eight floats 100000 iterations": 1,
    "W3 Newton stacked 100000 iterations": 1,
    "W3 Collatz 100000 iterations": 1,
    "W5 nested 64 x 64": 1,
    "W7 conditional, cheap branches": 1,
    "W7 conditional, an expensive branch in 8": 1,
}
"""The most launches of a call of workloads."""


@with_plugin
@pytest.mark.parametrize("name", MOST)
def test_loops_have_few_launches(name):
    (workload,) = (workload for workload in WORKLOADS if workload.name == name)
    netloop = next(launches.measured(workload))

    assert netloop.variant == "netloop"
    assert netloop.total <= MOST[name]


MOST_OF_AN_ITERATION = {
    "W6 greedy search": 10,
    "W6 beam search of 4": 12,
    "W9 decoder of 2 x 256, 128 tokens": 33,
}
"""The most launches of an iteration of workloads whose number of iterations the run decides."""


@with_plugin
@pytest.mark.parametrize("name", MOST_OF_AN_ITERATION)
def test_iterations_of_searches_and_decoders_have_few_launches(name):
    (workload,) = (workload for workload in WORKLOADS if workload.name == name)
    netloop = next(launches.measured(workload))

    assert netloop.variant == "netloop"
    assert netloop.loops <= [MOST_OF_AN_ITERATION[name]]


@with_plugin
@pytest.mark.parametrize("name", MOST_OF_AN_ITERATION)
def test_searches_and_decoders_are_one_graph_with_their_loop(name, tmp_path, monkeypatch):
    (workload,) = (workload for workload in WORKLOADS if workload.name == name)
    dump = {"xla_dump_to": str(tmp_path)}
    monkeypatch.setattr(h100, "compiler_options", lambda nest: compiler_options(nest) | dump)
    launches.of_engine(workload.network(), frozenset(trt.PASSES), workload.inputs())
    (plan,) = [
        path.read_text()
        for path in tmp_path.glob("*thunk_sequence_after_thunk_passes.txt")
        if "kWhile" in path.read_text()
    ]

    # every other line of the program is indented, and so inside of the graph
    assert [line[:19] for line in plan.splitlines() if line[:1].isdigit()] == ["000: kCommandBuffer"]
