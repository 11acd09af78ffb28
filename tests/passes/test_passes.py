"""A pass changes how a network is computed, and not what."""

import json
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from netloop.check import require_valid
from netloop.lower.loop import fission
from netloop.nest import live_layers
from netloop.passes import PASSES, improve
from netloop.passes.gate_fusion import GatesLayer
from netloop.passes.weight_prepacking import FromLeftLayer
from tests.support.cells import (
    attention,
    by_number,
    embedded,
    gru,
    heads,
    kept,
    lstm,
    noisy,
    read_once_more,
    remembered,
    selective,
    written,
)
from tests.support.networks import chain_in_loop, conditional_in_loop, constant, counted, counter, mark, stacked

NETWORKS = {
    "lstm": lstm,
    "lstm of a batch": lambda: lstm(batch=3),
    "lstm of a larger batch": lambda: lstm(batch=8),
    "gru of a larger batch": lambda: gru(batch=9),
    "gru": gru,
    "gru whose input is read last": lambda: gru(inputs=2),
    "heads": heads,
    "by number": by_number,
    "by number, with a COUNT below 0": lambda: by_number(trips=-1),
    "read once more": read_once_more,
    "read once more without a trip": lambda: read_once_more(trips=-1),
    "written": written,
    "written in part": lambda: written(rows=4),
    "written from the second row on": lambda: written(rows=4, start=1),
    "written from the last row on": lambda: written(start=-1),
    "written and read": lambda: written(reads=True),
    "kept": kept,
    "noisy": noisy,
    "attention": attention,
    "selective": selective,
    "selective by einsum": lambda: selective(by_einsum=True),
    "selective without a trip": lambda: selective(trips=0),
    "remembered": remembered,
    "embedded": embedded,
    "one embedded row": lambda: embedded(None),
    "no trips": lambda: lstm(trips=0),
    "one trip": lambda: gru(trips=1),
}
each_network = pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS)
REWRITES = [name for name, each in PASSES.items() if each.rewrite is not None]


def improved(network, passes):
    return improve(network, network.types, require_valid(network), passes)


def inputs_of(network):
    random = np.random.default_rng(1)
    made = {each.name: random.standard_normal(each.shape).astype(np.float32) for each in network.inputs}
    return {
        name: random.integers(0, 6, array.shape, np.int32) if name == "tokens" else array
        for name, array in made.items()
    }


def assert_close(got, wanted):
    for name, array in wanted.items():
        np.testing.assert_allclose(np.asarray(got[name]), array, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.fixture(autouse=True)
def nothing_is_too_small(monkeypatch):
    """Products of any size are worth it."""
    monkeypatch.setattr(fission, "SMALLEST_PRODUCT", 1)
    for name in ("SMALLEST", "SMALLEST_OF_ONE", "SMALLEST_LEFT"):
        monkeypatch.setattr(f"netloop.passes.weight_prepacking.{name}", 1)
    monkeypatch.setattr("netloop.lower.weight_folding.SMALLEST", 1)
    monkeypatch.setattr("netloop.passes.carry_layout.MOST_SHORT", 3)
    monkeypatch.setattr("netloop.passes.carry_layout.FEWEST_LONG", 4)
    monkeypatch.setattr("netloop.passes.matmul_partitioning.PART", 9)
    monkeypatch.setattr("netloop.passes.matmul_partitioning.CACHED", 0)
    monkeypatch.setattr("netloop.passes.matmul_partitioning.cores", lambda: 2)


@each_network
@pytest.mark.parametrize("passes", [*([each] for each in REWRITES), REWRITES], ids="+".join)
def test_reference_stays_the_same(make, passes):
    network = make()
    inputs = inputs_of(network)

    assert_close(trt.evaluate(improved(network, passes).network, inputs), trt.evaluate(network, inputs))


@each_network
@pytest.mark.parametrize("passes", [[], *([each] for each in PASSES), None], ids=lambda each: "+".join(each or ["all"]))
def test_engine_gives_what_the_reference_gives(make, passes):
    network = make()
    inputs = inputs_of(network)
    found = improved(network, [each for each in passes or [] if each in REWRITES])

    if passes and set(passes) <= set(REWRITES) and not found.notes:
        assert found.network is network  # the program is the one without passes, which a case of its own compiles
    else:
        assert_close(trt.compile(network, passes=passes)(inputs), trt.evaluate(network, inputs))


@pytest.fixture
def four_trips_at_once(monkeypatch):
    for name, limit in {"SMALLEST_PRODUCT": 1, "CACHED": 1, "CHUNK": 4 * 3 * 12 * 4}.items():
        monkeypatch.setattr(fission, name, limit)


@pytest.mark.parametrize("trips", [4, 7, 8, 9])
def test_chunks_of_trips_give_the_same(trips, four_trips_at_once):
    network = gru(trips=trips)
    inputs = inputs_of(network)
    engine = trt.compile(network)

    assert any("trips at once" in str(each) for each in engine.notes)
    assert_close(engine(inputs), trt.evaluate(network, inputs))


def test_chunks_of_types_of_few_bits_are_joined(four_trips_at_once):
    network, dtype = gru(trips=9), trt.types.NUMPY_TYPES[trt.DataType.INT2]
    (loop,) = network.loops
    before = loop.add_recurrence(constant(network, [1, 1], dtype))
    before.set_input(1, loop.add_iterator(network.add_input("codes", trt.DataType.INT2, (9, 2))).get_output(0))
    mark(network, before=stacked(loop, before.get_output(0), constant(network, 9, np.int32)))
    codes = np.arange(18).reshape(9, 2).astype(dtype)

    found = trt.compile(network)({"x": inputs_of(gru(trips=9))["x"], "codes": codes})
    assert found["before"].astype(int).tolist() == [[1, 1], *codes[:-1].astype(int).tolist()]


def count(network, kind):
    return sum(isinstance(each, kind) for each in live_layers(network))


def test_gates_become_one_product_of_the_input_one_of_the_state_and_one_sum():
    network = lstm()
    shared = improved(network, ["horizontal_fusion"])

    assert len(shared.notes) == 2
    assert [count(each, trt.IMatrixMultiplyLayer) for each in (network, shared.network)] == [8, 2]
    # four are in the cell itself
    assert [count(each, trt.IElementWiseLayer) for each in (network, shared.network)] == [12, 6]


@pytest.mark.parametrize("trips", [3, 4])
def test_gather_by_the_number_of_the_trip_is_an_iterator_if_it_stays_inside(trips):
    network = by_number(trips=trips)
    indexed = improved(network, ["induction_variables"])

    # the second gather reads one row further on
    assert count(indexed.network, trt.IGatherLayer) == trips - 3
    assert count(indexed.network, trt.IIteratorLayer) == 5 - trips


@pytest.mark.parametrize("dtype", [trt.fp8, trt.float32, trt.int32], ids=str)
def test_rows_of_a_small_constant_are_read_by_an_iterator_from_a_later_one_on(dtype):
    network = trt.INetworkDefinition()
    loop = counted(network, 2)
    rows = constant(network, np.arange(6).reshape(3, 2), trt.types.NUMPY_TYPES[dtype])
    read = network.add_gather(rows, counter(network, loop, 1), 0).get_output(0)
    mark(network, y=stacked(loop, read, constant(network, 2, np.int32)))

    assert count(improved(network, ["induction_variables"]).network, trt.IGatherLayer) == 0
    assert trt.compile(network)({})["y"].astype(int).tolist() == [[2, 3], [4, 5]]


@pytest.mark.parametrize(
    ("named", "states"), [({}, 1), ({"rows": 4}, 3), ({"start": -1}, 3), ({"reads": True}, 3)], ids=str
)
def test_state_whose_rows_are_written_by_the_number_of_the_trip_is_stacked(named, states):
    assert count(improved(written(**named), ["induction_variables"]).network, trt.IRecurrenceLayer) == states


def test_states_that_stay_or_are_equal_are_not_carried():
    network = kept()
    merged = improved(network, ["redundant_carries"])

    assert [count(each, trt.IRecurrenceLayer) for each in (network, merged.network)] == [4, 2]


def test_counters_that_begin_alike_are_one():
    network = by_number()

    assert count(improved(network, ["redundant_carries"]).network, trt.IRecurrenceLayer) == 2


def test_rows_of_an_embedding_are_multiplied_before():
    network = embedded()
    tabled = improved(network, ["horizontal_fusion", "embedding_folding"])
    (gather,) = [each for each in live_layers(tabled.network) if isinstance(each, trt.IGatherLayer)]

    assert gather.inputs[0].shape == (6, 6)


def test_sums_of_products_are_products_of_matrices():
    network = attention()

    assert count(improved(network, ["matmul_recognition"]).network, trt.IMatrixMultiplyLayer) == 2


def test_einsum_that_sums_over_nothing_is_an_element_wise_product():
    network = selective(by_einsum=True)
    plain = improved(network, ["matmul_recognition"]).network

    assert [count(each, trt.IEinsumLayer) for each in (network, plain)] == [2, 1]


def carried(network):
    """The shapes of the states."""
    return [each.outputs[0].shape for each in live_layers(network) if isinstance(each, trt.IRecurrenceLayer)]


@pytest.mark.parametrize("by_einsum", [False, True])
def test_state_has_its_longer_axis_last(by_einsum):
    assert carried(improved(selective(by_einsum=by_einsum), ["matmul_recognition", "carry_layout"]).network) == [
        (2, 3, 4)
    ]


def test_states_of_an_inner_loop_have_their_axes_swapped_with_those_around():
    network = improved(remembered(), ["carry_layout"])

    assert len(network.notes) == 1
    assert carried(network.network) == [(3, 4), (3, 4)]


def test_conditional_of_small_branches_is_no_conditional():
    programs = [trt.compile(conditional_in_loop(), passes=passes) for passes in (None, [])]
    texts = [each._programs.latest.compiled.as_text() for each in programs]

    assert ["conditional(" in each for each in texts] == [False, True]


def test_network_without_products_is_left_alone():
    network = chain_in_loop(3)

    assert improved(network, ["horizontal_fusion"]).network is network


def test_input_is_multiplied_before_the_loop_and_the_output_after_it():
    network = gru(trips=5)
    engine = trt.compile(network)
    moved = engine.batched_layers["(Unnamed Loop* 0)"]

    assert sum(isinstance(each, trt.IMatrixMultiplyLayer) for each in moved) == 2


def test_parts_of_a_product_are_cut_out_before_the_loop():
    moved = trt.compile(gru(), passes=["horizontal_fusion", "loop_fission"]).batched_layers["(Unnamed Loop* 0)"]

    # z, r and n each read a part of the product of the input
    assert sum(isinstance(each, trt.ISliceLayer) for each in moved) == 3


def test_matrix_that_multiplies_a_state_is_transposed_beforehand():
    network = improved(lstm(), ["horizontal_fusion", "weight_prepacking"]).network
    products = [each for each in live_layers(network) if isinstance(each, trt.IMatrixMultiplyLayer)]
    of_a_state = {isinstance(each.inputs[0].producer, trt.IRecurrenceLayer): each.op1 for each in products}

    assert of_a_state == {True: trt.MatrixOperation.TRANSPOSE, False: trt.MatrixOperation.NONE}


@pytest.mark.parametrize(("batch", "products"), [(7, 0), (8, 1), (64, 1), (65, 0)])
def test_matrix_that_multiplies_some_rows_of_a_state_is_the_left_operand(batch, products):
    network = improved(lstm(batch=batch), ["horizontal_fusion", "weight_prepacking"]).network

    assert count(network, FromLeftLayer) == products


def test_matrix_of_a_product_that_no_state_needs_stays_on_the_right():
    network = improved(gru(batch=8), ["weight_prepacking"]).network

    # three gates have a product of the state each; the product that is stacked is put off until after the trips
    assert count(network, FromLeftLayer) == 3


def test_derivatives_go_through_a_product_from_the_left():
    network = lstm(batch=8)
    (function, weights), inputs = trt.to_jax(network), inputs_of(network)
    plain = jax.grad(lambda x: jnp.sum(function(weights, {"x": x})["y"]))(inputs["x"])
    batched = jax.vmap(lambda x: function(weights, {"x": x})["y"])(inputs["x"][None])

    assert np.isfinite(plain).all()
    assert_close({"y": batched[0]}, {"y": trt.evaluate(network, inputs)["y"]})


def test_new_weights_reach_what_was_computed_from_the_old():
    network = lstm()
    engine = trt.compile(network)
    refitter = trt.Refitter(engine, trt.Logger())
    names = [each for each in refitter.get_all_weights() if refitter.get_weights_prototype(each).size == 12]
    for name in names:
        assert refitter.set_named_weights(name, np.zeros(12, np.float32))
    constants = [each for each in network.layers if isinstance(each, trt.IConstantLayer)]
    for each in constants:
        if each.weights.size == 12:
            each.weights = np.zeros(12, np.float32)
    inputs = inputs_of(network)

    assert refitter.refit_cuda_engine()
    assert_close(engine(inputs), trt.evaluate(network, inputs))


def test_unknown_pass_is_refused_with_the_nearest_name():
    with pytest.raises(ValueError, match="there is no pass 'horizontal_fusio'; did you mean 'horizontal_fusion'"):
        trt.compile(lstm(), passes=["horizontal_fusio"])


def test_level_of_the_builder_chooses_passes():
    builder = trt.Builder(trt.Logger())
    config = builder.create_builder_config()
    config.builder_optimization_level = 0
    plan = builder.build_serialized_network(lstm(), config)

    assert trt.Runtime(trt.Logger()).deserialize_cuda_engine(plan).passes == frozenset()
    assert trt.compile(lstm()).passes == frozenset(PASSES)


def test_pass_for_cpus_is_used_on_cpus_alone(monkeypatch):
    def used():
        return {each.by for each in trt.compile(lstm()).notes}

    assert {"matmul_partitioning", "horizontal_fusion"} < used()
    monkeypatch.setattr("jax.default_backend", lambda: "tpu")
    assert "matmul_partitioning" not in used()


@pytest.mark.parametrize("x", [-700.0, -20.0, -1.0, 0.0, 0.5, 30.0, 1e4])
def test_gates_are_within_their_bound(x):
    x = np.float32(x)
    exact = 1 / (1 + np.exp(-np.float64(x)))

    gate = GatesLayer(axis=-1, sizes=[1], logistic=[1])

    assert abs(float(gate.lower(np.array([x]))[0]) - exact) <= 1.2e-7


def test_inspector_tells_what_was_done():
    engine = trt.compile(lstm())
    told = json.loads(engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON))

    assert [f"{each['Name']}: {each['Done']}" for each in told["Passes"]] == list(map(str, engine.notes))
    assert {each["Name"] for each in told["Passes"]} == {
        "horizontal_fusion",
        "matmul_partitioning",
        "gate_fusion",
        "weight_folding",
        "loop_fission",
    }
    assert all(each["Rule"] and each["Gain"] for each in told["Passes"])
    assert len(told["Loops"][0]["Many trips at once"]) == 1


def test_phases_of_an_engine_are_told():
    network = lstm()
    phases = trt.compile(network).profile(inputs_of(network))

    assert list(phases) == ["passes", "load", "trace", "compile", "call"]
    assert all(each > 0 for each in phases.values())


def test_donated_input_is_taken_and_the_result_is_the_same():
    network = kept()
    x = jnp.asarray(inputs_of(network)["x"])
    wanted = np.asarray(trt.compile(network)({"x": x})["a"])
    got = trt.compile(network, donate=["x"])({"x": x})["a"]

    assert x.is_deleted()
    assert np.asarray(got).tolist() == wanted.tolist()


@pytest.mark.parametrize(("donate", "error"), [(["y"], ValueError), ("x", TypeError), ([1], TypeError)])
def test_only_inputs_can_be_donated(donate, error):
    with pytest.raises(error, match="donate"):
        trt.compile(kept(), donate=donate)


def test_page_tells_of_every_pass():
    page = (Path(__file__).parents[2] / "docs" / "performance.md").read_text(encoding="utf-8")

    assert re.findall(r"^\| `(\w+)` \| (\d) \| (.*) \| (.*) \|$", page, re.MULTILINE) == [
        (name, str(each.level), each.rule, each.gain) for name, each in PASSES.items()
    ]
