"""Each method of the formula builder, compared with numpy: with known shapes, and with shapes that a call decides."""

from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any

import numpy as np
import pytest

import netloop as trt
from netloop.model.formulas import FormulaBuilder as F
from netloop.model.formulas import as_dtype
from netloop.model.formulas.reduce import bitmask
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import LayerError

Arrays = Mapping[str, np.ndarray]
Act, Mode, Op, Reduce, Unary = (
    trt.ActivationType,
    trt.SampleMode,
    trt.ElementWiseOperation,
    trt.ReduceOperation,
    trt.UnaryOperation,
)
NAN, INF = np.float32("nan"), np.float32("inf")

ARRAYS = {
    "x": np.linspace(-2, 2.6, 24, dtype=np.float32).reshape(2, 3, 4),
    "y": np.array([0.5, -1, 2, 3], np.float32),
    "i": np.array([[1, -2, 3], [0, 5, -7]], np.int32),
    "j": np.array([[2, 3, -2], [4, -3, 2]], np.int32),
    "b": np.array([True, False, True, False]),
    "s": np.array([NAN, INF, -INF, 1], np.float32),
    "image": np.arange(32, dtype=np.float32).reshape(1, 8, 2, 2),
    "shares": np.array([[0, 1, 0], [0, 0, 1]], np.float32),
}
x, y, i, j, b, s, image = (ARRAYS[name] for name in ("x", "y", "i", "j", "b", "s", "image"))


def softmax(array: np.ndarray) -> np.ndarray:
    powers = np.exp(array - array.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def rows_of(array: np.ndarray) -> np.ndarray:
    """Depth to space of [1, 8, 2, 2] by hand, the position in a block first: [1, 2, 4, 4]."""
    made = np.zeros((1, 2, 4, 4), array.dtype)
    for row, column in np.ndindex(2, 2):
        made[:, :, row::2, column::2] = array[:, 4 * row + 2 * column : 4 * row + 2 * column + 2]
    return made


CASES: dict[str, tuple[Callable[[F, Mapping[str, ITensor]], ITensor], Any]] = {
    # constants and types
    "constant of ints": (lambda f, t: f.constant([1, 2]), np.array([1, 2], np.int64)),
    "constant of floats": (lambda f, t: f.constant([0.5]), np.array([0.5], np.float32)),
    "constant of a type": (lambda f, t: f.constant(7, np.int32), np.int32(7)),
    "cast": (lambda f, t: f.cast(t["i"], np.float32), i.astype(np.float32)),
    "cast of numbers": (lambda f, t: f.cast([1.7], np.int32), np.array([1], np.int32)),
    "identity": (lambda f, t: f.identity(t["y"]), y),
    # arithmetic
    "add, aligned": (lambda f, t: f.add(t["x"], t["y"]), x + y),
    "add a number": (lambda f, t: f.add(t["i"], 2), i + 2),
    "sub from a number": (lambda f, t: f.sub(1, t["y"]), 1 - y),
    "mul": (lambda f, t: f.mul(t["i"], t["j"]), i * j),
    "div": (lambda f, t: f.div(t["x"], t["y"]), x / y),
    "div of ints": (lambda f, t: f.div(t["i"], t["j"]), np.trunc(i / j).astype(np.int32)),
    "floor_div": (lambda f, t: f.floor_div(t["i"], t["j"]), i // j),
    "modulo": (lambda f, t: f.modulo(t["i"], t["j"]), i % j),
    "power": (lambda f, t: f.power(t["y"], 2), y**2),
    "maximum": (lambda f, t: f.maximum(t["x"], t["y"]), np.maximum(x, y)),
    "minimum": (lambda f, t: f.minimum(t["x"], t["y"]), np.minimum(x, y)),
    "elementwise": (lambda f, t: f.elementwise(Op.SUM, t["i"], t["j"]), i + j),
    # logic
    "equal": (lambda f, t: f.equal(t["i"], 0), i == 0),
    "less": (lambda f, t: f.less(t["s"], 1), s < 1),
    "greater": (lambda f, t: f.greater(t["s"], 0), s > 0),
    "less_equal": (lambda f, t: f.less_equal(t["s"], 1), s <= 1),
    "greater_equal": (lambda f, t: f.greater_equal(t["s"], 1), s >= 1),
    "logical_and": (lambda f, t: f.logical_and(t["b"], f.less(t["y"], 1)), b & (y < 1)),
    "logical_or": (lambda f, t: f.logical_or(t["b"], f.less(t["y"], 1)), b | (y < 1)),
    "logical_not": (lambda f, t: f.logical_not(t["b"]), ~b),
    "where": (lambda f, t: f.where(t["b"], t["x"], 9.0), np.where(b, x, np.float32(9))),
    # functions
    "unary": (lambda f, t: f.unary(Unary.EXP, t["y"]), np.exp(y)),
    "activation": (lambda f, t: f.activation(Act.LEAKY_RELU, t["y"], 0.25), np.where(y < 0, y / 4, y)),
    "clip": (lambda f, t: f.clip(t["y"], -0.5, 2.0), np.clip(y, -0.5, 2)),
    "is_infinite": (lambda f, t: f.is_infinite(t["s"]), np.isinf(s)),
    "is_infinite, negative": (lambda f, t: f.is_infinite(t["s"], positive=False), np.isneginf(s)),
    "is_infinite, positive": (lambda f, t: f.is_infinite(t["s"], negative=False), np.isposinf(s)),
    "parametric_relu": (lambda f, t: f.parametric_relu(t["x"], t["y"]), np.where(x < 0, x * y, x)),
    "parametric_relu of ints": (lambda f, t: f.parametric_relu(t["i"], t["j"]), np.where(i < 0, i * j, i)),
    # shapes
    "shape": (lambda f, t: f.shape(t["x"]), np.array([2, 3, 4])),
    "length": (lambda f, t: f.tensor(f.length(t["x"], -1)), np.int64(4)),
    "size": (lambda f, t: f.size(t["x"]), np.int64(24)),
    "product": (lambda f, t: f.tensor(f.product([2, f.length(t["x"], 1), f.length(t["x"], 2)])), np.int64(24)),
    "merge_axes": (lambda f, t: f.merge_axes(t["x"], 2), x.reshape(6, 4)),
    "merge_axes before the first": (lambda f, t: f.merge_axes(t["x"], 0), x.reshape(1, 24)),
    "list_tensor": (lambda f, t: f.list_tensor([1, f.length(t["x"], 0), f.size(t["y"])]), np.array([1, 2, 4])),
    "flat": (lambda f, t: f.flat(t["x"]), x.reshape(-1)),
    "scalar": (lambda f, t: f.scalar(f.slice(t["y"], [2], [1])), y[2]),
    "reshape": (lambda f, t: f.reshape(t["x"], [f.length(t["x"], 2), -1]), x.reshape(4, 6)),
    "reshape, 0 copies": (lambda f, t: f.reshape(t["x"], [0, -1], zero_copies=True), x.reshape(2, 12)),
    "transpose": (lambda f, t: f.transpose(t["x"], [2, 0, -2]), x.transpose(2, 0, 1)),
    "expand_dims": (lambda f, t: f.expand_dims(t["y"], [0, 2]), y[None, :, None]),
    "squeeze": (lambda f, t: f.squeeze(f.expand_dims(t["y"], [0, 1]), [0]), y[None]),
    "squeeze of all": (lambda f, t: f.squeeze(f.constant([[5]])), np.int64(5)),
    "along": (lambda f, t: f.along(t["y"], 3, 1), y[None, :, None]),
    "full": (lambda f, t: f.full([2, f.length(t["y"], 0)], 3, np.int8), np.full((2, y.shape[0]), 3, np.int8)),
    "broadcast_to": (lambda f, t: f.broadcast_to(t["y"], [2, 3, 1]), np.broadcast_to(y, (2, 3, 4))),
    # parts
    "concat": (lambda f, t: f.concat([t["i"], t["j"]], 1), np.concatenate([i, j], 1)),
    "stack": (lambda f, t: f.stack([t["i"], t["j"]], 1), np.stack([i, j], 1)),
    "slice": (lambda f, t: f.slice(t["x"], [0, 2, 1], [2, 2, 2], [1, -1, 2]), x[:, 2:0:-1, 1::2]),
    "slice of an axis": (lambda f, t: f.slice(t["x"], [1], [2], axes=[-1]), x[..., 1:3]),
    "slice outside": (lambda f, t: f.slice(t["y"], [-1], [6], outside=Mode.FILL), np.pad(y, 1)),
    "take_first": (lambda f, t: f.take_first(t["x"], 2, 1), x[:, :2]),
    "slice_between": (
        lambda f, t: f.slice_between(t["x"], f.constant([-2, 9]), f.constant([9, 0]), f.constant([1, 2]),
                                     f.constant([1, -2])),
        x[:, -2:9, 9:0:-2],
    ),
    "slice_between, first axes": (lambda f, t: f.slice_between(t["x"], f.constant([1]), f.constant([2])), x[1:2]),
    "split": (lambda f, t: f.split(t["x"], 1, f.constant([1, 2]))[1], x[:, 1:]),
    "pad": (lambda f, t: f.pad(t["i"], f.constant([1]), f.constant([-1]), Mode.FILL, f.constant(8, np.int32),
                               f.constant([1])), np.pad(i, ((0, 0), (1, 0)), constant_values=8)[:, :3]),
    "backwards": (lambda f, t: f.backwards(t["x"], [0, 2]), x[::-1, :, ::-1]),
    "tile": (lambda f, t: f.tile(t["i"], [2, 1]), np.tile(i, (2, 1))),
    # indices
    "gather": (lambda f, t: f.gather(t["x"], f.constant([2, -1]), 2), x[..., [2, -1]]),
    "gather_elements": (lambda f, t: f.gather_elements(t["i"], f.constant([[1, 0, -1]]), 0),
                        np.take_along_axis(i, np.array([[1, 0, 1]]), 0)),
    "gather_nd": (lambda f, t: f.gather_nd(t["x"], f.constant([[1, 2], [0, 1]])), x[[1, 0], [2, 1]]),
    "gather_nd of batches": (lambda f, t: f.gather_nd(t["x"], f.constant([[2], [1]]), 1), x[[0, 1], [2, 1]]),
    "scatter_elements": (lambda f, t: f.scatter_elements(t["y"], f.constant([2, 0]), f.constant([7.0, 8.0]), 0),
                         np.array([8, -1, 7, 3], np.float32)),
    "scatter_elements, added": (
        lambda f, t: f.scatter_elements(t["y"], f.constant([2, 2]), f.constant([7.0, 8.0]), 0, Reduce.SUM),
        np.array([0.5, -1, 17, 3], np.float32),
    ),
    "scatter_nd": (lambda f, t: f.scatter_nd(t["y"], f.constant([[3]]), f.constant([9.0])),
                   np.array([0.5, -1, 2, 9], np.float32)),
    "one_hot": (lambda f, t: f.one_hot(f.constant([1, 2]), f.length(t["y"], 0), f.constant([0.0, 5.0])),
                5 * np.eye(4, dtype=np.float32)[[1, 2]]),
    "nonzero": (lambda f, t: f.nonzero(t["b"]), np.array([[0, 2]])),
    # reductions and products
    "reduce": (lambda f, t: f.reduce(Reduce.MAX, t["x"], [0, -1]), x.max((0, 2))),
    "reduce over nothing": (lambda f, t: f.reduce(Reduce.MAX, t["x"], []), x),
    "sum": (lambda f, t: f.sum(t["x"], [1], keep=True), x.sum(1, keepdims=True)),
    "mean": (lambda f, t: f.mean(t["x"], [1]), x.mean(1)),
    "log_sum_exp": (lambda f, t: f.log_sum_exp(f.mul(t["x"], 100.0), [2]), 100 * x.max(2)),
    "log_sum_exp of infinity": (lambda f, t: f.log_sum_exp(f.constant([INF, 1]), [0], keep=True), np.array([INF])),
    "best": (lambda f, t: f.best(trt.TopKOperation.MAX, t["y"], 2, 0)[0], np.array([3, 2], np.float32)),
    "best, indices": (lambda f, t: f.best(trt.TopKOperation.MIN, t["y"], 2, -1)[1], np.array([1, 0])),
    "cumulative": (lambda f, t: f.cumulative(trt.CumulativeOperation.SUM, t["y"], 0, reverse=True),
                   np.cumsum(y[::-1])[::-1]),
    "cumulative_sum": (lambda f, t: f.cumulative_sum(t["y"], exclusive=True), np.cumsum(y) - y),
    "softmax": (lambda f, t: f.softmax(t["x"], -1), softmax(x)),
    "log_softmax": (lambda f, t: f.log_softmax(t["x"], 2), np.log(softmax(x))),
    "norm_1": (lambda f, t: f.norm_1(t["x"], [2]), np.abs(x).sum(2)),
    "norm_2": (lambda f, t: f.norm_2(t["x"], [2]), np.sqrt((x * x).sum(2))),
    "moments, mean": (lambda f, t: f.moments(t["x"], [0, 2])[0], x.mean((0, 2), keepdims=True)),
    "moments, variance": (lambda f, t: f.moments(t["x"], [0, 2])[1], x.var((0, 2), keepdims=True)),
    "inverse_deviation": (lambda f, t: f.inverse_deviation(f.mul(t["y"], t["y"]), 0.5), 1 / np.sqrt(y * y + 0.5)),
    "matmul": (lambda f, t: f.matmul(t["x"], f.transpose(t["x"], [0, 2, 1])), x @ x.transpose(0, 2, 1)),
    "matmul of a vector": (lambda f, t: f.matmul(t["x"], t["y"]), x @ y),
    "einsum": (lambda f, t: f.einsum("bij, Aj -> Abi", [t["x"], f.expand_dims(t["y"], [0])]), (x @ y)[None]),
    "einsum without a result": (lambda f, t: f.einsum("Bij,j", [t["x"], t["y"]]), x @ y),
    "batch_normalized": (
        lambda f, t: f.batch_normalized(t["x"], *(f.constant(entry) for entry in ([2.0, 1, 1], [0.0, 0, 3])),
                                        f.constant([0.5, 0, 0]), f.constant([3.0, 3, 3]), 1.0),
        (x - np.array([[0.5], [0], [0]])) / 2 * np.array([[2], [1], [1]]) + np.array([[0], [0], [3]]),
    ),
    # images
    "blocks_of_channels": (lambda f, t: f.blocks_of_channels(t["image"], 2, True), rows_of(image)),
    "channels_of_blocks": (
        lambda f, t: f.channels_of_blocks(f.blocks_of_channels(t["image"], 2, True), 2, True), image),
    "blocks and back, channels first": (
        lambda f, t: f.channels_of_blocks(f.blocks_of_channels(t["image"], 2, False), 2, False), image),
    # ranges and samples
    "arange": (lambda f, t: f.arange(f.length(t["y"], 0), 1.0, 0.5), np.array([1, 1.5, 2, 2.5], np.float32)),
    "arange_between": (lambda f, t: f.arange_between(f.constant(1), f.cast(f.size(t["x"]), np.int64), f.constant(7)),
                       np.arange(1, 24, 7)),
    "arange_between, down": (lambda f, t: f.arange_between(f.constant(1.0), f.constant(-1.0), f.constant(-0.75)),
                             np.array([1, 0.25, -0.5], np.float32)),
    "drawn_classes": (lambda f, t: f.drawn_classes(t["shares"], 3), np.array([[1, 1, 1], [2, 2, 2]])),
    # loops
    "counter, stacked": (lambda f, t: counted(f, lambda loop, now: f.stacked(loop, now, f.constant(4))),
                         np.array([0, 1, 2, 0])),
    "counter, reversed": (lambda f, t: counted(f, lambda loop, now: f.stacked(loop, now, f.constant(3), reverse=True)),
                          np.array([2, 1, 0])),
    # sequences
    "sequence_at": (lambda f, t: f.sequence_at(f.sequence([t["i"], t["j"]]), f.constant(-1)), j),
    "sequence_insert": (
        lambda f, t: f.sequence_concat(f.sequence_insert(f.sequence([t["i"]]), t["j"], f.constant(0)), 0),
        np.concatenate([j, i])),
    "sequence_erase": (lambda f, t: f.sequence_concat(f.sequence_erase(f.sequence([t["i"], t["j"]])), 0, True),
                       i[None]),
    "sequence_length": (lambda f, t: f.sequence_length(f.sequence([t["i"], t["j"]])), np.int64(2)),
    "sequence_split": (lambda f, t: f.sequence_at(f.sequence_split(t["y"], f.constant([3, 1])), f.constant(0)), y[:3]),
    "sequence_split of single rows": (
        lambda f, t: f.sequence_at(f.sequence_split(t["x"], keep_axis=False), f.constant(1)), x[1]),
}  # fmt: skip
"""The formula of each case, and what it gives."""


def counted(f: F, output: Callable[[trt.ILoop, ITensor], ITensor]) -> ITensor:
    """An output of a loop of three iterations that counts."""
    loop = f.network.add_loop()
    loop.add_trip_limit(f.constant(3, np.int32), trt.TripLimit.COUNT)
    return output(loop, f.counter(loop).outputs[0])


@pytest.fixture(scope="module", params=["known shapes", "unknown shapes"])
def results(request) -> Arrays:
    """The outputs of one network with all formulas."""
    network = trt.INetworkDefinition()
    inputs: dict[str, ITensor] = {}
    for name, array in ARRAYS.items():
        shape = array.shape if request.param == "known shapes" else (-1,) * array.ndim
        inputs[name] = network.add_input(name, as_dtype(array.dtype), shape)
    make = F(network)
    for name, (formula, _) in CASES.items():
        output = make.identity(formula(make, inputs))
        output.name = name
        network.mark_output(output)
    return trt.evaluate(network, ARRAYS)


@pytest.mark.parametrize("name", CASES)
def test_formula_gives_what_numpy_gives(name, results):
    wanted = np.asarray(CASES[name][1])
    found = np.asarray(results[name])

    assert found.shape == wanted.shape
    assert found.dtype.kind == wanted.dtype.kind
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.fixture
def make():
    return F(trt.INetworkDefinition())


def names_in(code: CodeType) -> set[str]:
    """The attributes that a function uses, with those of the functions inside of it."""
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return {*code.co_names}.union(*map(names_in, inner))


def test_every_method_has_a_case():
    public = {name for name in dir(F) if not name.startswith("_")}
    used = names_in(counted.__code__).union(*(names_in(formula.__code__) for formula, _ in CASES.values()))

    assert public - used <= TESTED_BELOW


TESTED_BELOW = {"known", "ints", "long_ints", "tensors", "output", "aligned", "uniform", "normal", "last", "times"}
TESTED_BELOW |= {"part_of", "parts"}


def test_small_constants_are_shared(make):
    large = np.zeros(100, np.float32)

    assert make.constant(5) is make.constant(5)
    assert make.constant(5) is not make.constant(5, np.int32)
    assert make.constant(large) is not make.constant(large)


def test_known_values_follow_from_constants_and_shapes(make):
    given = make.network.add_input("given", trt.float32, (2, 3))

    assert make.ints(make.add(make.shape(given), 1)) == [3, 4]
    assert make.known(3).tolist() == 3
    assert make.known(make.size(given)).tolist() == 6
    assert make.known(given) is make.ints(given) is None


def test_formulas_without_effect_return_their_operand(make):
    given = make.network.add_input("given", trt.float32, (2, 3))

    assert make.cast(given, np.float32) is given
    assert make.transpose(given, [0, 1]) is given
    assert make.broadcast_to(given, [1, 3]) is given
    assert make.concat([given], 0) is given
    assert make.backwards(given, []) is given
    assert make.squeeze(given, []) is make.expand_dims(given, []) is given


def test_numbers_take_the_type_of_a_tensor(make):
    given = make.network.add_input("given", trt.int8, (2,))

    assert [tensor.dtype for tensor in make.tensors(2, given)] == [trt.int8, trt.int8]
    assert [len(array.shape) for array in make.aligned(given, make.constant([[[1]]]))] == [3, 3]


def test_long_constants_are_known_as_integers(make):
    numbers = make.constant(np.arange(1000))

    assert make.ints(numbers) is None
    assert make.long_ints(numbers) == [*range(1000)]
    assert make.long_ints(make.network.add_input("x", trt.int64, (2,))) is None


def test_lengths_are_numbers_where_they_are_known(make):
    given = make.network.add_input("given", trt.float32, (6, -1))

    assert make.times(make.length(given, 0), 2) == 12
    assert make.part_of(make.length(given, 0), 3) == 2
    assert make.times(make.length(given, 1), 2).shape == make.part_of(make.length(given, 1), 2).shape == ()


def test_tensors_of_a_sequence_are_known_if_it_is_made_of_them(make):
    one, two = (make.network.add_input(name, trt.float32, (2,)) for name in "ab")

    assert make.parts(make.sequence([one, two])) == [one, two]
    assert make.parts(make.network.add_sequence_split(one).outputs[0]) is None


def test_last_value_of_a_counter(make):
    loop = make.network.add_loop()
    loop.add_trip_limit(make.constant(3, np.int32), trt.TripLimit.COUNT)
    make.network.mark_output(make.last(loop, make.counter(loop)))

    assert list(trt.evaluate(make.network, {}).values()) == [3]


def test_random_numbers_are_in_their_range(make):
    for value in (make.uniform([500], np.dtype(np.float32), 2, 3), make.normal([500], np.dtype(np.float32), 5, 0.125)):
        make.network.mark_output(value)
    uniform, normal = trt.evaluate(make.network, {}).values()

    assert 2 <= uniform.min() < 2.1 < 2.9 < uniform.max() < 3
    assert abs(normal.mean() - 5) < 0.05
    assert 0.1 < normal.std() < 0.15


def test_mask_of_axes():
    assert bitmask(0, 2) == 0b101


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        (lambda f: f.slice_between(f.constant([1, 2]), f.constant([0]), f.constant([1]), steps=f.constant([0])), "0"),
        (lambda f: f.slice_between(f.constant([1, 2]), f.constant([0]), f.constant([1, 2])), "there are 1 starts"),
        (lambda f: f.split(f.constant([1, 2, 3]), 0, f.constant([1, 1])), "do not add up to the length of axis 0"),
        (lambda f: f.part_of(7, 2), "a length of 7 is not a multiple of 2"),
        (lambda f: f.channels_of_blocks(f.constant([[1]]), 2, True), "needs a batch axis, a channel axis"),
        (lambda f: f.constant(np.zeros(2, np.complex64)), "complex64"),
    ],
)
def test_formula_without_meaning_is_refused(make, formula, message):
    with pytest.raises(LayerError, match=message):
        formula(make)
