"""States that grow by concatenation are kept in buffers."""

import functools

import jax
import numpy as np
import onnx
import pytest

import netloop as trt
import netloop.onnx
from netloop.compiler.passes import growing_states
from netloop.model.formulas import FormulaBuilder
from netloop.values.enums import ReduceOperation
from tests.support.examples import many, mostly_slow
from tests.support.networks import COUNT, WHILE, last, mark, stacked
from tests.support.onnx_runtime import run

F = np.float32
TABLE = np.random.default_rng(5).standard_normal((3, 3)).astype(F)


@pytest.fixture(autouse=True)
def poisoned_buffers(monkeypatch):
    """Poison in buffers: a result that depends on an element before it is written is NaN or far off."""
    monkeypatch.setattr(
        growing_states,
        "garbage",
        lambda dtype: np.full((), np.nan if dtype.kind == "f" else dtype.kind != "b" and 77, dtype),
    )


def attention(make, grown, row):
    scores = make.matmul(row, make.transpose(grown, [1, 0]))
    return make.matmul(make.softmax(scores, 1), grown)


def scaled_attention(make, grown, row):
    """Scores divided by the root of the number of rows, as a formula of the shape."""
    length = make.cast(make.list_tensor([make.length(grown, 0)]), F)
    scores = make.matmul(row, make.transpose(grown, [1, 0]))
    scores = make.div(scores, make.expand_dims(make.unary(trt.UnaryOperation.SQRT, length), [0]))
    return make.matmul(make.softmax(scores, 1), grown)


def masked_attention(make, grown, row):
    """Scores plus the first elements of a row of numbers, as many as there are scores."""
    biases = make.constant(np.linspace(0, 3, 60, dtype=F).reshape(1, 60))
    bias = make.slice(biases, [0], make.list_tensor([make.length(grown, 0)]), axes=[1])
    scores = make.add(make.matmul(row, make.transpose(grown, [1, 0])), bias)
    return make.matmul(make.softmax(scores, 1), grown)


def heads(make, grown, row):
    """Attention of three heads of one number each, reshaped by lengths of the shape."""
    length = make.length(grown, 0)
    keys = make.transpose(make.reshape(grown, [1, length, 3, 1]), [0, 2, 1, 3])
    queries = make.reshape(row, [1, 3, 1, 1])
    shares = make.softmax(make.matmul(queries, make.transpose(keys, [0, 1, 3, 2])), 3)
    return make.reshape(make.matmul(shares, keys), [1, 3])


def reduced(op):
    return lambda make, grown, row: make.reduce(op, grown, [0], keep=True)


def positions(make, grown, row):
    """The sum of the rows, each multiplied with its number."""
    numbers = make.cast(make.arange(make.length(grown, 0)), F)
    return make.sum(make.mul(grown, make.expand_dims(numbers, [1])), [0], keep=True)


def top(make, grown, row):
    layer = make.network.add_topk(grown, trt.TopKOperation.MAX, 1, 1 << 0)
    return make.add(layer.get_output(0), make.cast(layer.get_output(1), F))


def backwards(make, grown, row):
    numbers = make.cast(make.arange(make.length(grown, 0)), F)
    return make.sum(make.mul(make.backwards(grown, [0]), make.expand_dims(numbers, [1])), [0], keep=True)


def without_first(make, grown, row):
    rows = make.sub(make.list_tensor([make.length(grown, 0)]), np.int64(1))
    return make.sum(make.slice(grown, [1], rows, axes=[0]), [0], keep=True)


def normalized(make, grown, row):
    one, zero = (make.constant(np.full((1, 3), number, F)) for number in (1, 0))
    return make.sum(make.network.add_normalization(grown, one, zero, 1 << 1).get_output(0), [0], True)


def expanded(make, grown, row):
    """The sum of as many rows as exporters compute where -1 stands for the length."""
    length = make.list_tensor([make.length(grown, 0)])
    size = make.where(make.equal(length, np.int64(-1)), np.int64(1), length)
    return make.sum(make.slice(grown, [0], size, axes=[0]), [0], keep=True)


READERS = {
    "attention": attention,
    "scaled attention": scaled_attention,
    "masked attention": masked_attention,
    "heads": heads,
    **{op.name: reduced(op) for op in ReduceOperation if op is not ReduceOperation.NONE},
    "positions": positions,
    "top": top,
    "backwards": backwards,
    "without first": without_first,
    "last row": lambda make, grown, row: make.gather(grown, make.constant([-1]), 0),
    "first row": lambda make, grown, row: make.gather(grown, make.constant([0]), 0),
    "middle row": lambda make, grown, row: make.gather(
        grown, make.floor_div(make.list_tensor([make.length(grown, 0)]), np.int64(2)), 0
    ),
    "last slice": lambda make, grown, row: make.slice_between(
        grown, make.constant([-1]), make.constant([2**62]), make.constant([0])
    ),
    "running": lambda make, grown, row: make.sum(make.cumulative_sum(grown, 0), [0], keep=True),
    "prefix": lambda make, grown, row: make.sum(make.concat([make.constant(TABLE), grown], 0), [0], keep=True),
    "expanded": expanded,
    "compared": lambda make, grown, row: make.cast(make.less(make.sum(grown, [0], True), 0.5), F),
    "normalized": normalized,
}  # fmt: skip


def decoder(read, rows=0, trips=None, step=1, most=None, is_open=False):
    """Rows that a loop adds to a state [rows, 3], and reads with ``read``.

    h: the numbers after each iteration; cache: the state after the loop. The trip count is n, or ``trips``; ``most``
    ends the loop once the sum of the numbers exceeds it, or after 20 iterations.
    """
    network = trt.INetworkDefinition()
    make = FormulaBuilder(network)
    count = network.add_input("n", trt.int64, ()) if trips is None else make.constant(np.int64(trips))
    loop = network.add_loop()
    loop.name = "decoder"
    if trips != 0 or not is_open:
        loop.add_trip_limit(count, COUNT)
    h = loop.add_recurrence(network.add_input("x", trt.float32, (1, 3)))
    cache = loop.add_recurrence(make.constant(TABLE[:rows]))
    cache.keeps_shape = False
    row = h.get_output(0)
    new = make.concat([make.mul(row, F(k + 1)) for k in range(step)], 0)
    grown = make.concat([cache.get_output(0), new], 0)
    cache.set_input(1, grown)
    after = make.activation(trt.ActivationType.TANH, make.add(make.mul(row, F(0.7)), read(make, grown, row)))
    h.set_input(1, after)
    if most is not None:
        is_below = make.less(make.scalar(make.sum(row, [0, 1])), F(most))
        is_early = make.less(make.counter(loop).get_output(0), np.int64(20))
        loop.add_trip_limit(make.logical_and(is_below, is_early), WHILE)
    h = last(loop, row) if is_open else stacked(loop, after, count)
    return mark(network, h=h, cache=last(loop, cache.get_output(0)))


X = np.array([[0.3, -0.2, 0.5]], F)


def same_as_the_reference(network, inputs, kind="scan", tolerance=1e-5):
    """Compare an engine with the reference; return the engine."""
    engine = trt.compile(network)
    found, wanted = engine(inputs), trt.evaluate(network, inputs)
    for name, array in wanted.items():
        assert np.asarray(found[name]).shape == array.shape
        np.testing.assert_allclose(np.asarray(found[name]), array, tolerance, tolerance, err_msg=name)
    assert {strategy.name for strategy in engine.loop_strategies.values()} == {kind}, [
        strategy.why for strategy in engine.loop_strategies.values()
    ]
    return engine


@pytest.mark.parametrize("read", READERS)
def test_reader_gives_the_same_numbers(read):
    same_as_the_reference(decoder(READERS[read], trips=5), {"x": X})


@pytest.mark.parametrize("trips", [0, 1, 2, 7, 8, 9])
@pytest.mark.parametrize("rows", mostly_slow(2, [0, 2, 1]))
def test_trip_count_of_a_call(trips, rows):
    same_as_the_reference(decoder(attention, rows), {"x": X, "n": np.int64(trips)})


def several_rows(read, step, trips):
    """Every number of iterations and rows of one reader, and for others some of them; the rest is slow."""
    is_fast = (step, trips) in (((2, 0), (2, 1), (2, 8), (3, 3)) if read == "attention" else ((2, 8), (3, 3)))
    return pytest.param(read, step, trips, marks=() if is_fast else pytest.mark.slow)


@pytest.mark.parametrize(
    ("read", "step", "trips"),
    [
        several_rows(read, step, trips)
        for read in ("attention", "last row", "AVG", "backwards", "heads")
        for step in (2, 3)
        for trips in (0, 1, 3, 8)
    ],
)
def test_several_rows_an_iteration(read, step, trips):
    same_as_the_reference(decoder(READERS[read], 1, trips, step), {"x": X})


@pytest.mark.parametrize("most", [-9, 0.0, 1.0, 9])
def test_loop_that_a_while_ends_early(most):
    network = decoder(attention, 1, 12, most=most)

    engine = same_as_the_reference(network, {"x": X}, "while")
    assert any("buffer" in note.what for note in engine.notes)


def test_program_of_one_piece_has_a_known_final_shape():
    engine = trt.compile(decoder(attention, 2, 5))

    assert engine.latest is not None
    assert engine.latest.compiled is not None
    assert engine({"x": X})["cache"].shape == (7, 3)
    assert engine.loop_strategies["decoder"].why.endswith("; its states grow in buffers")


def test_pass_is_turned_off():
    network = decoder(attention, 2, 5)

    engine = trt.compile(network, passes=set(trt.PASSES) - {"growing_states"})
    assert engine({"x": X})["cache"].shape == (7, 3)
    assert engine.loop_strategies["decoder"].name == "host"


def test_known_trip_count_of_a_call_needs_no_stacked_output():
    network = decoder(attention, 1, is_open=True)
    engine = trt.compile(network)

    for trips in (0, 1, 7, 8, 9, 20, 3):
        found, wanted = (
            run({"x": X, "n": np.int64(trips)}) for run in (engine, lambda given: trt.evaluate(network, given))
        )
        for name, array in wanted.items():
            np.testing.assert_allclose(np.asarray(found[name]), array, 1e-5, 1e-5)
    assert engine.loop_strategies["decoder"].name == "while"


def growing_until(rows=1, count=None, axis=0, width=2):
    """tokens: rows of the number of the row, until there are m of them; total: the sum of their largest numbers."""
    network = trt.INetworkDefinition()
    make = FormulaBuilder(network)
    loop = network.add_loop()
    loop.name = "search"
    if count is not None:
        loop.add_trip_limit(make.constant(np.int64(count)), COUNT)
    shape = [width, width]
    shape[axis] = rows
    tokens = loop.add_recurrence(make.constant(np.arange(width * rows, dtype=np.int64).reshape(shape)))
    tokens.keeps_shape = False
    now = tokens.get_output(0)
    shape[axis] = 1
    ones = make.constant(np.ones(shape, np.int64))
    # from now on the length of the state is not known
    tokens.set_input(1, make.concat([now, ones], axis))
    length = make.tensor(make.length(now, axis))
    loop.add_trip_limit(make.less(length, network.add_input("m", trt.int64, ())), WHILE)
    grown = make.concat([now, make.mul(ones, length)], axis)
    tokens.set_input(1, grown)
    total = loop.add_recurrence(make.constant(np.int64(0)))
    total.set_input(1, make.add(total.get_output(0), make.reduce(ReduceOperation.MAX, grown, [0, 1])))
    return mark(network, tokens=last(loop, now), total=last(loop, total.get_output(0)))


@pytest.mark.parametrize(("rows", "count", "axis"), [(0, None, 0), (1, None, 1), (3, 1 << 40, 0)])
def test_buffer_of_an_open_loop_becomes_larger(rows, count, axis):
    network = growing_until(rows, count, axis)
    engine = trt.compile(network)

    for most in (0, 1, 2, 7, 8, 9, 10, 17, 40, 3):
        inputs = {"m": np.int64(most)}
        found, wanted = engine(inputs), trt.evaluate(network, inputs)
        for name, array in wanted.items():
            np.testing.assert_array_equal(np.asarray(found[name]), array)
    assert engine.loop_strategies["search"].name == "while"


def test_large_buffer_becomes_larger():
    """Buffers that numpy does not allocate, as they are large."""
    network = growing_until(width=10_000)
    inputs = {"m": np.int64(20)}

    np.testing.assert_array_equal(trt.compile(network)(inputs)["tokens"], trt.evaluate(network, inputs)["tokens"])


def list_until():
    """listed: a sequence of rows [x, x 2, x 4, ...] until one has an element of m or more."""
    network = trt.INetworkDefinition()
    make = FormulaBuilder(network)
    loop = network.add_loop()
    loop.name = "search"
    row = loop.add_recurrence(network.add_input("x", trt.float32, (1, 3)))
    now = row.get_output(0)
    most = make.reduce(ReduceOperation.MAX, now, [0, 1])
    loop.add_trip_limit(make.less(most, network.add_input("m", trt.float32, ())), WHILE)
    row.set_input(1, make.mul(now, F(2)))
    listed = loop.add_recurrence(network.add_sequence([], trt.float32).get_output(0))
    listed.keeps_shape = False
    listed.set_input(1, network.add_sequence_insert(listed.get_output(0), now).get_output(0))
    found = last(loop, listed.get_output(0))
    return mark(network, listed=found, number=network.add_sequence_length(found).get_output(0))


def test_list_of_an_open_loop_is_a_buffer_that_becomes_larger():
    network = list_until()
    engine = trt.compile(network)

    for trips in (0, 1, 7, 8, 9, 17, 3):
        inputs = {"x": X, "m": F(0.49 * 2**trips)}
        found, wanted = engine(inputs), trt.evaluate(network, inputs)
        assert int(found["number"]) == len(wanted["listed"]) == trips
        for array, other in zip(found["listed"], wanted["listed"], strict=True):
            np.testing.assert_array_equal(np.asarray(array), other)
    assert engine.loop_strategies["search"].name == "while"


# ---------------------------------------------------------------------------- decoders of ONNX


def greedy(limit, mask=""):
    """A decoder with a key-value cache that is empty at first, and ends at token 0."""
    scores = "bs = Shape (sc) bias = Slice (biases, zeros, bs) am = Add (sc, bias)" if mask else "am = Identity (sc)"
    return f"""
        <ir_version: 8, opset_import: ["" : 16]>
        g (int64 n, int64 start, int64 most) => (int64[K] tokens, float[C, 4] cache_out, int64[L] ids_out) {{
            t = Constant <value = bool {{1}}> ()  z = Constant <value = int64 {{0}}> ()
            z1 = Constant <value_ints = [0]> ()  zeros = Constant <value_ints = [0, 0]> ()
            cs = Constant <value_ints = [0, 4]> ()  c0 = ConstantOfShape (cs)  ids0 = Unsqueeze (start, z1)
            last, cache_out, ids_out, tokens = Loop ({limit}, t, start, c0, ids0)
            <body = b (int64 i, bool c, int64 tok, float[P, 4] cache, int64[Q] ids)
             => (bool go, int64 tok2, float[P2, 4] k2, int64[Q2] ids2, int64 tok3) {{
                e = Gather (emb, tok)  q = Unsqueeze (e, z1)  kv = MatMul (q, w)  k2 = Concat <axis = 0> (cache, kv)
                kt = Transpose <perm = [1, 0]> (k2)  sc = MatMul (q, kt)  {scores}
                sm = Softmax <axis = -1> (am)  h = MatMul (sm, k2)
                all = Gather (emb, ids)  mean = ReduceMean <axes = [0], keepdims = 1> (all)
                hh = Add (h, mean)  lg = MatMul (hh, o)  lgs = Squeeze (lg, z1)
                tok2 = ArgMax <axis = 0, keepdims = 0> (lgs)  tok3 = Identity (tok2)
                t1 = Unsqueeze (tok2, z1)  ids2 = Concat <axis = 0> (ids, t1)
                go0 = Equal (tok2, z)  go1 = Not (go0)  go2 = Less (i, most)  go = And (go1, go2)
            }}>
        }}
    """


def with_weights(text, seed):
    random = np.random.default_rng(seed)
    proto = onnx.parser.parse_model(text)
    weights = {
        "emb": random.normal(size=(7, 4)) * 1.5,
        "w": random.normal(size=(4, 4)) * 1.5,
        "o": random.normal(size=(4, 7)) * 1.5,
        "biases": random.normal(size=(1, 40)),
    }
    proto.graph.initializer.extend(
        onnx.numpy_helper.from_array(array.astype(F), name) for name, array in weights.items()
    )
    return proto


@pytest.mark.parametrize(("limit", "mask"), mostly_slow(2, [("n", "mask"), ("", ""), ("n", "")]))
def test_greedy_decoders_give_the_tokens_of_onnxruntime(limit, mask):
    lengths = set()
    for seed in (0, 4):
        proto = with_weights(greedy(limit, mask), seed)
        engine = trt.compile(netloop.onnx.load(proto))
        for start, most in ((4, 2), (1, 7), (4, 8)):
            inputs = {"n": np.int64(20), "start": np.int64(start), "most": np.int64(most)}
            found, wanted = engine(inputs), run(proto, inputs)
            for name, array in wanted.items():
                np.testing.assert_allclose(np.asarray(found[name]), array, 1e-4, 1e-4, err_msg=f"{name} {inputs}")
            lengths.add(len(wanted["tokens"]))
        assert {strategy.name for strategy in engine.loop_strategies.values()} == {"while"}
    assert {3, 8, 9} <= lengths


# ---------------------------------------------------------------------------- more than one state, loop or branch


def key_value_decoder(trips):
    """Attention with keys and values [1, 2, rows, 3] that begin with 0 and with 2 rows; the values are joined last."""
    network = trt.INetworkDefinition()
    make = FormulaBuilder(network)
    loop = network.add_loop()
    loop.add_trip_limit(make.constant(np.int64(trips)), COUNT)
    h = loop.add_recurrence(network.add_input("x", trt.float32, (1, 2, 1, 3)))
    row, states = h.get_output(0), []
    for factor, rows in ((1, 0), (2, 0), (3, 2)):
        state = loop.add_recurrence(make.constant(np.ones((1, 2, rows, 3), F)))
        state.keeps_shape = False
        state.set_input(1, make.concat([state.get_output(0), make.mul(row, F(factor))], 2))
        states.append(state)
    keys, values, others = (state.tensor(1) for state in states)
    shares = make.softmax(make.matmul(row, make.transpose(keys, [0, 1, 3, 2])), 3)
    after = make.add(make.matmul(shares, values), make.mean(others, [2], keep=True))
    h.set_input(1, make.activation(trt.ActivationType.TANH, after))
    return mark(
        network, h=last(loop, row), **{f"s{at}": last(loop, state.get_output(0)) for at, state in enumerate(states)}
    )


@pytest.mark.parametrize("trips", [0, 1, 2, 7])
def test_several_states_grow(trips):
    same_as_the_reference(key_value_decoder(trips), {"x": np.linspace(-1, 1, 6, dtype=F).reshape(1, 2, 1, 3)})


def within_a_loop(count):
    """totals: the sums of the rows of an inner loop of ``count(i)`` iterations, for each i below 3."""
    network = trt.INetworkDefinition()
    make = FormulaBuilder(network)
    outer, inner = network.add_loop(), network.add_loop()
    outer.add_trip_limit(make.constant(np.int64(3)), COUNT)
    i = make.counter(outer).get_output(0)
    start = make.mul(network.add_input("x", trt.float32, (1, 3)), make.cast(make.expand_dims(i, [0]), F))
    inner.add_trip_limit(count(make, i), COUNT)
    h = inner.add_recurrence(start)
    cache = inner.add_recurrence(make.constant(TABLE[:1]))
    cache.keeps_shape = False
    cache.set_input(1, make.concat([cache.get_output(0), h.get_output(0)], 0))
    h.set_input(1, attention(make, cache.tensor(1), h.get_output(0)))
    total = make.sum(last(inner, cache.get_output(0)), [0])
    return mark(network, totals=stacked(outer, total, make.constant(np.int64(3))))


def test_loop_inside_of_a_loop_is_one_program():
    network = within_a_loop(lambda make, i: make.constant(np.int64(4)))

    engine = same_as_the_reference(network, {"x": X})
    assert engine.latest.compiled is not None


def test_inner_loop_whose_count_an_outer_one_decides():
    network = within_a_loop(lambda make, i: make.mul(i, np.int64(5)))
    engine = trt.compile(network)
    found = engine({"x": X})

    np.testing.assert_allclose(np.asarray(found["totals"]), trt.evaluate(network, {"x": X})["totals"], 1e-5)
    assert sorted(strategy.name for strategy in engine.loop_strategies.values()) == ["host", "while"]


def read_in_a_branch(make, grown, row):
    choice = make.network.add_if_conditional()
    choice.set_condition(make.less(make.scalar(make.sum(row, [0, 1])), F(0.5)))
    inside = choice.add_input(grown).get_output(0)
    return choice.add_output(make.sum(inside, [0], keep=True), make.mul(attention(make, grown, row), F(2))).get_output(
        0
    )


def read_in_a_loop(make, grown, row):
    """Two steps of attention over the same rows."""
    loop = make.network.add_loop()
    loop.add_trip_limit(make.constant(np.int64(2)), COUNT)
    query = loop.add_recurrence(row)
    query.set_input(1, attention(make, grown, query.get_output(0)))
    return last(loop, query.get_output(0))


@pytest.mark.parametrize("read", [read_in_a_branch, read_in_a_loop])
def test_state_is_read_in_an_inner_block(read):
    same_as_the_reference(decoder(read, 1, 4), {"x": X})


@pytest.mark.parametrize("flag", [True, False])
def test_loop_in_a_branch(flag):
    network = decoder(attention, 1, 4)
    make = FormulaBuilder(network)
    h, cache = network.outputs
    choice = network.add_if_conditional()
    choice.set_condition(network.add_input("flag", trt.bool, ()))
    y = choice.add_output(make.sum(h, [0]), make.mul(network.inputs[0], F(2))).get_output(0)
    network.unmark_output(h)
    network.unmark_output(cache)

    same_as_the_reference(mark(network, y=y), {"x": X, "flag": np.array(flag)})


# ---------------------------------------------------------------------------- negative cases


def scattered(make, grown, row):
    return make.sum(make.scatter_nd(grown, make.constant([[0]]), row), [0], keep=True)


def last_five(make, grown, row):
    return make.sum(
        make.slice_between(grown, make.constant([-5]), make.constant([2**62]), make.constant([0])), [0], keep=True
    )


def three_of_six(make, grown, row):
    """The first of the rows, and the next two if there are six."""
    length = make.list_tensor([make.length(grown, 0)])
    size = make.where(make.equal(length, np.int64(6)), np.int64(3), np.int64(1))
    return make.sum(make.slice(grown, [0], size, axes=[0]), [0], keep=True)


@pytest.mark.parametrize(
    ("read", "why"),
    [
        (scattered, "reads what grows whole"),
        (three_of_six, "has a shape that does not follow from the number of the iteration"),
        (last_five, "does not grow by as many elements in each iteration"),
    ],
)
def test_other_readers_leave_the_loop_on_the_host(read, why):
    engine = same_as_the_reference(decoder(read, 1, 8), {"x": X}, "host")

    assert why in engine.loop_strategies["decoder"].why


def test_state_that_doubles_stays_on_the_host():
    network = trt.INetworkDefinition()
    make = FormulaBuilder(network)
    loop = network.add_loop()
    loop.name = "doubling"
    loop.add_trip_limit(make.constant(np.int64(3)), COUNT)
    state = loop.add_recurrence(network.add_input("x", trt.float32, (1, 3)))
    state.keeps_shape = False
    state.set_input(1, make.concat([state.get_output(0), state.get_output(0)], 0))

    engine = same_as_the_reference(mark(network, y=last(loop, state.get_output(0))), {"x": X}, "host")
    assert "by as many elements" in engine.loop_strategies["doubling"].why


def test_rows_whose_shape_only_an_iteration_gives_stay_on_the_host():
    engine = same_as_the_reference(decoder(READERS["last slice"], 1, 3, most=-9), {"x": X}, "host")

    assert "is not known without an iteration" in engine.loop_strategies["decoder"].why


@pytest.mark.parametrize("max_trips", [3, 8, 20])
def test_loop_with_too_many_iterations_fails(max_trips):
    engine = trt.compile(growing_until(), max_trips=max_trips)

    assert len(engine({"m": np.int64(max_trips + 1)})["tokens"]) == max_trips + 1
    with pytest.raises(trt.ExecutionError, match=f"NL609: 'search' executes more than {max_trips} iterations"):
        engine({"m": np.int64(max_trips + 2)})


def test_buffer_that_becomes_too_large_is_refused(monkeypatch):
    monkeypatch.setattr("netloop.compiler.host.growing_loop.FAR", 16)
    engine = trt.compile(growing_until())

    assert len(engine({"m": np.int64(17)})["tokens"]) == 17
    with pytest.raises(trt.ExecutionError, match="NL666: 'search' makes more than 16 iterations"):
        engine({"m": np.int64(18)})


@pytest.mark.parametrize("most", [13, 14, 40])
def test_iterator_that_ends_fails_in_a_larger_buffer(most):
    """13 rows need 12 iterations, and the iterator has 12 elements."""
    network = growing_until()
    make, loop = FormulaBuilder(network), network.loops[0]
    element = loop.add_iterator(network.add_input("xs", trt.float32, (12,))).get_output(0)
    total = loop.add_recurrence(make.constant(F(0)))
    total.set_input(1, make.add(total.get_output(0), element))
    mark(network, sum=last(loop, total.get_output(0)))
    inputs = {"m": np.int64(most), "xs": np.arange(12, dtype=F)}

    if most == 13:
        assert trt.compile(network)(inputs)["sum"] == 66
    else:
        with pytest.raises(trt.ExecutionError, match="reads past the end of axis 0, which has 12 elements"):
            trt.compile(network)(inputs)


def with_a_value_that_may_fail():
    """first: the sum of m rows that a loop adds, row p of a list of one, or 7 if it is not needed; numbers: 0 to m."""
    network = trt.INetworkDefinition()
    make = FormulaBuilder(network)
    rows = network.add_sequence([make.constant(np.float32([1, 2]))], trt.float32).get_output(0)
    row = network.add_sequence_at(rows, network.add_input("p", trt.int64, ())).get_output(0)
    loop = network.add_loop()
    number = make.counter(loop).get_output(0)
    loop.add_trip_limit(make.less(number, network.add_input("m", trt.int64, ())), WHILE)
    states = []
    for start, part in ((np.zeros((0, 2), F), row), (np.zeros(0, np.int64), number)):
        state = loop.add_recurrence(make.constant(start))
        state.keeps_shape = False
        state.set_input(1, make.concat([state.get_output(0), make.expand_dims(part, [0])], 0))
        states.append(last(loop, state.get_output(0)))
    choice = network.add_if_conditional()
    choice.set_condition(network.add_input("needed", trt.bool, ()))
    first = choice.add_output(make.sum(states[0], [0, 1]), make.constant(F(7))).get_output(0)
    return mark(network, first=first, numbers=states[1])


@pytest.mark.parametrize("needed", [True, False])
@pytest.mark.parametrize("most", [0, 3, 20])
def test_value_that_failed_counts_where_it_is_needed(most, needed):
    network = with_a_value_that_may_fail()
    inputs = {"p": np.int64(3), "m": np.int64(most), "needed": np.array(needed)}
    engine = trt.compile(network)

    if most and needed:
        with pytest.raises(trt.ExecutionError, match="position 3 is out of range for a sequence of 1 tensors"):
            engine(inputs)
    else:
        assert np.asarray(engine(inputs)["numbers"]).tolist() == list(range(most))


@pytest.mark.parametrize(("count", "n"), [(None, 60), (100, None)])
def test_iteration_that_is_not_possible_fails_if_it_is_made(count, n):
    """The table of masked attention has 60 numbers."""
    network = decoder(masked_attention, 0, count, is_open=n is not None, most=None if count is None else 0.9)
    inputs = {"x": X} if n is None else {"x": X, "n": np.int64(n)}

    same_as_the_reference(network, inputs, "while", 1e-4)
    if n is not None:
        with pytest.raises(trt.ExecutionError, match=r"iteration 60 of 'decoder': .*axis 1"):
            trt.compile(network)({"x": X, "n": np.int64(61)})


# ---------------------------------------------------------------------------- derivatives


def test_derivatives_are_those_of_the_reference(monkeypatch):
    monkeypatch.undo()
    network = decoder(attention, 1, 5)
    function, weights = trt.to_jax(network)

    def total(x):
        return function(weights, {"x": x})["cache"].sum()

    step = 1e-2 * np.eye(3, dtype=F)
    ends = [[trt.evaluate(network, {"x": X + sign * d[None]})["cache"].sum() for sign in (1, -1)] for d in step]
    np.testing.assert_allclose(jax.grad(total)(X)[0], [(up - down) / 2e-2 for up, down in ends], 2e-3)


def test_bound_makes_room_for_a_pure_function():
    network = growing_until()
    network.unmark_output(network.outputs[0])
    function, weights = trt.to_jax(network, bound={"search": 12})

    for most in (0, 1, 4, 13):
        inputs = {"m": np.int64(most)}
        assert int(function(weights, inputs)["total"]) == trt.evaluate(network, inputs)["total"]
    function, weights = trt.to_jax(network)
    with pytest.raises(trt.NetworkError, match=r"NL674: 'search' appends in each iteration"):
        function(weights, {"m": np.int64(4)})


# ---------------------------------------------------------------------------- random networks


def random_decoder(seed):
    random = np.random.default_rng(seed)
    names = random.choice(sorted(READERS), random.integers(1, 4), replace=False)

    def read(make, grown, row):
        return functools.reduce(make.add, [READERS[name](make, grown, row) for name in names])

    rows, step, trips = (int(number) for number in random.integers((0, 1, 0), (4, 4, 12)))
    end = random.integers(4)
    inputs = {"x": random.standard_normal((1, 3)).astype(F)}
    if end == 0:
        return decoder(read, rows, max(1, trips), step), inputs, "scan"
    if end == 1:
        # without an iteration, the rows of a slice of open length have no length that would be known
        is_open = "last slice" in names
        return decoder(read, rows, 12, step, most=float(random.uniform(-1, 2)), is_open=is_open), inputs, "while"
    if end == 2:
        return decoder(read, rows, None, step, is_open=True), inputs | {"n": np.int64(trips)}, "while"
    return decoder(read, rows, 1 << 40, step, most=0.9, is_open=True), inputs, "while"


def check_random(seed):
    network, inputs, kind = random_decoder(seed)
    same_as_the_reference(network, inputs, kind, 1e-4)


@pytest.mark.parametrize("seed", mostly_slow(4, range(8)))
def test_random_decoders(seed):
    check_random(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", many(30, 8))
def test_many_random_decoders(seed):
    check_random(seed)
