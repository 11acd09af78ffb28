"""Programs that are made of an engine's network have the engine's passes, their forms, and its largest trip count."""

import jax
import numpy as np
import pytest

import netloop as trt
from netloop.api.build_options import BuildOptions
from netloop.compiler.passes import PASSES
from netloop.compiler.passes.gate_fusion import APART
from netloop.compiler.passes.rewriter import Rewriter
from netloop.compiler.tuning import this_machine
from netloop.serve import Sequences
from netloop.tools.serve.hosting import service_of
from tests.support.generators import generator
from tests.support.networks import combine, constant, count_is_an_input, counted, counter, mark, stacked

NONE = trt.MatrixOperation.NONE


@pytest.fixture
def forms(monkeypatch):
    """The forms in which gate fusion is applied."""
    asked = []

    def rewrite(self, rewriter: Rewriter):
        asked.append(rewriter.form)
        return False

    monkeypatch.setattr(type(PASSES["gate_fusion"]), "rewrite", rewrite)
    return asked


def tuned(network, **options):
    """An engine of which tuning chose a form."""
    return trt.ICudaEngine(network, BuildOptions(forms=(("gate_fusion", APART),), tuned_on=this_machine(), **options))


def adding(network):
    s, x = network.add_input("s", trt.int64, ()), network.add_input("x", trt.int64, ())
    return mark(network, sn=combine(network, s, x))


def unrolled(network):
    """A step with a loop of five iterations, which is unrolled."""
    s = network.add_input("s", trt.float32, (2,))
    loop = counted(network, 5)
    state = loop.add_recurrence(s)
    state.set_input(1, combine(network, state.get_output(0), constant(network, np.float32([1, 2]))))
    return mark(network, sn=loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0))


def test_steps_of_sequences_have_the_forms_of_their_engine(network, forms):
    engine = tuned(adding(network))
    forms.clear()
    with Sequences(engine, {"s": "sn"}):
        assert forms == [APART]


def test_lowering_of_steps_has_the_forms_of_their_engine(network):
    options = BuildOptions(forms=(("loop_unrolling", "unroll_2"),), tuned_on=this_machine())
    with Sequences(trt.ICudaEngine(unrolled(network), options), {"s": "sn"}, slots=1, sizes=[1]) as sequences:
        sequences.compile()
        notes = [*map(str, sequences.notes)]

    assert [note for note in notes if "2 iterations of " in note]


@pytest.mark.parametrize("make", [trt.SlotEngine, lambda engine: service_of(engine, stream=True)])
def test_slots_have_the_forms_of_their_engine(forms, make):
    engine = tuned(generator())
    forms.clear()
    make(engine)

    assert forms == [APART]


def test_slots_have_the_passes_and_the_largest_trip_count_of_their_engine():
    passes = ["loop_fission", "carry_layout"]  # the second is for single rows
    slots = trt.SlotEngine(trt.compile(count_is_an_input(), passes=passes, max_trips=2))

    with pytest.raises(trt.ExecutionError, match="executes more than 2 iterations"):
        slots.submit({"n": np.int32(3)}).result()
    assert {note.by for note in slots.notes} <= {"loop_fission"}


def test_slots_take_other_passes_than_those_of_their_engine(forms):
    engine = tuned(generator())
    forms.clear()
    trt.SlotEngine(engine, passes=["gate_fusion"])

    assert forms == ["rule"]


def test_notes_of_slots_have_those_of_lowering(network):
    unrolled(network)
    loop = counted(network, network.add_input("n", trt.int32, ()))
    mark(network, y=stacked(loop, counter(network, loop), constant(network, 4, np.int32)))
    slots = trt.SlotEngine(network)
    slots.submit({"s": np.zeros(2, np.float32), "n": np.int32(3)}).result()

    assert [note.what for note in slots.notes if note.by == "loop_unrolling"]


def test_passes_of_a_mesh_are_those_of_its_devices(network, monkeypatch):
    x, weights = network.add_input("x", trt.float32, (1, 512)), constant(network, np.ones((512, 512), np.float32))
    mark(network, y=network.add_matrix_multiply(x, NONE, weights, NONE).get_output(0))
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    engine = trt.shard(network, jax.make_mesh((1,), ("rows",), devices=jax.devices("cpu")[:1]), in_specs={})
    engine({"x": np.ones((1, 512), np.float32)})

    assert "weight_prepacking" in {note.by for note in engine.notes}
