"""Networks on a mesh of eight devices."""

from collections import Counter

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import netloop as trt
from benchmarks.workloads.decoder import Block, Decoder
from netloop.compiler.passes import PASSES
from tests.support.hlo import collectives
from tests.support.networks import (
    EXAMPLES,
    WHILE,
    F,
    Op,
    asserted,
    combine,
    constant,
    count_is_an_input,
    counted,
    dynamic_axis,
    last,
    lstm,
    mark,
    newton,
    stacked,
)

pytestmark = pytest.mark.eight_devices

NONE = trt.MatrixOperation.NONE


def mesh(*axes, shape=None):
    shape = shape or (8,)
    devices = jax.devices()[: int(np.prod(shape))]
    return jax.make_mesh(shape, axes or ("rows",), devices=devices)


def writer(hidden=32, characters=20, length=24):
    """said[24], count: the characters that a recurrent network writes after the first, until it writes 0."""
    network, draw = trt.INetworkDefinition(), np.random.default_rng(0)

    def weights(name, *shape):
        layer = network.add_constant(shape, draw.standard_normal(shape).astype(F))
        layer.name = name
        return layer.get_output(0)

    loop = counted(network, length)
    character = loop.add_recurrence(network.add_input("first", trt.int32, ()))
    state = loop.add_recurrence(constant(network, np.zeros((1, hidden), F)))
    now = character.get_output(0)
    loop.add_trip_limit(combine(network, now, 0, Op.GREATER), WHILE)
    row = network.add_gather(weights("embedding", characters, hidden), now, 0).get_output(0)
    row = network.add_shuffle(row)
    row.reshape_dims = (1, hidden)
    product = network.add_matrix_multiply(state.get_output(0), NONE, weights("recurrent", hidden, hidden), NONE)
    total = combine(network, row.get_output(0), product.get_output(0))
    new = network.add_activation(total, trt.ActivationType.TANH).get_output(0)
    scores = network.add_matrix_multiply(new, NONE, weights("head", hidden, characters), NONE).get_output(0)
    best = network.add_topk(scores, trt.TopKOperation.MAX, 1, 1 << 1, trt.int32).get_output(1)
    following = network.add_shuffle(best)
    following.reshape_dims = ()
    character.set_input(1, following.get_output(0))
    state.set_input(1, new)
    said = stacked(loop, following.get_output(0), constant(network, length, np.int32))
    number = loop.add_recurrence(constant(network, 0, np.int32))
    number.set_input(1, combine(network, number.get_output(0), 1))
    return mark(network, said=said, count=last(loop, number.get_output(0)))


FIRST = np.arange(16, dtype=np.int32) % 20


# ---------------------------------------------------------------------------- rows


def test_rows_end_their_loops_by_themselves_without_collectives():
    network = writer()
    engine, alone = trt.shard(network, mesh()), trt.shard(network, mesh(shape=(1,)))
    made, wanted = engine({"first": FIRST}), alone({"first": FIRST})
    outside, inside = collectives(engine.hlo({"first": FIRST}))

    assert len(set(np.asarray(made["count"]).tolist())) > 2
    for name in made:
        np.testing.assert_array_equal(made[name], wanted[name])
    assert inside == Counter()
    # of the error flag
    assert outside <= Counter({"all-reduce": 1})


def test_rows_are_what_an_engine_returns_for_each():
    network = writer()
    one, made = trt.compile(network), trt.shard(network, mesh())({"first": FIRST})
    for row, first in enumerate(FIRST):
        wanted = one({"first": first})
        assert made["count"][row] == wanted["count"]
        np.testing.assert_array_equal(made["said"][row], wanted["said"])


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_every_example_has_rows(name):
    example = EXAMPLES[name]
    inputs = {key: np.stack([value] * 16) for key, value in example.inputs.items()}
    if name == "length is an input":
        with pytest.raises(trt.InputError, match="its value decides a shape"):
            trt.shard(example.make(), mesh())(inputs)
        return
    made = trt.shard(example.make(), mesh())(inputs)

    assert set(made) >= set(example.outputs)
    for key, value in example.outputs.items():
        np.testing.assert_allclose(made[key], np.stack([value] * 16), rtol=1e-6)


def test_an_input_may_be_the_same_for_all_rows(network):
    x, scale = network.add_input("x", trt.float32, (2,)), network.add_input("scale", trt.float32, ())
    engine = trt.shard(
        mark(network, y=combine(network, x, network_row(network, scale), Op.PROD)), mesh(), in_specs={"scale": P()}
    )
    rows = np.arange(16, dtype=F).reshape(8, 2)

    np.testing.assert_array_equal(engine({"x": rows, "scale": F(3)})["y"], 3 * rows)


def network_row(network, scalar):
    layer = network.add_shuffle(scalar)
    layer.reshape_dims = (1,)
    return layer.get_output(0)


def test_rows_are_divided_along_all_axes_of_a_mesh():
    engine = trt.shard(count_is_an_input(), mesh("a", "b", shape=(2, 4)))

    assert engine({"n": np.arange(8, dtype=np.int32)})["y"].tolist() == [2**index for index in range(8)]
    assert "s32[1]" in engine.hlo({"n": np.arange(8, dtype=np.int32)})


def test_results_stay_on_the_mesh_and_are_taken_from_it():
    devices = mesh()
    engine = trt.shard(count_is_an_input(), devices)
    made = engine({"n": np.arange(8, dtype=np.int32)})
    again = engine({"n": made["y"] // 64})

    assert made["y"].sharding.spec == P("rows")
    assert made["y"].sharding.device_set == set(devices.devices.flat)
    assert made["y"][3] == 8
    assert again["y"].tolist() == [1, 1, 1, 1, 1, 1, 2, 4]


# ---------------------------------------------------------------------------- blocks


def test_blocks_of_a_batch_equal_one_device_bit_by_bit():
    draw = np.random.default_rng(1)
    inputs = {"x": draw.standard_normal((32, 6, 7)).astype(F)}
    inputs |= {name: draw.standard_normal((32, 5)).astype(F) for name in ("h0", "c0")}
    engine = trt.shard(lstm(), mesh())
    made, wanted = engine(inputs), trt.compile(lstm())(inputs)

    for name in wanted:
        np.testing.assert_array_equal(made[name], wanted[name])
    assert collectives(engine.hlo(inputs)) == (Counter(), Counter())


def test_blocks_may_lie_along_any_axes_of_a_mesh(network):
    x = network.add_input("x", trt.float32, (-1, -1))
    network = mark(network, y=combine(network, x, x))
    engine = trt.shard(network, mesh("a", "b", shape=(2, 4)), in_specs={"x": P("b", "a")}, out_specs={"y": P("b", "a")})
    x = np.arange(32, dtype=F).reshape(8, 4)

    np.testing.assert_array_equal(engine({"x": x})["y"], 2 * x)


def test_programs_are_kept_for_each_shape():
    engine = trt.shard(dynamic_axis(), mesh(), dependent_rows=True)
    for length in (8, 16, 8):
        made = engine({"x": np.ones((length, 2), F)})["y"]
        np.testing.assert_array_equal(made, np.tile(np.arange(1, length // 8 + 1, dtype=F)[:, None], (8, 2)))
    rows = engine({"x": np.ones((8, 3, 2), F)})["y"]

    assert rows.shape == (8, 3, 2)


def without_mean(network, axis=0, length=-1):
    """y: x[..., 2] without its mean along an axis."""
    x = network.add_input("x", trt.float32, (length, 2))
    mean = network.add_reduce(x, trt.ReduceOperation.AVG, 1 << axis, True).get_output(0)
    return mark(network, y=combine(network, x, mean, Op.SUB))


NUMBERS = np.arange(48, dtype=F).reshape(24, 2) ** 2


@pytest.mark.parametrize("rows", [8, 16, 24])
def test_rows_of_blocks_that_depend_on_each_other_are_refused(network, rows):
    engine = trt.shard(without_mean(network), mesh())
    with pytest.raises(trt.NetworkError, match="NL615: rows of output 'y' change with rows that are none of theirs"):
        engine({"x": NUMBERS[:rows]})


def test_devices_compute_dependent_rows_of_blocks_by_themselves_if_they_are_to(network):
    made = trt.shard(without_mean(network), mesh(), dependent_rows=True)({"x": NUMBERS[:16]})["y"]

    assert np.asarray(made).tolist() == [
        row for block in np.split(NUMBERS[:16], 8) for row in (block - block.mean(0)).tolist()
    ]


@pytest.mark.parametrize("rows", [8, 24])
def test_rows_of_blocks_that_depend_on_themselves_are_computed(network, rows):
    x = NUMBERS[:rows]

    assert np.asarray(trt.shard(without_mean(network, 1), mesh())({"x": x})["y"]).tolist() == (
        (x - x.mean(1, keepdims=True)).tolist()
    )


def test_equal_rows_are_compared_again_with_others(network, monkeypatch):
    engine = trt.shard(without_mean(network), mesh())
    assert not np.asarray(engine({"x": np.ones((16, 2), F)})["y"]).any()
    with monkeypatch.context() as patch:
        patch.setattr(jax, "jit", lambda *given, **named: pytest.fail("a call compiled again"))
        assert not np.asarray(engine({"x": np.ones((16, 2), F)})["y"]).any()

    with pytest.raises(trt.NetworkError, match="NL615"):
        engine({"x": NUMBERS[:16]})


def test_number_of_rows_is_that_of_the_inputs(network):
    x = network.add_input("x", trt.float32, (-1, 2))
    engine = trt.shard(
        mark(network, y=network.add_reduce(x, trt.ReduceOperation.SUM, 1 << 0, True).get_output(0)), mesh()
    )
    with pytest.raises(trt.NetworkError, match="NL615: output 'y' has 8 rows for inputs of 16"):
        engine({"x": NUMBERS[:16]})


def test_rows_may_lie_along_any_axis(network):
    x = network.add_input("x", trt.float32, (2, -1))
    total = network.add_cumulative(x, constant(network, np.int32(1)), trt.CumulativeOperation.SUM, False, False)
    engine = trt.shard(
        mark(network, y=total.get_output(0)), mesh(), in_specs={"x": P(None, "rows")}, out_specs={"y": P(None, "rows")}
    )
    with pytest.raises(trt.NetworkError, match="NL615: rows of output 'y' change"):
        engine({"x": NUMBERS[:16].T})


def test_batch_of_one_row_for_each_device_keeps_one_program(network):
    engine = trt.shard(without_mean(network, 1), mesh())
    engine({"x": NUMBERS[:8]})

    assert engine.program_count == 1


def test_axis_of_fixed_length_is_that_of_a_device(network):
    """The network is not one of more rows, which may so depend on each other."""
    made = trt.shard(without_mean(network, length=2), mesh())({"x": NUMBERS[:16]})["y"]

    assert np.asarray(made)[:2].tolist() == [[-2, -4], [2, 4]]


# ---------------------------------------------------------------------------- failures


@pytest.mark.parametrize("row", [0, 7, 15])
def test_failure_of_a_row_on_any_device_raises(row):
    engine = trt.shard(asserted(3), mesh())
    n = np.full(16, 2, np.int32)
    assert engine({"n": n})["y"].tolist() == [2] * 16

    n[row] = 5
    with pytest.raises(trt.ExecutionError, match="the trip is below 3"):
        engine({"n": n})


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (
            {"n": np.int32([1] * 9)},
            "NL618: the value of 'n' cannot be cut by .*'rows'.*: axis 0 has 9 elements, and goes to 8",
        ),
        ({"n": np.int32(1)}, "NL618: the value of 'n' cannot be cut .* it has 0 axes, and the spec 1"),
        ({"n": F([1] * 8)}, r"NL603: input 'n' is int32\[\], and its value is float32\[\]"),
        ({"n": np.zeros((8, 2), np.int32)}, r"NL618: .* each device gets int32\[1,2\], and the input is int32\[\]"),
        ({}, "NL602: input 'n' is missing"),
        ({"n": np.int32([1] * 8), "m": 1}, "NL602: the network has no input 'm'"),
    ],
)
def test_input_that_does_not_fit_is_refused(inputs, message):
    with pytest.raises(trt.InputError, match=message):
        trt.shard(count_is_an_input(), mesh())(inputs)


def test_different_numbers_of_rows_are_refused(network):
    x, y = (network.add_input(name, trt.float32, ()) for name in "xy")
    engine = trt.shard(mark(network, z=combine(network, x, y)), mesh())
    with pytest.raises(trt.InputError, match="NL618: inputs have different numbers of rows: 'x' has 8, 'y' has 16"):
        engine({"x": np.zeros(8, F), "y": np.zeros(16, F)})


def test_traced_input_is_refused():
    engine = trt.shard(newton(), mesh())
    with pytest.raises(trt.InputError, match="NL607: JAX is tracing input 'x'"), jax.enable_x64(True):
        jax.jit(lambda x: engine({"x": x}))(np.ones(8))


def total(network, kind=trt.ReduceOperation.SUM):
    """y: the sum of x[-1] over its elements."""
    x = network.add_input("x", trt.float32, (-1,))
    return mark(network, y=network.add_reduce(x, kind, 1 << 0, False).get_output(0))


def test_output_without_an_axis_is_not_joined(network):
    with pytest.raises(trt.NetworkError, match="NL618: output 'y' has 0 axes on each device, and cannot be joined"):
        trt.shard(total(network), mesh())({"x": np.ones(8, F)})


def test_output_that_may_differ_needs_its_axis(network):
    with pytest.raises(trt.NetworkError, match="NL618: output 'y' may differ from device to device along 'rows'"):
        trt.shard(total(network), mesh(), out_specs={"y": P()})({"x": np.ones(8, F)})


@pytest.mark.parametrize("specs", [{}, {"out_specs": {"y": P()}}])
def test_output_that_is_equal_everywhere_may_leave_out_its_axis(network, specs):
    x = network.add_input("x", trt.float32, (-1,))
    mark(network, y=combine(network, x, x))
    engine = trt.shard(network, mesh(), in_specs={"x": P()}, **specs)

    assert engine({"x": F([1, 2, 3])})["y"].tolist() == [2, 4, 6]


@pytest.mark.parametrize(
    ("specs", "error", "message"),
    [
        ({"in_specs": {"m": P()}}, ValueError, "in_specs names 'm', and the network has no such input"),
        ({"out_specs": {"z": P()}}, ValueError, "out_specs names 'z', and the network has no such output"),
        (
            {"in_specs": {"n": P("columns")}},
            ValueError,
            r"in_specs\['n'\] names the axis 'columns', and the mesh has 'rows'",
        ),
        ({"in_specs": {"n": "rows"}}, TypeError, r"in_specs\['n'\] must be"),
        ({"in_specs": [P()]}, TypeError, "in_specs is a dict from names to PartitionSpecs, not list"),
        ({"passes": ["fusion"]}, ValueError, "there is no pass 'fusion'"),
    ],
)
def test_spec_that_fits_nothing_is_refused(specs, error, message):
    with pytest.raises(error, match=message):
        trt.shard(count_is_an_input(), mesh(), **specs)


def test_mesh_of_another_type_is_refused():
    with pytest.raises(TypeError, match="mesh"):
        trt.shard(newton(), jax.devices())


def test_network_that_runs_on_the_host_is_refused(network):
    x = network.add_input("x", trt.int32, (-1,))
    mark(network, y=network.add_non_zero(x, trt.int32).get_output(0))
    with pytest.raises(trt.NetworkError, match=r"NL501: .* a data-dependent shape"):
        trt.shard(network, mesh())({"x": np.ones(8, np.int32)})


def test_inputs_that_are_no_arrays_are_refused(network):
    x = network.add_sequence_input("x", trt.float32, (2,))
    mark(network, y=network.add_sequence_length(x).get_output(0))
    with pytest.raises(trt.NetworkError, match="NL503: the input 'x' is"):
        trt.shard(network, mesh())


def test_notes_are_those_of_the_latest_program():
    engine = trt.shard(gates(), mesh("model"), in_specs={"x": P()})
    assert engine.notes == []

    engine(ROWS)
    assert any(note.by == "horizontal_fusion" for note in engine.notes)


def test_spec_that_cuts_nothing_keeps_all_passes():
    engine = trt.shard(gates(), mesh("model"), in_specs={"W*": P(), "R*": P(None)})

    assert engine.passes == set(PASSES)


def test_engine_on_a_mesh_is_not_pickled():
    with pytest.raises(TypeError, match="ShardedEngine cannot be pickled or copied"):
        trt.shard(newton(), mesh()).__reduce_ex__(4)


# ---------------------------------------------------------------------------- tensor parallelism


def gates(hidden=32, steps=4):
    """y[steps,8,32]: the states of an LSTM over x[steps,8,32] with a matrix for each gate, named W0 to W3, R0 to R3."""
    network, draw = trt.INetworkDefinition(), np.random.default_rng(2)
    x = network.add_input("x", trt.float32, (steps, 8, hidden))
    loop = counted(network, steps)
    now = loop.add_iterator(x).get_output(0)
    h, c = (loop.add_recurrence(constant(network, np.zeros((8, hidden), F))) for _ in range(2))

    def product(tensor, name):
        layer = network.add_constant((hidden, hidden), draw.standard_normal((hidden, hidden)).astype(F) / 8)
        layer.name = name
        return network.add_matrix_multiply(tensor, NONE, layer.get_output(0), NONE).get_output(0)

    def gate(number, kind):
        both = combine(network, product(now, f"W{number}"), product(h.get_output(0), f"R{number}"))
        return network.add_activation(both, kind).get_output(0)

    sigmoid, tanh = trt.ActivationType.SIGMOID, trt.ActivationType.TANH
    i, f, o, g = gate(0, sigmoid), gate(1, sigmoid), gate(2, sigmoid), gate(3, tanh)
    c.set_input(1, combine(network, combine(network, f, c.get_output(0), Op.PROD), combine(network, i, g, Op.PROD)))
    squashed = network.add_activation(c.get_input(1), tanh).get_output(0)
    h.set_input(1, combine(network, o, squashed, Op.PROD))
    return mark(network, y=stacked(loop, h.get_input(1), constant(network, steps, np.int32)))


ROWS = {"x": np.random.default_rng(3).standard_normal((4, 8, 32)).astype(F)}
BY_COLUMN = {"[WR]?": P(None, "model")}


def test_cut_gates_exchange_one_state_in_an_iteration():
    """As written by hand: each device has columns of all gates, and all need the whole state for the next products."""
    engine = trt.shard(gates(), mesh("model"), in_specs=BY_COLUMN)
    _, inside = collectives(engine.hlo(ROWS))

    assert inside == Counter({"all-gather": 1})
    np.testing.assert_allclose(engine(ROWS)["y"], trt.compile(gates())(ROWS)["y"], atol=1e-5)


def test_passes_that_join_cut_weights_stay_out_unless_they_are_chosen():
    default = trt.shard(gates(), mesh("model"), in_specs=BY_COLUMN)
    chosen = trt.shard(gates(), mesh("model"), in_specs=BY_COLUMN, passes=PASSES)
    _, inside = collectives(chosen.hlo(ROWS))

    assert default.passes == set(PASSES) - {"horizontal_fusion", "matmul_partitioning"}
    assert inside["collective-permute"] > 0
    assert trt.shard(gates(), mesh("model")).passes == set(PASSES)


def named_decoder():
    """The decoder of the benchmarks, its weights with names."""
    network = Decoder(width=64, heads=8, vocabulary=50, length=12).network()
    layers = [layer for layer in network.layers if isinstance(layer, trt.IConstantLayer)]
    squares = [layer for layer in layers if layer.get_output(0).shape == (64, 64)]
    for number, layer in enumerate(squares):
        layer.name = f"{number // 4}.{('key', 'value', 'query', 'output')[number % 4]}"
    for name, shape in {"up": (64, 256), "down": (256, 64)}.items():
        for number, layer in enumerate(layer for layer in layers if layer.get_output(0).shape == shape):
            layer.name = f"{number}.{name}"
    return network


MEGATRON = {
    "*.key": P(None, "model"),
    "*.value": P(None, "model"),
    "*.query": P(None, "model"),
    "*.output": P("model"),
    "*.up": P(None, "model"),
    "*.down": P("model"),
}


def test_decoder_cut_by_heads_reduces_twice_in_a_block():
    """As written by hand: a sum after attention and one after the dense layers, in each of two blocks."""
    network, inputs = named_decoder(), {"token": np.int32([1])}
    engine = trt.shard(network, mesh("model"), in_specs=MEGATRON)
    outside, inside = collectives(engine.hlo(inputs))

    assert (outside, inside) == (Counter(), Counter({"all-reduce": 4}))
    np.testing.assert_array_equal(engine(inputs)["said"], trt.compile(network)(inputs)["said"])


def test_decoder_cut_by_heads_has_the_collectives_of_the_one_written_by_hand():
    """The hand-written program of the benchmarks, its weights placed with the same specs."""
    along = jax.make_mesh((8,), ("model",), axis_types=(AxisType.Auto,))
    decoder = Decoder(width=64, heads=8, vocabulary=50, length=12)
    model = decoder.model
    specs = {field: P("model") if field in ("output", "down") else P(None, "model") for field in Block._fields}
    blocks = [Block(*(NamedSharding(along, specs[field]) for field in Block._fields)) for _ in model.blocks]
    whole = NamedSharding(along, P())
    places = model._replace(embedding=whole, positions=whole, blocks=blocks, head=whole)
    inputs = {"token": np.int32([1])}
    by_hand = (
        jax.jit(decoder.idiomatic().function, in_shardings=(places, whole)).lower(model, inputs).compile().as_text()
    )
    ours = trt.shard(named_decoder(), along, in_specs=MEGATRON).hlo(inputs)

    assert collectives(ours)[1] == collectives(by_hand)[1] == Counter({"all-reduce": 4})


def test_rows_and_cut_weights_share_a_mesh():
    network = named_decoder()
    inputs = {"token": np.arange(1, 9, dtype=np.int32)[:, None]}
    engine = trt.shard(network, mesh("rows", "model", shape=(2, 4)), in_specs=MEGATRON)
    _, inside = collectives(engine.hlo(inputs))
    made, one = engine(inputs)["said"], trt.compile(network)

    assert inside == Counter({"all-reduce": 4})
    for row, token in enumerate(inputs["token"]):
        np.testing.assert_array_equal(made[row], one({"token": token})["said"])


def test_no_device_has_the_whole_of_a_cut_weight():
    engine = trt.shard(gates(), mesh("model"), in_specs=BY_COLUMN, passes=[])
    text = engine.hlo(ROWS)

    assert "f32[32,4]" in text
    assert "f32[32,32]" not in text


def test_exact_name_goes_before_patterns(network):
    first, second = (network.add_constant((8, 16), np.ones((8, 16), F)) for _ in range(2))
    first.name, second.name = "w[0]", "w1"
    x = network.add_input("x", trt.float32, (8, 16))
    mark(network, y=combine(network, combine(network, x, first.get_output(0)), second.get_output(0)))
    specs = {"w*": P("model"), "w[0]": P(None, "model")}
    text = trt.shard(network, mesh("model"), in_specs=specs, passes=[]).hlo({"x": np.ones((8, 16), F)})

    assert "f32[8,2]" in text
    assert "f32[1,16]" in text


def test_weight_that_cannot_be_cut_evenly_is_refused(network):
    layer = network.add_constant((3,), np.ones(3, F))
    layer.name = "w"
    mark(network, y=combine(network, network.add_input("x", trt.float32, (3,)), layer.get_output(0)))
    for spec, why in (
        (P("rows"), "axis 0 has 3 elements, and goes to 8"),
        (P(None, "rows"), "it has 1 axes, and the spec 2"),
    ):
        with pytest.raises(trt.NetworkError, match=f"NL618: 'w' is .*, and cannot be cut by .*: {why}"):
            trt.shard(network, mesh(), in_specs={"w": spec})


# ---------------------------------------------------------------------------- ranks


def collective(network, tensor, operation, kind=None, ranks=8):
    layer = network.add_dist_collective(tensor, operation, kind, -1, [])
    layer.num_ranks = ranks
    return layer


SUM, ALL_REDUCE, ALL_GATHER = (
    trt.ReduceOperation.SUM,
    trt.CollectiveOperation.ALL_REDUCE,
    trt.CollectiveOperation.ALL_GATHER,
)


def in_step(network):
    """total, all[-1]: a sum over ranks that all add to in each of 3 iterations, and the values of all ranks."""
    loop = counted(network, 3)
    state = loop.add_recurrence(network.add_input("x", trt.float32, (-1,)))
    every = collective(network, state.get_output(0), ALL_REDUCE, SUM).get_output(0)
    state.set_input(1, combine(network, state.get_output(0), every))
    gathered = collective(network, last(loop, state.get_output(0)), ALL_GATHER).get_output(0)
    return mark(network, x3=last(loop, state.get_output(0)), all=gathered)


def by_hand(x):
    for _ in range(3):
        x = x + x.sum()
    return x


@pytest.mark.parametrize("axis", ["ranks", "devices"])
def test_ranks_are_the_devices_of_a_mesh_also_in_loops(network, axis):
    x = np.arange(8, dtype=F)
    engine = trt.shard(in_step(network), mesh(axis))
    made = engine({"x": x})
    outside, inside = collectives(engine.hlo({"x": x}))

    np.testing.assert_array_equal(made["x3"], by_hand(x))
    np.testing.assert_array_equal(made["all"], np.tile(by_hand(x), 8))
    assert (outside, inside) == (Counter({"all-gather": 1}), Counter({"all-reduce": 1}))


def test_sum_over_ranks_is_the_same_everywhere(network):
    y = collective(network, network.add_input("x", trt.float32, (1,)), ALL_REDUCE, SUM).get_output(0)
    engine = trt.shard(mark(network, y=y), mesh(), out_specs={"y": P()})

    assert engine({"x": np.arange(8, dtype=F)})["y"].tolist() == [28]


def test_while_loop_that_a_sum_over_ranks_ends(network):
    """All ranks double their values until the sum of all is at least 1000."""
    loop = network.add_loop()
    state = loop.add_recurrence(network.add_input("x", trt.float32, ()))
    now = state.get_output(0)
    every = collective(network, now, ALL_REDUCE, SUM).get_output(0)
    loop.add_trip_limit(combine(network, every, 1000, Op.LESS), WHILE)
    state.set_input(1, combine(network, now, now))
    engine = trt.shard(mark(network, y=network_row(network, last(loop, now))), mesh(), in_specs={"x": P("rows")})
    with pytest.raises(trt.InputError, match="it has 0 axes"):
        engine({"x": F(1)})

    assert engine({"x": np.arange(8, dtype=F)})["y"][:, 0].tolist() == [64 * index for index in range(8)]


def ends_by_a_count(network):
    """A loop with a collective, and a COUNT that each row has."""
    loop = counted(network, network.add_input("n", trt.int32, ()))
    state = loop.add_recurrence(network.add_input("x", trt.float32, (-1,)))
    state.set_input(1, collective(network, state.get_output(0), ALL_REDUCE, SUM).get_output(0))
    return mark(network, y=last(loop, state.get_output(0)))


def test_collective_in_a_loop_that_ranks_may_leave_apart_is_refused(network):
    """XLA would end the process, 40 seconds after one rank has left the loop."""
    inputs = {"x": np.ones(8, F), "n": np.arange(8, dtype=np.int32)}
    with pytest.raises(trt.NetworkError, match=r"NL619: .* ranks in .*, whose condition may differ"):
        trt.shard(ends_by_a_count(network), mesh())(inputs)

    together = trt.shard(network, mesh(), in_specs={"n": P()})
    assert together(inputs | {"n": np.int32(2)})["y"].tolist() == [64] * 8


def test_collective_in_a_branch_that_ranks_may_not_share_is_refused(network):
    x, way = network.add_input("x", trt.float32, (-1,)), network.add_input("way", trt.bool, ())
    choice = network.add_if_conditional()
    choice.set_condition(way)
    own = choice.add_input(x).get_output(0)
    every = collective(network, own, ALL_REDUCE, SUM).get_output(0)
    mark(network, y=choice.add_output(every, own).get_output(0))
    with pytest.raises(trt.NetworkError, match="NL619"):
        trt.shard(network, mesh())({"x": np.ones(8, F), "way": np.zeros(8, np.bool_)})

    together = trt.shard(network, mesh(), in_specs={"way": P()}, passes=[])
    assert together({"x": np.ones(8, F), "way": np.bool_(True)})["y"].tolist() == [8] * 8


@pytest.mark.parametrize("operation", [ALL_GATHER, trt.CollectiveOperation.BROADCAST])
def test_what_all_ranks_get_may_end_their_loop(network, operation):
    layer = network.add_dist_collective(network.add_input("n", trt.int32, (-1,)), operation, None, 0, [])
    layer.num_ranks = 8
    count = network.add_reduce(layer.get_output(0), trt.ReduceOperation.MAX, 1 << 0, False).get_output(0)
    loop = counted(network, count)
    state = loop.add_recurrence(network.add_input("x", trt.float32, (-1,)))
    state.set_input(1, collective(network, state.get_output(0), ALL_REDUCE, SUM).get_output(0))
    engine = trt.shard(mark(network, y=last(loop, state.get_output(0)), count=count), mesh(), out_specs={"count": P()})
    made = engine({"x": np.ones(8, F), "n": np.int32([2, 1, 1, 1, 1, 1, 1, 0])})

    assert made["count"] == 2
    assert made["y"].tolist() == [64] * 8


def test_metadata_names_the_axis_of_the_ranks(network):
    layer = collective(network, network.add_input("x", trt.float32, (-1,)), ALL_REDUCE, SUM, ranks=4)
    layer.metadata = "b"
    engine = trt.shard(mark(network, y=layer.get_output(0)), mesh("a", "b", shape=(2, 4)))

    assert engine({"x": np.arange(8, dtype=F)})["y"].tolist() == [6] * 4 + [22] * 4


def test_ranks_without_an_axis_say_what_to_do(network):
    y = collective(network, network.add_input("x", trt.float32, (-1,)), ALL_REDUCE, SUM, ranks=4).get_output(0)
    with pytest.raises(trt.NetworkError, match=r"the axis 'rows' has 8\n(.*\n)*.*fix: call netloop.shard"):
        trt.shard(mark(network, y=y), mesh())({"x": np.ones(8, F)})
    with pytest.raises(trt.NetworkError, match="there is no axis 'ranks'"):
        trt.compile(network)({"x": np.ones(8, F)})


def attention(network, ranks, query=8, keys=8):
    """y: attention of x[1,2,query,4] to the keys and values k, v[1,2,keys,4]."""
    x = network.add_input("x", trt.float32, (1, 2, query, 4))
    k, v = (network.add_input(name, trt.float32, (1, 2, keys, 4)) for name in "kv")
    made = network.add_attention_v2(x, k, v, trt.AttentionNormalizationOp.SOFTMAX, trt.CausalMaskKind.NONE)
    made.num_ranks = ranks
    return mark(network, y=made.get_output(0)), made


def test_attention_of_several_ranks_is_that_of_the_whole_sequence():
    """Context parallelism: each rank has two queries, and three keys and values."""
    whole, _ = attention(trt.INetworkDefinition(), 1, 16, 24)
    part, _ = attention(trt.INetworkDefinition(), 8, 2, 3)
    draw = np.random.default_rng(4)
    lengths = {"x": 16, "k": 24, "v": 24}
    inputs = {name: draw.standard_normal((1, 2, length, 4)).astype(F) for name, length in lengths.items()}
    along = P(None, None, "ranks")
    engine = trt.shard(part, mesh("ranks"), in_specs=dict.fromkeys("xkv", along), out_specs={"y": along})

    np.testing.assert_allclose(engine(inputs)["y"], trt.compile(whole)(inputs)["y"], atol=1e-6)
    assert collectives(engine.hlo(inputs)) == (Counter({"all-gather": 2}), Counter())


def test_attention_of_several_ranks_needs_plain_forms(network):
    _, made = attention(network, 8)
    made.causal_kind = trt.CausalMaskKind.UPPER_LEFT

    (finding,) = trt.check(network)
    assert "num_ranks is 8, and not all queries attend to all keys" in finding.what


def test_attention_of_several_ranks_has_no_reference(network):
    attention(network, 8)
    inputs = {name: np.ones((1, 2, 8, 4), F) for name in "xkv"}
    with pytest.raises(trt.NetloopError, match="the network runs on 8 ranks"):
        trt.evaluate(network, inputs)
    with pytest.raises(trt.NetworkError, match="there is no axis 'ranks'"):
        trt.compile(network)
