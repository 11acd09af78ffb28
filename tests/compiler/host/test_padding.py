"""Pieces with padded lengths: what is compiled for new lengths, and that padding reaches no result."""

from dataclasses import replace

import numpy as np
import pytest

import netloop as trt
from netloop.compiler.execution.executable import Executable
from netloop.compiler.host import padded_pieces
from netloop.compiler.host.padded_pieces import PaddedProgram
from netloop.compiler.host.padding import bucket
from netloop.compiler.recipe import Recipe
from netloop.values.types import LARGEST_KNOWN_VALUE
from tests.support.devices import assert_allclose
from tests.support.examples import mostly_slow
from tests.support.networks import Op, cast, combine, constant, counted, last, mark
from tests.support.speech import frames_of, rounded_up, total_of

MAPS = 3
NONE, TRANSPOSE = trt.MatrixOperation.NONE, trt.MatrixOperation.TRANSPOSE
LENGTHS = 7, 6, 1, 2, 8, 9, 5, 13, 16, 15, 0, 31, 18
"""7 and 6 have the same length after one stride of 2 and padding, and others after two."""


@pytest.fixture
def padded(monkeypatch):
    """The padded programs that are traced from now on."""
    programs, trace = [], PaddedProgram._trace

    def trace_noted(self, *given):
        programs.append(self)
        return trace(self, *given)

    monkeypatch.setattr(PaddedProgram, "_trace", trace_noted)
    return programs


def waves(network):
    """Some channels of as many frames as the input says, float32[1, 3, n]."""
    count = network.add_input("n", trt.int64, (1,))
    table = constant(network, np.arange(LARGEST_KNOWN_VALUE), np.float32)
    frames = frames_of(network, rounded_up(network, total_of(network, table, count)))
    rows = network.add_unsqueeze(frames, constant(network, [0, 1], np.int64)).get_output(0)
    scaled = combine(network, rows, constant(network, np.float32([[[0.5], [1.5], [-0.7]]])), Op.PROD)
    return network.add_unary(combine(network, scaled, 1.0), trt.UnaryOperation.SIN).get_output(0)


def weights(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def convolution(network, x, stride=1, padding=1):
    layer = network.add_convolution_nd(x, MAPS, (3,), weights(MAPS, MAPS, 3), weights(MAPS))
    layer.stride_nd, layer.padding_nd = (stride,), (padding,)
    return layer.get_output(0)


def deconvolution(network, x):
    layer = network.add_deconvolution_nd(x, MAPS, (4,), weights(MAPS, MAPS, 4), weights(MAPS))
    layer.stride_nd, layer.padding_nd = (2,), (1,)
    return layer.get_output(0)


def transposed(network, x):
    layer = network.add_shuffle(x)
    layer.first_transpose = (0, 2, 1)
    return layer.get_output(0)


def product(network, x, operation=NONE):
    return network.add_matrix_multiply(constant(network, weights(1, 2, MAPS)), NONE, x, operation).get_output(0)


def reduced(network, x, axis):
    return network.add_reduce(x, trt.ReduceOperation.SUM, 1 << axis, True).get_output(0)


def sliced(network, x, axis, start, length, mode=trt.SampleMode.STRICT_BOUNDS):
    layer = network.add_slice(x, (start,), (length,), (1,))
    layer.axes, layer.mode = (axis,), mode
    return layer.get_output(0)


def gated(network, x):
    both = convolution(network, x)
    gate, value = (sliced(network, both, 1, start, 1) for start in (0, 2))
    return convolution(network, combine(network, x, combine(network, gate, value, Op.PROD)))


def softmax(network, x, axis):
    layer = network.add_softmax(x)
    layer.axes = 1 << axis
    return layer.get_output(0)


def joined(network, x, axis):
    layer = network.add_concatenation([x, x])
    layer.axis = axis
    return layer.get_output(0)


def scanned(network, x):
    """The sums of the frames so far, from the last to the first."""
    last_first = transposed(network, x)
    shape = network.add_shape(last_first).get_output(0)
    loop = counted(network, network.add_gather(shape, constant(network, 1, np.int64), 0).get_output(0))
    total = loop.add_recurrence(constant(network, np.zeros((1, MAPS)), np.float32))
    row = loop.add_iterator(last_first, 1, True).get_output(0)
    total.set_input(1, combine(network, total.get_output(0), row))
    return loop.add_loop_output(total.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0)


PADDED = {
    "convolution": convolution,
    "two strides": lambda net, x: convolution(net, convolution(net, convolution(net, x, 2), 2)),
    "no padding": lambda net, x: convolution(net, convolution(net, x, padding=2), padding=0),
    "deconvolution": lambda net, x: deconvolution(net, convolution(net, x)),
    "product of columns": product,
    "product of rows": lambda net, x: product(net, transposed(net, x), TRANSPOSE),
    "sum of channels": lambda net, x: convolution(net, combine(net, x, reduced(net, convolution(net, x), 1), Op.PROD)),
    "softmax of channels": lambda net, x: softmax(net, convolution(net, x), 1),
    "slices of channels": gated,
    "joined channels": lambda net, x: joined(net, convolution(net, x), 1),
}
"""Functions that are padded whole, unless an axis is too short for them."""

CLAMPED = "last frame again and again"
NOT_PADDED = {
    "sum of frames": lambda net, x: reduced(net, convolution(net, x), 2),
    "softmax of frames": lambda net, x: softmax(net, convolution(net, x), 2),
    CLAMPED: lambda net, x: sliced(net, convolution(net, x), 2, 0, 40, trt.SampleMode.CLAMP),
    "joined frames": lambda net, x: convolution(net, joined(net, convolution(net, x), 2)),
    "product of frames": lambda net, x: net.add_matrix_multiply(
        convolution(net, x), NONE, convolution(net, x), TRANSPOSE
    ).get_output(0),
    "sums in a loop": lambda net, x: scanned(net, convolution(net, x)),
}
"""Functions that read the frames after the last one, and may be padded up to there."""


ALL = {CLAMPED: NOT_PADDED[CLAMPED], **PADDED, **NOT_PADDED}


@pytest.mark.parametrize("name", mostly_slow(12, ALL))
def test_padding_reaches_no_result(network, name, padded):
    mark(network, y=ALL[name](network, waves(network)))
    engine = trt.compile(network)

    for length in LENGTHS:
        try:
            wanted = trt.evaluate(network, {"n": np.array([length])})["y"]
        except trt.ExecutionError:
            with pytest.raises(trt.ExecutionError):
                engine({"n": np.array([length])})
        else:
            made = np.asarray(engine({"n": np.array([length])})["y"])
            assert_allclose(made, wanted, rtol=1e-5, atol=1e-5, strict=True)
    assert len(padded) > 0


def test_infinities_among_the_padding_reach_no_result(network, padded):
    """The first convolution has no bias, so that its frames of padding are 0, and their logarithms are infinite."""
    layer = network.add_convolution_nd(waves(network), MAPS, (3,), weights(MAPS, MAPS, 3), None)
    layer.padding_nd = (1,)
    size = network.add_unary(layer.get_output(0), trt.UnaryOperation.ABS).get_output(0)
    mark(network, y=convolution(network, network.add_unary(size, trt.UnaryOperation.LOG).get_output(0)))
    engine = trt.compile(network)

    for length in (length for length in LENGTHS if length > 0):
        wanted = trt.evaluate(network, {"n": np.array([length])})["y"]
        assert np.isfinite(wanted).all()
        assert_allclose(engine({"n": np.array([length])})["y"], wanted, rtol=1e-4, atol=1e-4)
    assert len(padded) > 0


def test_single_frame_is_broadcast(network):
    """Three frames become one, which is added to each of six numbers; eight become six, also those with padding."""
    made = convolution(network, waves(network), padding=0)
    mark(network, y=combine(network, made, constant(network, weights(1, MAPS, 6))))
    engine = trt.compile(network)

    for count in (8, 3, 8, 3):
        given = {"n": np.int64([count])}
        assert_allclose(engine(given)["y"], trt.evaluate(network, given)["y"], rtol=1e-4, atol=1e-5)


def test_text_of_a_known_length_compiles_nothing(network, compiled):
    text = network.add_input("text", trt.int64, (3,))
    table = constant(network, np.arange(LARGEST_KNOWN_VALUE) / 2, np.float32)
    frames = frames_of(network, rounded_up(network, total_of(network, table, text)))
    vector = trt.MatrixOperation.VECTOR
    mark(network, y=network.add_matrix_multiply(frames, vector, frames, vector).get_output(0))
    engine = trt.compile(network)

    assert engine({"text": np.array([2, 4, 6])})["y"] == sum(index**2 for index in range(6))
    assert len(compiled) > 0
    del compiled[:]
    assert engine({"text": np.array([1, 3, 7])})["y"] == sum(index**2 for index in range(6))
    assert compiled == []
    assert engine.program_count == 1
    assert engine({"text": np.array([2, 4, 7])})["y"] == sum(index**2 for index in range(7))


def test_network_of_one_length_is_not_padded(network, padded, compiled):
    mark(network, y=convolution(network, waves(network)))
    engine = trt.compile(network)

    for _ in range(3):
        engine({"n": np.array([5])})
    assert padded == []
    assert len(compiled) > 0


def test_new_lengths_up_to_a_bound_compile_nothing(network, padded, compiled):
    mark(network, y=convolution(network, waves(network)))
    engine = trt.compile(network)
    engine({"n": np.array([5])})
    engine({"n": np.array([9])})
    del compiled[:]

    for length in (10, 11, 12, 15, 16, 9):
        assert engine({"n": np.array([length])})["y"].shape == (1, MAPS, length)
    assert compiled == []
    assert len(padded) == 1


@pytest.mark.parametrize("dtype", [trt.float32, trt.int64])
def test_loops_whose_count_decides_no_shape_share_a_program(network, padded, compiled, dtype):
    """Only the last state leaves them, and they make an iteration less than there are rows."""
    places = network.add_non_zero(network.add_input("x", trt.bool, (9,))).get_output(0)
    rows = cast(network, network.add_squeeze(places, constant(network, [0], np.int64)).get_output(0), dtype)
    lengths = combine(network, network.add_shape(rows).get_output(0), constant(network, [1], np.int64), Op.SUB)
    loop = counted(network, network.add_squeeze(lengths, constant(network, [0], np.int64)).get_output(0))
    state = loop.add_recurrence(constant(network, 0, trt.nptype(dtype)))
    state.set_input(1, combine(network, state.get_output(0), loop.add_iterator(rows).get_output(0)))
    mark(network, y=last(loop, state.get_output(0)))
    engine = trt.compile(network)
    engine({"x": np.arange(9) < 5})
    engine({"x": np.arange(9) < 6})
    del compiled[:]

    assert [int(engine({"x": np.arange(9) < length})["y"]) for length in (7, 8, 6)] == [15, 21, 10]
    assert compiled == []
    assert len(padded) == 1


def test_length_that_is_met_often_gets_a_piece_of_its_own(network, padded, compiled, monkeypatch):
    monkeypatch.setattr(padded_pieces, "FEW", 3)
    mark(network, y=convolution(network, waves(network)))
    engine = trt.compile(network)
    engine({"n": np.array([5])})
    del compiled[:]

    made = [engine({"n": np.array([6])})["y"] for _ in range(3)]
    assert compiled == []
    made += [engine({"n": np.array([6])})["y"] for _ in range(2)]
    assert len(compiled) == 1
    assert len(padded) == 1
    for value in made[1:]:
        assert_allclose(value, made[0], rtol=1e-6)


def test_lengths_are_at_most_a_quarter_longer_and_few():
    assert [bucket(number) for number in (0, 1, 2, 8, 9, 40, 64, 65, 100, 1000)] == [
        0,
        1,
        8,
        8,
        16,
        40,
        64,
        80,
        112,
        1024,
    ]
    assert all(index <= bucket(index) <= 1.25 * index for index in range(32, 5000))
    assert len({bucket(index) for index in range(5000)}) < 50


def test_padded_pieces_have_the_platform_of_the_engine(network, padded):
    mark(network, y=convolution(network, waves(network)))
    engine = Executable(network, replace(Recipe(frozenset({"bucketing"})), platform="gpu"))
    for length in LENGTHS[:4]:
        engine({"n": np.array([length])})

    assert {program.platform for program in padded} == {"gpu"}
