"""Launches are counted from the text of a program; with the CUDA plugin of JAX, programs are compiled for an H100."""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import netloop as trt
from benchmarks import h100, launches
from benchmarks.workloads import WORKLOADS
from netloop.model.layers.lax_forms import quotient
from tests.support import networks

TEXT = """HloModule jit_f, is_scheduled=true

%fused_add (p: s32[]) -> s32[] {
  %p = s32[] parameter(0)
  %c = s32[] constant(1)
  ROOT %add.1 = s32[] add(%p, %c)
}

%body.1 (arg.1: (s32[], f32[4])) -> (s32[], f32[4]) {
  %arg.1 = (s32[], f32[4]{0}) parameter(0)
  %g.0 = s32[] get-tuple-element(%arg.1), index=0
  %g.1 = f32[4]{0} get-tuple-element(%arg.1), index=1
  %loop_add_fusion = s32[] fusion(%g.0), kind=kLoop, calls=%fused_add
  %gemm.1 = (f32[4]{0}, s8[64]{0}) custom-call(%g.1, %g.1), custom_call_target="__cublas$gemm"
  %w.1 = f32[4]{0} get-tuple-element(%gemm.1), index=0
  ROOT %t = (s32[], /*index=1*/f32[4]{0}) tuple(%loop_add_fusion, %w.1)
}

%condition.1 (arg.2: (s32[], f32[4])) -> pred[] {
  %arg.2 = (s32[], f32[4]{0}) parameter(0)
  %g.2 = s32[] get-tuple-element(%arg.2), index=0
  ROOT %wrapped_compare = pred[] fusion(%g.2), kind=kLoop, calls=%wrapped_compare_computation
}

%command_buffer (p.4: f32[4]) -> f32[4] {
  %p.4 = f32[4]{0} parameter(0)
  %copy.1 = f32[4]{0} copy(%p.4)
  ROOT %copy.2 = f32[4]{0} copy(%copy.1)
}

%branch.1 (p.5: f32[4]) -> f32[4] {
  ROOT %p.5 = f32[4]{0} parameter(0)
}

%branch.2 (p.6: f32[4]) -> f32[4] {
  %p.6 = f32[4]{0} parameter(0)
  ROOT %sort.1 = f32[4]{0} sort(%p.6), dimensions={0}, to_apply=%compare
}

ENTRY %main.1 (x: f32[4], b: pred[]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %b = pred[] parameter(1)
  %space = s8[64]{0} custom-call(), custom_call_target="AllocateBuffer"
  %call = f32[4]{0} call(%x), to_apply=%command_buffer
  %c.0 = s32[] constant(0)
  %t.1 = (s32[], f32[4]{0}) tuple(%c.0, %call)
  %while.1 = (s32[], f32[4]{0}) while(%t.1), condition=%condition.1, body=%body.1KNOWN
  %g.3 = f32[4]{0} get-tuple-element(%while.1), index=1
  ROOT %cond = f32[4]{0} conditional(%b, %g.3, %g.3), branch_computations={%branch.1, %branch.2}
}
"""
OPEN, COUNTED = (TEXT.replace("KNOWN", text) for text in ("", ', backend_config={"known_trip_count":{"n":"9"}}'))


def test_launches_are_those_of_each_place():
    places = [(place.kind, place.name, place.inside, dict(place.kernels)) for place in h100.launches(OPEN)]

    assert places == [
        ("entry", "main.1", "", {"graph": 1}),
        ("graph", "command_buffer", "main.1", {"copy": 2}),
        ("body", "body.1", "main.1", {"fusion": 1, "custom-call": 1}),
        ("condition", "condition.1", "body.1", {"fusion": 1}),
        ("branch", "branch.1", "main.1", {}),
        ("branch", "branch.2", "main.1", {"sort": 1}),
    ]


@pytest.mark.parametrize(("text", "number"), [(OPEN, 3), (COUNTED, 2)])
def test_iteration_launches_its_body_and_the_condition_of_a_loop_that_is_not_counted(text, number):
    assert h100.per_iteration(text) == {"body.1": number}


@pytest.mark.parametrize(("text", "number"), [(OPEN, None), (COUNTED, 1 + 9 * 2 + 1)])
def test_run_launches_the_bodies_of_counted_loops_as_often_as_they_run(text, number):
    assert h100.total(text) == number


# ---------------------------------------------------------------------------- with the plugin

with_plugin = pytest.mark.skipif(
    not h100.is_there() or "JAX_SKIP_CUDA_CONSTRAINTS_CHECK" not in os.environ,
    reason="it needs the extra cuda13, and JAX_SKIP_CUDA_CONSTRAINTS_CHECK=1",
)


@with_plugin
def test_recurrence_of_jax_launches_the_same_kernels_in_each_iteration():
    def recurrence(x, w):
        return lax.scan(lambda h, row: (jnp.tanh(h @ w + row),) * 2, jnp.zeros(512), x)[1]

    text = h100.compiled(recurrence, np.zeros((128, 512), np.float32), np.zeros((512, 512), np.float32)).as_text()
    (number,) = h100.per_iteration(text).values()

    assert 3 <= number <= 6


@with_plugin
def test_engine_has_a_program_for_the_card_and_runs_here():
    with h100.programs_are_compiled_for_it() as programs:
        y = trt.compile(networks.count_is_an_input())({"n": np.int32(3)})["y"]

    assert y == 8
    assert len(programs) == 1
    assert len(h100.per_iteration(programs[0].as_text())) == 1


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
    "W1 LSTM 512 batch 1": 3.1 * 128,
    "W1 LSTM 512 batch 16": 3.1 * 128,
    "W1 GRU 512 batch 1": 2.4 * 128,
    "W4 running sum 4096 x 256": 12,
    "W8 selective scan 1 x 256 x 16, 1024 steps": 12,
    "W8 selective scan 4 x 256 x 16, 1024 steps": 12,
    "W3 Newton 100000 iterations": 2 * 100_000 / 64 + 10,
}
"""The most launches of a call of workloads."""


@with_plugin
@pytest.mark.parametrize("name", MOST)
def test_loops_have_few_launches(name):
    (workload,) = (workload for workload in WORKLOADS if workload.name == name)
    netloop = next(launches.measured(workload))

    assert netloop.variant == "netloop"
    assert netloop.total <= MOST[name]
