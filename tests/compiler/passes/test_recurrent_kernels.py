"""Recurrent layers as kernels of netloop's own: numbers, and where they are not used."""

from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest

import netloop as trt
import netloop.onnx
from netloop.compiler.machine_code import processor as machine_code_processor
from netloop.compiler.machine_code.processor import Processor, processor
from netloop.compiler.passes import recurrent_cells, recurrent_kernels
from netloop.compiler.passes.recurrent_kernels import RecurrentKernelLayer
from tests.support import onnx_runtime
from tests.support.devices import only_on_cpus
from tests.support.examples import many, mostly_slow
from tests.support.networks import Op, combine, constant, counted, counter, last, mark, stacked
from tests.support.pass_checks import count, improved
from tests.support.recurrent_layers import recurrent_layer

pytestmark = [
    only_on_cpus("the pass is not used elsewhere"),
    pytest.mark.skipif(processor() is None, reason="the extra is not installed, or the processor has no kernels"),
]

PLAIN = trt.MatrixOperation.NONE
ONLY = ["recurrent_kernels", "weight_folding"]


@pytest.fixture(autouse=True)
def any_size(monkeypatch):
    monkeypatch.setattr(recurrent_kernels, "LEAST_WEIGHTS", 1)


@pytest.fixture
def short_vectors(monkeypatch):
    """Vectors of processors without AVX-512."""
    monkeypatch.setattr(recurrent_kernels, "processor", lambda: Processor(8, 12))


def assert_right(layer, **named):
    engine = trt.compile(layer.network, passes=ONLY, **named)
    outputs = engine(layer.inputs)
    for name, array in layer.wanted.items():
        np.testing.assert_allclose(np.asarray(outputs[name]), array, rtol=2e-5, atol=2e-6, err_msg=name)
    return engine


def assert_kernel(engine):
    assert {strategy.name for strategy in engine.loop_strategies.values()} == {"kernel"}


@pytest.mark.parametrize("seed", mostly_slow(8, many(100)))
def test_random_layers_are_kernels_and_agree_with_numpy(seed):
    assert_kernel(assert_right(recurrent_layer(seed)))


@pytest.mark.usefixtures("short_vectors")
@pytest.mark.parametrize("seed", mostly_slow(3, many(20)))
def test_random_layers_in_short_vectors_agree_with_numpy(seed):
    assert_kernel(assert_right(recurrent_layer(seed)))


@pytest.fixture
def rounding(monkeypatch):
    """JAX rounds the operands of products to bfloat16, however few weights there are."""
    monkeypatch.setattr(recurrent_cells, "MOST_CACHED", 0)
    with jax.default_matmul_precision("BF16_BF16_F32"):
        yield


def has_bfloat16(engine):
    return any("with bfloat16 weights" in str(note) for note in engine.notes)


@pytest.mark.usefixtures("rounding")
@pytest.mark.parametrize("lanes", [16, 8])
@pytest.mark.parametrize("seed", mostly_slow(4, many(50)))
def test_weights_are_bfloat16_where_products_may_round(seed, lanes, monkeypatch):
    if lanes == 8:
        monkeypatch.setattr(recurrent_kernels, "processor", lambda: Processor(8, 12))

    engine = assert_right(recurrent_layer(seed, rows=(1, 2, 5, 7), weight_type=jnp.bfloat16))

    assert_kernel(engine)
    assert has_bfloat16(engine)


def test_weights_stay_float32_unless_products_may_round_and_caches_do_not_hold_them(monkeypatch):
    layer = recurrent_layer(0, units=(32,), rows=(7,))

    def rounds(layer=layer, **named):
        return has_bfloat16(assert_right(layer, **named))

    with jax.default_matmul_precision("BF16_BF16_F32"):
        assert not rounds()
        monkeypatch.setattr(recurrent_cells, "MOST_CACHED", 0)
        assert not rounds(tf32=False)
        assert not rounds(recurrent_layer(0, rows=(8,)))
        assert has_bfloat16(trt.compile(layer.network, passes=ONLY))
    # XLA rounds nothing on CPUs by this one
    for precision in (None, "bfloat16", "highest"):
        with jax.default_matmul_precision(precision):
            assert not rounds()


@pytest.mark.parametrize(
    ("number", "cached", "rounds"),
    [(1, 4096, False), (1, 4095, True), (2, 2048, False), (2, 2047, True), (99, 511, True)],
)
def test_weights_are_bfloat16_where_the_caches_of_the_threads_do_not_hold_them(monkeypatch, number, cached, rounds):
    monkeypatch.setattr(recurrent_cells, "MOST_CACHED", cached)
    monkeypatch.setattr(recurrent_cells, "cores", lambda: number)
    with jax.default_matmul_precision("BF16_BF16_F32"):
        engine = trt.compile(loop_of())
        engine({"x": np.zeros((4, 1, 32), np.float32)})

    assert has_bfloat16(engine) == rounds


@pytest.mark.parametrize("seed", range(5))
def test_the_reference_of_the_layer_agrees(seed):
    layer = recurrent_layer(seed)

    network = improved(layer.network, ONLY).network

    assert count(network, RecurrentKernelLayer) == 1
    outputs = trt.evaluate(network, layer.inputs)
    for name, array in layer.wanted.items():
        np.testing.assert_allclose(outputs[name], array, rtol=2e-5, atol=2e-6, err_msg=name)


def lstm(rows=4, units=32, width=20, trips=6):
    """An LSTM of ONNX."""
    random = np.random.default_rng(0)
    w, r = ((random.standard_normal((1, 4 * units, n)) / 8).astype(np.float32) for n in (width, units))
    b = (random.standard_normal((1, 8 * units)) / 8).astype(np.float32)
    body = f"y, h, c = LSTM <hidden_size = {units}> (x, w, r, b)"
    text = f"""<ir_version: 8, opset_import: ["" : 17]> g (float[{trips},{rows},{width}] x)
        => (float[{trips},1,{rows},{units}] y, float[1,{rows},{units}] h, float[1,{rows},{units}] c) {{ {body} }}"""
    model = onnx.parser.parse_model(text)
    arrays = {"w": w, "r": r, "b": b}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in arrays.items())
    return model, {"x": random.standard_normal((trips, rows, width)).astype(np.float32)}


@pytest.mark.parametrize("rows", [1, 4, 16])
def test_lstm_of_onnx_agrees_with_onnxruntime(rows):
    model, inputs = lstm(rows)
    engine = trt.compile(netloop.onnx.load(model))

    outputs = engine(inputs)

    assert_kernel(engine)
    # from 8 rows on the product of the input, which the importer puts before the loop, is part of the kernel
    (cell,) = [layer.cell for layer in improved(netloop.onnx.load(model), ONLY).network if is_kernel(layer)]
    assert [source.kind for source in cell.sources] == (["state", "iterator"] if rows >= 8 else ["state"])
    # for as many iterations at a time as have 128 rows, or all
    assert cell.ahead == (6 if rows >= 8 else 1)
    for name, array in onnx_runtime.run(model, inputs).items():
        np.testing.assert_allclose(np.asarray(outputs[name]), array, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("operator", "gates", "direction", "rows"),
    [("LSTM", 4, "forward", 4), ("GRU", 3, "reverse", 9), ("RNN", 1, "bidirectional", 1)],
)
def test_layers_with_lengths_are_kernels_and_agree_with_onnxruntime(operator, gates, direction, rows):
    random, both = np.random.default_rng(0), 2 if direction == "bidirectional" else 1
    w, r = ((random.standard_normal((both, gates * 16, n)) / 8).astype(np.float32) for n in (20, 16))
    text = f"""<ir_version: 8, opset_import: ["" : 17]> g (float[6,{rows},20] x, int32[{rows}] n)
        => (float[6,{both},{rows},16] y, float[{both},{rows},16] h)
        {{ y, h = {operator} <hidden_size = 16, direction = "{direction}"> (x, w, r, , n) }}"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in (("w", w), ("r", r)))
    inputs = {
        "x": random.standard_normal((6, rows, 20)).astype(np.float32),
        "n": random.integers(1, 7, rows).astype(np.int32),
    }
    engine = trt.compile(netloop.onnx.load(model))

    outputs = engine(inputs)

    assert_kernel(engine)
    for name, array in onnx_runtime.run(model, inputs).items():
        np.testing.assert_allclose(np.asarray(outputs[name]), array, rtol=1e-5, atol=1e-6)


def test_counters_next_to_the_states_have_their_last_values():
    network = loop_of()
    (loop,) = network.loops
    count = loop.add_recurrence(constant(network, 3, np.int32))
    count.set_input(1, combine(network, count.get_output(0), constant(network, 1, np.int32)))
    mark(network, n=last(loop, count.get_output(0)))
    engine = trt.compile(network)

    assert engine({"x": np.zeros((4, 1, 32), np.float32)})["n"] == 7
    assert_kernel(engine)


def is_kernel(layer):
    return isinstance(layer, RecurrentKernelLayer)


def strategies(network, **named):
    engine = trt.compile(network, **named)
    return [strategy.name for strategy in engine.loop_strategies.values()]


def loop_of(change=None, units=32, dtype=np.float32, trips=4, kind=trt.LoopOutput.CONCATENATE, matrix=None):
    """y: h after each step of h = tanh(x + h R), x[trips, 1, units], which ``change`` may change."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32 if dtype is np.float32 else trt.float64, (trips, 1, units))
    loop = counted(network, trips)
    state = loop.add_recurrence(constant(network, np.zeros((1, units), dtype)))
    h = state.get_output(0)
    matrix = constant(network, np.eye(units, dtype=dtype)) if matrix is None else matrix(network)
    product = network.add_matrix_multiply(h, PLAIN, matrix, PLAIN).get_output(0)
    row = loop.add_iterator(x).get_output(0)
    after = network.add_activation(combine(network, row, product), trt.ActivationType.TANH).get_output(0)
    after = after if change is None else change(network, loop, after)
    state.set_input(1, after)
    return mark(network, y=stacked(loop, after, constant(network, trips, np.int32), kind))


def test_loops_that_kernels_do_not_compute_stay_loops(monkeypatch):
    def power(network, loop, x):
        return combine(network, x, x, Op.POW)

    def softmax(network, loop, x):
        layer = network.add_softmax(x)
        layer.axes = 2
        return layer.get_output(0)

    def ended(network, loop, x):
        loop.add_trip_limit(constant(network, np.bool_(True)), trt.TripLimit.WHILE)
        return x

    assert strategies(loop_of()) == ["kernel"]
    assert [strategies(loop_of(change)) for change in (power, softmax, ended)] == [["scan"], ["scan"], ["while"]]
    assert strategies(loop_of(dtype=np.float64)) == ["scan"]
    assert strategies(loop_of(matrix=lambda network: network.add_input("r", trt.float32, (32, 32)))) == ["scan"]
    assert strategies(loop_of(), max_trips=100) == ["scan"]
    assert strategies(loop_of(), passes=[*trt.PASSES.keys() - {"recurrent_kernels"}]) == ["scan"]
    monkeypatch.setattr(recurrent_kernels, "LEAST_WEIGHTS", 32 * 32 + 1)
    assert strategies(loop_of()) == ["scan"]
    monkeypatch.setattr(recurrent_kernels, "LEAST_WEIGHTS", 1)
    monkeypatch.setattr(recurrent_kernels, "MOST_ROWS", 0)
    assert strategies(loop_of()) == ["scan"]


@pytest.mark.usefixtures("short_vectors")
def test_short_vectors_leave_weights_that_no_cache_holds_to_xla(monkeypatch):
    def is_used(rows):
        network = improved(netloop.onnx.load(lstm(rows)[0]), ONLY).network
        return any(map(is_kernel, network))

    assert is_used(8)
    monkeypatch.setattr(recurrent_kernels, "MOST_PANEL", 32 * 4 * 8 * 4 - 1)
    assert not is_used(8)
    assert is_used(7)


def test_without_the_extra_loops_stay_loops(monkeypatch):
    monkeypatch.setattr(machine_code_processor, "find_spec", lambda name: None)
    processor.cache_clear()
    try:
        assert strategies(loop_of()) == ["scan"]
    finally:
        monkeypatch.undo()
        processor.cache_clear()


def test_pure_functions_and_meshes_have_no_kernels():
    network, x = loop_of(), np.ones((4, 1, 32), np.float32)
    function, weights = trt.to_jax(network)

    gradient = jax.grad(lambda x: function(weights, {"x": x})["y"].sum())(x)

    assert np.isfinite(gradient).all()
    assert "netloop.recurrent" not in jax.jit(function).lower(weights, {"x": x}).as_text()
    engine = trt.shard(network, jax.sharding.Mesh(np.array(jax.devices()[:1]), ("d",)))
    engine({"x": x})
    assert [strategy.name for strategy in engine.loop_strategies.values()] == ["scan"]


def test_members_of_vmap_are_computed_one_after_the_other():
    network = improved(loop_of(), ONLY).network
    (layer,) = filter(is_kernel, network)
    x = np.random.default_rng(0).standard_normal((3, 4, 1, 32)).astype(np.float32)
    rest = np.eye(32, dtype=np.float32).reshape(32, 1, -1, layer.processor.lanes).transpose(2, 0, 1, 3)
    rest = rest, np.zeros((1, 32), np.float32)

    rows, _ = jax.vmap(lambda x: layer.lower(x, *rest))(x)

    for member, row in zip(x, rows, strict=True):
        np.testing.assert_array_equal(row, layer.lower(member, *rest)[0])


def test_refit_packs_new_weights():
    network, x = loop_of(), {"x": np.random.default_rng(0).standard_normal((4, 1, 32)).astype(np.float32)}
    (matrix,) = [layer for layer in network if layer.outputs and layer.outputs[0].type.shape == (32, 32)]
    matrix.name = "R"
    engine = trt.compile(network)
    engine(x)
    half = np.eye(32, dtype=np.float32) / 2

    refitter = trt.Refitter(engine, trt.Logger())
    assert refitter.set_named_weights("R", half.reshape(-1))
    assert refitter.refit_cuda_engine()

    assert_kernel(engine)
    h, wanted = np.zeros((1, 32)), []
    for row in x["x"]:
        h = np.tanh(row + h / 2)
        wanted.append(h)
    np.testing.assert_allclose(np.asarray(engine(x)["y"]), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures("rounding")
def test_refit_rounds_new_weights():
    network, x = loop_of(), {"x": np.random.default_rng(0).standard_normal((4, 1, 32)).astype(np.float32)}
    (matrix,) = [layer for layer in network if layer.outputs and layer.outputs[0].type.shape == (32, 32)]
    matrix.name = "R"
    engine = trt.compile(network)
    engine(x)
    third = np.eye(32, dtype=np.float32) / 3

    refitter = trt.Refitter(engine, trt.Logger())
    assert refitter.set_named_weights("R", third.reshape(-1))
    assert refitter.refit_cuda_engine()

    assert has_bfloat16(engine)
    h, wanted = np.zeros((1, 32)), []
    for row in x["x"]:
        h = np.tanh(row + h @ third.astype(jnp.bfloat16).astype(np.float64))
        wanted.append(h)
    np.testing.assert_allclose(np.asarray(engine(x)["y"]), wanted, rtol=1e-6, atol=1e-6)


def test_calls_in_threads_agree():
    layer = recurrent_layer(3, units=(64,), rows=(16,))
    engine = assert_right(layer)
    with ThreadPoolExecutor(4) as pool:
        for outputs in pool.map(engine, [layer.inputs] * 40):
            for name, array in layer.wanted.items():
                np.testing.assert_allclose(np.asarray(outputs[name]), array, rtol=2e-5, atol=2e-6)


def test_inspector_and_notes_name_the_loop():
    network = loop_of()
    (loop,) = network.loops
    loop.name = "recurrence"
    engine = trt.compile(network)

    assert "recurrent_kernels: 'recurrence' is one call of machine code" in map(str, engine.notes)
    assert engine.loop_strategies["recurrence"].trips == 4


def assert_agrees(network, inputs, strategy="kernel"):
    engine = trt.compile(network)
    assert {own.name for own in engine.loop_strategies.values()} == {strategy}
    outputs = engine(inputs)
    for name, array in trt.evaluate(network, inputs).items():
        np.testing.assert_allclose(np.asarray(outputs[name]), array, rtol=2e-5, atol=2e-6, err_msg=name)


def drawn(*shape):
    return (np.random.default_rng(len(shape)).standard_normal(shape) / 8).astype(np.float32)


def rnn(x, shape, change=lambda network, loop, h, after: after, terms=None, **named):
    """last: h after h = tanh(row + h R) for the rows of x[16, ..], or what the functions make of it; its inputs."""
    network = trt.INetworkDefinition()
    tensor, loop = network.add_input("x", trt.float32, x), counted(network, 16)
    state = loop.add_recurrence(constant(network, drawn(*shape)))
    h = state.get_output(0)
    sums = (terms or (lambda network, loop, x, h: [loop.add_iterator(x).get_output(0)]))(network, loop, tensor, h)
    total = times(network, h, shape[1])
    for term in sums:
        total = combine(network, total, term)
    after = network.add_activation(total, named.pop("kind", trt.ActivationType.TANH))
    after.alpha, after.beta = named.pop("numbers", (0.0, 0.0))
    state.set_input(1, change(network, loop, h, after.get_output(0)))
    mark(network, last=last(loop, h))
    return network, {"x": drawn(*x)}


def times(network, x, depth, units=32):
    matrix = constant(network, drawn(*(1,) * (len(x.shape) - 2), depth, units))
    return network.add_matrix_multiply(x, PLAIN, matrix, PLAIN).get_output(0)


@pytest.mark.parametrize("rows", [4, 9])
def test_products_of_one_operand_that_are_only_added_all_count(rows):
    def terms(network, loop, x, h):
        row = loop.add_iterator(x).get_output(0)
        return [times(network, row, 20), times(network, h, 32), times(network, row, 20)]

    assert_agrees(*rnn((16, rows, 20), (rows, 32), terms=terms))


@pytest.mark.parametrize("axis", [0, 1])
def test_what_is_added_to_the_products_before_a_loop_may_differ_between_iterations(axis):
    def terms(network, loop, x, h):
        bias = drawn(16, 1, 32) if axis == 0 else drawn(1, 16, 32)
        return [loop.add_iterator(combine(network, times(network, x, 20), constant(network, bias)), axis).get_output(0)]

    assert_agrees(*rnn((16, 16, 20), (16, 32), terms=terms))


def test_products_before_a_loop_may_be_broadcast_to_its_rows():
    def terms(network, loop, x, h):
        total = combine(network, times(network, x, 20), constant(network, drawn(1, 9, 32)))
        return [loop.add_iterator(total).get_output(0)]

    assert_agrees(*rnn((16, 1, 20), (9, 32), terms=terms))


@pytest.mark.parametrize("rows", [4, 9])
def test_products_of_nothing_are_left_to_xla(rows):
    def terms(network, loop, x, h):
        return [times(network, loop.add_iterator(x).get_output(0), 0)]

    assert_agrees(*rnn((16, rows, 0), (rows, 32), terms=terms), strategy="scan")


def masked(sides, transposes=False, shape=(6, 32)):
    """An RNN whose rows change only where one of two numbers is less than the other, and its inputs."""

    def change(network, loop, h, after):
        a, b = sides(network, loop)
        mask = network.add_shuffle(combine(network, a, b, Op.LESS))
        mask.first_transpose = trt.Permutation([1, 0]) if transposes else None
        mask.reshape_dims = (shape[0], 1)
        return network.add_select(mask.get_output(0), after, h).get_output(0)

    return rnn((16, *shape), shape, change)


def lengths_and_counter(network, loop):
    count = network.add_shuffle(counter(network, loop))
    count.reshape_dims = (1, 1)
    return count.get_output(0), constant(network, [[3, 5, 7], [9, 11, 16]], np.int32)


@pytest.mark.parametrize(("transposes", "strategy"), [(False, "kernel"), (True, "scan")])
def test_masks_keep_the_order_of_rows(transposes, strategy):
    assert_agrees(*masked(lengths_and_counter, transposes), strategy=strategy)


@pytest.mark.parametrize(("transposes", "strategy"), [(False, "kernel"), (True, "scan")])
def test_cells_keep_the_order_of_rows(transposes, strategy):
    def change(network, loop, h, after):
        planes = network.add_shuffle(after)
        planes.reshape_dims = (2, 3, 32)
        planes.second_transpose = trt.Permutation([1, 0, 2]) if transposes else None
        rows = network.add_shuffle(planes.get_output(0))
        rows.reshape_dims = (6, 32)
        return rows.get_output(0)

    assert_agrees(*rnn((16, 6, 32), (6, 32), change), strategy=strategy)


def test_masks_of_numbers_that_are_broadcast_are_left_to_xla():
    def sides(network, loop):
        return constant(network, [[3], [5]], np.int32), constant(network, [[2, 4, 6]], np.int32)

    assert_agrees(*masked(sides), strategy="scan")


def test_counters_wrap_around():
    def sides(network, loop):
        count = counter(network, loop, 2**31 - 5)
        mark(network, count=last(loop, count))
        shaped = network.add_shuffle(count)
        shaped.reshape_dims = (1, 1)
        return shaped.get_output(0), constant(network, [[2**31 - 2], [-(2**31) + 3]], np.int32)

    assert_agrees(*masked(sides, shape=(2, 32)))


def test_the_first_parameter_of_clip_wins():
    assert_agrees(*rnn((16, 4, 32), (4, 32), kind=trt.ActivationType.CLIP, numbers=(0.25, -0.25)))


def test_parameters_that_are_one_number_in_float32_share_a_kernel():
    for alpha in (0.1, float(np.float32(0.1))):
        assert_agrees(*rnn((16, 4, 32), (4, 32), kind=trt.ActivationType.LEAKY_RELU, numbers=(alpha, 0.0)))


def test_products_that_nothing_needs_are_left_to_xla():
    def change(network, loop, h, after):
        joined = network.add_concatenation([after, h])
        joined.axis = 1
        part = network.add_slice(joined.get_output(0), (0, 32), (4, 32), (1, 1))
        return combine(network, part.get_output(0), 0.5, Op.PROD)

    assert_agrees(*rnn((16, 4, 32), (4, 32), change), strategy="scan")


@pytest.mark.parametrize(("count", "strategy"), [(1, "kernel"), (2, "scan")])
def test_products_that_only_outputs_need_are_a_quarter_of_a_kernel(count, strategy):
    network, inputs = rnn((16, 4, 32), (4, 32), terms=three_products)
    (loop,) = network.loops
    state = next(layer for layer in network if isinstance(layer, trt.IRecurrenceLayer) and layer.loop is loop)
    y = times(network, state.get_input(1), 32, 32 * count)
    mark(network, y=stacked(loop, y, constant(network, 16, np.int32)))

    assert_agrees(network, inputs, strategy)


def three_products(network, loop, x, h):
    """The row, and two products of what follows from the state."""
    twice = [combine(network, h, factor, Op.PROD) for factor in (0.5, 0.25)]
    return [loop.add_iterator(x).get_output(0), *(times(network, tensor, 32) for tensor in twice)]
