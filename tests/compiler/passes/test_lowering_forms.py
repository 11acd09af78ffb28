"""What passes that are forms of lowering allow."""

from types import SimpleNamespace

import numpy as np
import pytest

import netloop as trt
from netloop.compiler import xla_compilation
from netloop.compiler.host import padded_pieces
from netloop.compiler.lower import weight_folding
from netloop.compiler.lower.loop import fission, prefix_scan, unroll_heuristic
from netloop.compiler.lower.loop.kernel import conversion, interpreter
from netloop.compiler.passes import PASSES, LoweringForm, LoweringPass
from netloop.compiler.xla_compilation import GRAPHS_OF_ANY_SIZE, GRAPHS_WITH_LOOPS, compiler_options
from netloop.values import types
from tests.support.cells import gru, lstm
from tests.support.networks import Op, combine, conditional_in_loop, constant, last, mark, stacked
from tests.support.pass_checks import assert_close, inputs_of

pytestmark = pytest.mark.usefixtures("low_thresholds")


RULES = {
    LoweringForm.WEIGHT_FOLDING: [f"{weight_folding.SMALLEST >> 10} KiB", f"{weight_folding.MOST_GROWTH} times"],
    LoweringForm.LOOP_FISSION: [f"{fission.CHUNK >> 20} MiB", f"{fission.CACHED >> 20} MiB"],
    LoweringForm.IF_CONVERSION: [
        f"{unroll_heuristic.MOST_ELEMENTS} elements",
        f"at most {unroll_heuristic.MOST_OF_A_GPU:,}",
    ],
    LoweringForm.LOOP_UNROLLING: [
        f"{unroll_heuristic.FACTORS[0]} iterations",
        f"{unroll_heuristic.MOST_WORK} elements",
        f"{unroll_heuristic.KERNEL_FACTORS[0]} iterations",
        f"{unroll_heuristic.MOST_IN_A_KERNEL} layers",
        f"up to {unroll_heuristic.LAUNCH_FACTORS[0]}",
        f"{unroll_heuristic.MOST_UNROLLED} layers",
    ],
    LoweringForm.LOOP_KERNELS: [
        f"{conversion.FEWEST_ITERATIONS} iterations",
        f"{interpreter.MOST_BYTES >> 10} KiB",
        f"{conversion.MOST_NUMBERS:,} numbers",
    ],
    LoweringForm.BUCKETING: [f"met {padded_pieces.FEW} times"],
    LoweringForm.PREFIX_SCAN: [f"{prefix_scan.FEWEST_TRIPS} iterations", f"{prefix_scan.MOST_BYTES >> 30} GiB"],
}
"""The thresholds of lowering, as rules say them."""


def test_every_form_has_a_pass_of_its_name():
    forms = {name: pass_ for name, pass_ in PASSES.items() if isinstance(pass_, LoweringPass)}

    assert set(forms) == set(LoweringForm)


@pytest.mark.parametrize("form", RULES)
def test_rule_has_the_thresholds_of_lowering(form):
    assert all(rule in PASSES[form].rule for rule in RULES[form])


def test_input_is_multiplied_before_the_loop_and_the_output_after_it():
    network = gru(trips=5)
    engine = trt.compile(network)
    moved = engine.batched_layers["(Unnamed Loop* 0)"]

    assert sum(isinstance(layer, trt.IMatrixMultiplyLayer) for layer in moved) == 2


def test_parts_of_a_product_are_cut_out_before_the_loop():
    moved = trt.compile(gru(), passes=["horizontal_fusion", "loop_fission"]).batched_layers["(Unnamed Loop* 0)"]

    # z, r and n each read a part of the product of the input
    assert sum(isinstance(layer, trt.ISliceLayer) for layer in moved) == 3


@pytest.fixture
def four_iterations_at_once(monkeypatch):
    for name, limit in {"SMALLEST_PRODUCT": 1, "CACHED": 1, "CHUNK": 4 * 3 * 12 * 4}.items():
        monkeypatch.setattr(fission, name, limit)


@pytest.mark.parametrize("trips", [4, 7, 8, 9])
def test_chunks_of_iterations_give_the_same_results(trips, four_iterations_at_once):
    network = gru(trips=trips)
    (loop,) = network.loops
    (state,) = loop.boundary(trt.IRecurrenceLayer)
    mark(network, h=last(loop, state.get_output(0)))
    inputs = inputs_of(network)
    engine = trt.compile(network)

    assert any("iterations at once" in str(note) for note in engine.notes)
    assert_close(engine(inputs), trt.evaluate(network, inputs))


def test_chunks_of_sub_byte_types_are_joined(four_iterations_at_once):
    network, dtype = gru(trips=9), types.NUMPY_TYPES[trt.DataType.INT2]
    (loop,) = network.loops
    before = loop.add_recurrence(constant(network, [1, 1], dtype))
    before.set_input(1, loop.add_iterator(network.add_input("codes", trt.DataType.INT2, (9, 2))).get_output(0))
    mark(network, before=stacked(loop, before.get_output(0), constant(network, 9, np.int32)))
    codes = np.arange(18).reshape(9, 2).astype(dtype)

    found = trt.compile(network)({"x": inputs_of(gru(trips=9))["x"], "codes": codes})
    assert found["before"].astype(int).tolist() == [[1, 1], *codes[:-1].astype(int).tolist()]


def test_conditional_with_small_branches_is_not_compiled_as_one():
    programs = [trt.compile(conditional_in_loop(), passes=passes) for passes in (None, [])]
    texts = [program.executable._programs.latest.compiled.as_text() for program in programs]

    assert ["conditional(" in text for text in texts] == [False, True]


def test_refit_recomputes_folded_weights():
    network = lstm()
    engine = trt.compile(network)
    refitter = trt.Refitter(engine, trt.Logger())
    names = [weight for weight in refitter.get_all_weights() if refitter.get_weights_prototype(weight).size == 12]
    for name in names:
        assert refitter.set_named_weights(name, np.zeros(12, np.float32))
    constants = [layer for layer in network.layers if isinstance(layer, trt.IConstantLayer)]
    for other in constants:
        if other.weights.size == 12:
            other.weights = np.zeros(12, np.float32)
    inputs = inputs_of(network)

    assert refitter.refit_cuda_engine()
    assert_close(engine(inputs), trt.evaluate(network, inputs))


# ---------------------------------------------------------------------------- GPUs


@pytest.fixture
def for_a_gpu(monkeypatch):
    monkeypatch.setattr("jax.default_backend", lambda: "gpu")


def selected(elements):
    """One of two branches of one layer each, by an input."""
    network = trt.INetworkDefinition()
    x, choice = network.add_input("x", trt.float32, (elements,)), network.add_if_conditional()
    choice.set_condition(network.add_input("c", trt.bool, ()))
    ways = (
        network.add_activation(x, kind).get_output(0) for kind in (trt.ActivationType.TANH, trt.ActivationType.RELU)
    )
    return mark(network, y=choice.add_output(*ways).get_output(0))


@pytest.mark.parametrize(
    ("elements", "number"), [(unroll_heuristic.MOST_OF_A_GPU, 1), (unroll_heuristic.MOST_OF_A_GPU + 1, 0)]
)
def test_larger_branches_are_selected_on_gpus(elements, number, for_a_gpu):
    assert len(trt.compile(selected(elements)).notes) == number


def test_branches_of_that_size_stay_branches_on_cpus():
    assert trt.compile(selected(unroll_heuristic.MOST_OF_A_GPU)).notes == []


def test_products_move_out_of_loops_of_gpus_without_chunks(four_iterations_at_once, for_a_gpu):
    notes = [str(note) for note in trt.compile(gru(trips=9), passes=["loop_fission"]).notes]

    assert len(notes) == 1
    assert "run for 9 iterations at once" in notes[0]


def options_of(platform, longest_body, has_loop_graphs=False):
    return compiler_options(
        SimpleNamespace(platform=platform, longest_body=longest_body, has_loop_graphs=has_loop_graphs)
    )


def test_loops_of_gpus_are_graphs_of_any_size():
    assert options_of("gpu", 1) == GRAPHS_OF_ANY_SIZE
    assert options_of("gpu", 1, True) == GRAPHS_OF_ANY_SIZE | GRAPHS_WITH_LOOPS
    assert options_of("gpu", 0) == options_of("cpu", 1) == options_of("cpu", 1, True) == {}


def repeated(has_product, is_open):
    """A loop of a product, or of tanh, that ends by a WHILE or after five iterations."""
    network = trt.INetworkDefinition()
    loop = network.add_loop()
    loop.name = "loop"
    state = loop.add_recurrence(network.add_input("x", trt.float32, (1, 3)))
    present = state.get_output(0)
    if is_open:
        largest = network.add_reduce(present, trt.ReduceOperation.MAX, 3, False).get_output(0)
        loop.add_trip_limit(combine(network, largest, np.float32(0.1), Op.GREATER), trt.TripLimit.WHILE)
    else:
        loop.add_trip_limit(constant(network, 5, np.int32), trt.TripLimit.COUNT)
    square = constant(network, np.eye(3, dtype=np.float32) / 2)
    none = trt.MatrixOperation.NONE
    following = (
        network.add_matrix_multiply(present, none, square, none)
        if has_product
        else network.add_activation(present, trt.ActivationType.TANH)
    )
    state.set_input(1, following.get_output(0))
    return mark(network, y=last(loop, present))


@pytest.mark.parametrize("has_product", [False, True])
@pytest.mark.parametrize("is_open", [False, True])
def test_loops_of_products_and_unknown_length_are_part_of_a_graph(has_product, is_open, for_a_gpu, monkeypatch):
    options = list[dict[str, object]]()
    monkeypatch.setattr(xla_compilation, "compiler_options", lambda nest: options.append(compiler_options(nest)) or {})
    network = repeated(has_product, is_open)
    notes = [str(note) for note in trt.compile(network).notes]
    without = trt.compile(network, passes=[name for name in trt.PASSES if name != "loop_graphs"])
    is_one = has_product and is_open

    assert ("loop_graphs: 'loop' is part of a CUDA graph" in notes) is is_one
    assert [GRAPHS_WITH_LOOPS.items() <= value.items() for value in options] == [is_one, False]
    assert "loop_graphs" not in {note.by for note in without.notes}


def test_loops_of_cpus_are_part_of_no_graph():
    assert "loop_graphs" not in {note.by for note in trt.compile(repeated(True, True)).notes}
