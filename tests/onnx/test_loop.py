"""Loop, Scan and If become loops and conditionals that give what onnxruntime gives."""

import numpy as np

from tests.onnx.models import check_like_onnxruntime

X = np.array([1, 2], np.float32)

COUNTED = """
counted (float[2] x) => (float[2] y, float[n, 2] rows) {
  most = Constant <value_int = 5> ()
  true = Constant <value = bool {1}> ()
  y, rows = Loop (most, true, x) <
    body = trip (int64 i, bool go, float[2] v) => (bool again, float[2] next, float[2] row) {
    again = Identity (go)
    next = Add (v, x)
    number = Cast <to = 1> (i)
    row = Mul (next, number)
  }
  >
}
"""

EARLY = """
early (float[2] x, float limit) => (float[2] y, float[n, 2] rows) {
  most = Constant <value_int = 12> ()
  true = Constant <value = bool {1}> ()
  y, rows = Loop (most, true, x) <
    body = trip (int64 i, bool go, float[2] v) => (bool again, float[2] next, float[2] row) {
    next = Add (v, x)
    total = ReduceSum <keepdims = 0> (next)
    again = Less (total, limit)
    row = Identity (v)
  }
  >
}
"""

SWAP = """
swap (float[2] x, float[2] z) => (float[2] a, float[2] b) {
  most = Constant <value_int = 3> ()
  true = Constant <value = bool {1}> ()
  a, b = Loop (most, true, x, z) <
    body = trip (int64 i, bool go, float[2] v, float[2] w)
      => (bool go, float[2] w, float[2] v) {
  }
  >
}
"""

NESTED = """
nested (float[2] x) => (float[2] y) {
  three = Constant <value_int = 3> ()
  y = Loop (three, "", x) <
    body = outer (int64 i, bool go, float[2] v) => (bool go, float[2] next) {
    next = Loop (i, "", v) <
    body = inner (int64 j, bool on, float[2] w) => (bool on, float[2] more) {
      number = Cast <to = 1> (i)
      scaled = Mul (x, number)
      more = Add (w, scaled)
    }>
  }
  >
}
"""

BRANCHES = """
branches (float[2] x, bool c) => (float[m] y) {
  y = If (c) <
    then_branch = yes () => (float[2] a) { a = Add (x, x) },
    else_branch = no () => (float[1] b) {
      zero = Constant <value_ints = [0]> ()
      b = Gather (x, zero)
    }
  >
}
"""

SCAN = """
scan (float[3, 2] x, float[2] s) => (float[2] last, float[2, 3] sums) {
  last, sums = Scan <
    num_scan_inputs = 1, scan_input_directions = [1], scan_output_axes = [1],
    body = trip (float[2] v, float[2] each) => (float[2] next, float[2] row) {
    next = Add (v, each)
    row = Identity (next)
  }> (s, x)
}
"""


def test_counted_loop_is_a_scan():
    engine = check_like_onnxruntime(COUNTED, x=X)

    assert [road.name for road in engine.roads.values()] == ["scan"]


def test_loop_that_ends_early_has_a_row_for_each_trip_made():
    engine = check_like_onnxruntime(EARLY, x=X, limit=np.float32(11))

    assert [road.name for road in engine.roads.values()] == ["while"]


def test_all_carried_values_step_at_once():
    check_like_onnxruntime(SWAP, x=X, z=X + 5)


def test_inner_loops_see_the_names_around_them():
    check_like_onnxruntime(NESTED.replace('""', ""), x=X)


def test_branches_may_differ_in_shape():
    check_like_onnxruntime(BRANCHES, x=X, c=np.bool_(True))
    check_like_onnxruntime(BRANCHES, x=X, c=np.bool_(False))


def test_scan_goes_backwards_and_stacks_along_any_axis():
    check_like_onnxruntime(SCAN, x=np.arange(6, dtype=np.float32).reshape(3, 2), s=X)
