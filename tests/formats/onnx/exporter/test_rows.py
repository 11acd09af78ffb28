"""Stacked outputs of saved loops whose rows have open lengths, in onnxruntime: with few iterations, and with none."""

import numpy as np
import pytest
from onnx import parser

import netloop as trt
from netloop.onnx import load
from tests.support.examples import mostly_slow
from tests.support.onnx_runtime import export, run

LOOP = """<ir_version: 8, opset_import: ["" : 18]>
g (float[B,M] x, float[B] s0, int64 n) => (all)
{ t = Constant<value = bool {1}>() CONSTANTS
  s, all = Loop(n, t, s0) <body = b (int64 i, bool c, float[B] u) => (bool c, float[B] w, row)
  { v = Gather<axis=1>(x, i) w = Add(u, v) iu = Unsqueeze(i, z) j = Add(iu, one) cut = Slice(x, iu, j, one)
    number = Cast<to=1>(i) y = Add(x, number) BODY }> }"""
"""A loop over the columns of x that sums them, for bodies that compute ``row``.

``cut`` is a column as a slice, and ``y`` is of the shape of x and varies.
"""

BODIES = {
    "gather": "row = Identity(w)",
    "slice and squeeze": "q = Squeeze(cut, one) row = Add(u, q)",
    "slice and reshape": "q = Reshape(cut, m1) row = Add(u, q)",
    "slice and sum": "row = ReduceSum<keepdims=0>(cut, one)",
    "slice": "row = Identity(cut)",
    "gather elements": "k = Unsqueeze(u, one) k2 = Mul(k, f2) k3 = Sub(k2, k2) k4 = Cast<to=7>(k3) k5 = Add(k4, i)"
    " row = GatherElements<axis=1>(x, k5)",
    "gather by position": "p = Unsqueeze(iu, z) yt = Transpose(y) row = GatherND(yt, p)",
    "transposed gather": "yt = Transpose(x) e = Gather(yt, i) row = Add(e, w)",
    "scatter": "k = Unsqueeze(w, one) o = Sub(k, k) q = Cast<to=7>(o) k2 = Add(q, i)"
    " row = ScatterElements<axis=1>(x, k2, k)",
    "largest": "row = ReduceMax<keepdims=0>(y, one)",
    "index of the largest": "row = ArgMax<axis=1,keepdims=0>(y)",
    "the two largest": "row, ind = TopK<axis=1>(y, two)",
    "reshape with a rest": "h = Constant<value_ints=[1,-1,1]>() row = Reshape(y, h)",
    "reshape to a computed shape": "sh = Shape(y) r = Gather(sh, h10) row = Reshape<allowzero=1>(y, r)",
    "tile": "r = Constant<value_ints=[2,3]>() row = Tile(y, r)",
    "concatenation": "row = Concat<axis=1>(y, x, y)",
    "resize": "y4 = Unsqueeze(y, h01) sc = Constant<value_floats=[1.0,1.0,1.0,2.5]>()"
    ' row = Resize<mode="linear",coordinate_transformation_mode="asymmetric">(y4, , sc)',
    "convolution": "y3 = Unsqueeze(y, one) k = Constant<value = float[3,1,2] {1.,2.,3.,4.,5.,6.}>()"
    " row = Conv<kernel_shape=[2],strides=[2],pads=[1,1]>(y3, k)",
    "average of windows": "y3 = Unsqueeze(y, one) row = AveragePool<kernel_shape=[2],strides=[2]>(y3)",
    "largest of windows, rounded up": "y3 = Unsqueeze(y, one)"
    " row = MaxPool<kernel_shape=[2],strides=[3],ceil_mode=1>(y3)",
    "division by a length": "sh = Shape(x) l = Gather(sh, n1) q = Div(i, l) r = Mod(i, l) e = Add(q, r)"
    " f = Cast<to=1>(e) row = Add(w, f)",
    "matrix product": "yt = Transpose<perm=[1,0]>(x) row = MatMul(y, yt)",
    "einsum": 'row = Einsum<equation="bm,cm->mcb">(y, x)',
    "softmax of a transposition": "yt = Transpose<perm=[1,0]>(y) row = Softmax<axis=0>(yt)",
    "padding": "q = Constant<value_ints=[0,1,2,0]>() row = Pad(y, q)",
    "one-hot": "k = Cast<to=7>(w) d = Constant<value_ints=[5]>() v01 = Constant<value_floats=[0.0,1.0]>()"
    " row = OneHot(k, d, v01)",
    "flatten": "y3 = Unsqueeze(y, z) row = Flatten<axis=2>(y3)",
    "expand": "sh = Shape(x) w2 = Unsqueeze(w, one) row = Expand(w2, sh)",
    "range of a length": "sh = Shape(x) l = Gather(sh, n0) r = Range(n0, l, n1) f = Cast<to=1>(r) row = Add(f, w)",
    "inner loop": "k, inner = Loop(n, t, u) <body = b2 (int64 i2, bool c2, float[B] a) => (bool c2, a2, a3)"
    " { vv = Gather<axis=1>(x, i2) a2 = Add(a, vv) a3 = Add(a, w) }> row = ReduceSum<keepdims=0>(inner, z)",
    "non-zero elements": "nz = NonZero(w) row = Identity(nz)",
    "branches of two shapes": "h = Greater(i, n1) row = If(h) <then_branch = a () => (float[P] p) { p = Add(w, u) },"
    " else_branch = e () => (float[Q] q) { q = Concat<axis=0>(w, u) }>",
    "branches of two shapes that are one": "h = Greater(i, n1) row = If(h) <then_branch = a () => (float[P] p)"
    " { p = Concat<axis=0>(u, w) }, else_branch = e () => (float[Q] q) { q = Concat<axis=0>(w, u) }>",
    "length of what varies": "sh = Shape(y) sh2 = Mul(sh, two) f = Cast<to=1>(sh2) row = Identity(f)",
    "filled shape of what varies": "sh = Shape(y) sh2 = Mul(sh, two) row = ConstantOfShape(sh2)",
    "normalization": "y3 = Unsqueeze(y, z) ys = Transpose<perm=[0,2,1]>(y3)"
    " sc = Constant<value_floats=[1.0]>() row = LayerNormalization<axis=-1>(ys, w, w)",
    "recurrent layer": "y3 = Unsqueeze(y, z) yt = Transpose<perm=[2,1,0]>(y3)"
    " W = Constant<value = float[1,2,1] {1.0,2.0}>() R = Constant<value = float[1,2,2] {0.1,0.2,0.3,0.4}>()"
    " row, last = RNN<hidden_size=2>(yt, W, R)",
    "branches of one shape": "h = Greater(i, n1) row = If(h) <then_branch = a () => (float[B] p) { p = Add(w, u) },"
    " else_branch = e () => (float[B] q) { q = Mul(w, u) }>",
}


CONSTANTS = """h01 = Constant<value_ints=[0,1]>() h10 = Constant<value_ints=[1,0]>() m1 = Constant<value_ints=[-1]>()
z = Constant<value_ints=[0]>() one = Constant<value_ints=[1]>() two = Constant<value_ints=[2]>()
f2 = Constant<value = float {2.0}>() n0 = Constant<value = int64 {0}>() n1 = Constant<value = int64 {1}>()"""

SIZES = [(0, (2, 0)), (0, (2, 3)), (0, (0, 3)), (1, (2, 2)), (2, (3, 5)), (5, (2, 5)), (2, (0, 2))]
"""Numbers of iterations, with shapes of x."""


def meaning(network, inputs):
    """The rows by the reference; None if it refuses the lengths of the inputs, or those of the rows differ."""
    try:
        return trt.evaluate(network, inputs)["all"]
    except (trt.NetworkError, trt.ExecutionError):
        return None


WHILE = """<ir_version: 8, opset_import: ["" : 18]>
g (float[B,M] x, float[B] s0, int64 n) => (all)
{ t = Constant<value = bool {1}>() CONSTANTS
  first = Less(n0, n)
  i9, s, all = Loop(, first, n0, s0) <body = b (int64 i0, bool c, int64 i, float[B] u)
  => (bool c2, int64 i2, float[B] w, row)
  { i2 = Add(i, n1) c2 = Less(i2, n) iu = Unsqueeze(i, z) j = Add(iu, one) cut = Slice(x, iu, j, one)
    q = Squeeze(cut, one) w = Add(u, q) BODY }> }"""

WITHOUT_COUNT = {
    "slice and squeeze": "row = Identity(q)",
    "slice": "row = Identity(cut)",
    "transposed": "yt = Transpose(x) y2 = Mul(yt, q) row = Identity(y2)",
}


def agree(text):
    """Compare a model with the reference at all sizes."""
    network = load(parser.parse_model(text))
    model, compared = export(network), 0
    for trips, shape in SIZES:
        inputs = {
            "x": np.arange(np.prod(shape), dtype=np.float32).reshape(shape),
            "s0": np.arange(shape[0], dtype=np.float32),
            "n": np.int64(trips),
        }
        meant = meaning(network, inputs)
        for optimized in (False, True) if meant is not None else ():
            got = run(model, inputs, optimized)["all"]
            assert got.shape == meant.shape, (trips, shape)
            np.testing.assert_allclose(got, meant, 1e-6)
        compared += meant is not None
    assert compared >= 4


@pytest.mark.parametrize("body", mostly_slow(14, BODIES.values()), ids=BODIES)
def test_rows_have_their_lengths_whatever_the_number_of_iterations(body):
    agree(LOOP.replace("CONSTANTS", CONSTANTS).replace("BODY", body))


@pytest.mark.parametrize("body", WITHOUT_COUNT.values(), ids=WITHOUT_COUNT)
def test_rows_have_their_lengths_in_loops_without_a_count(body):
    agree(WHILE.replace("CONSTANTS", CONSTANTS).replace("BODY", body))


GROWING = """<ir_version: 8, opset_import: ["" : 18]>
g (float[B,M] x, float[SIZE] s0, int64 n) => (all) { t = Constant<value = bool {1}>()
  s, all = Loop(n, t, s0) <body = b (int64 i, bool c, float[P] u) => (bool c, float[Q] w, row)
  { w = Concat<axis=0>(u, u) row = Identity(ROW) }> }"""


@pytest.mark.parametrize("size", ["B", "3"])
@pytest.mark.parametrize("row", ["u", "w"])
def test_length_that_changes_in_the_iterations_is_zero_without_any(size, row):
    network = load(parser.parse_model(GROWING.replace("SIZE", size).replace("ROW", row)))
    model = export(network)

    for trips in (0, 1):
        inputs = {"x": np.ones((3, 3), np.float32), "s0": np.ones(3, np.float32), "n": np.int64(trips)}
        np.testing.assert_array_equal(run(model, inputs)["all"], trt.evaluate(network, inputs)["all"], strict=True)
