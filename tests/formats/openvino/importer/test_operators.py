"""Operators of elements, shapes, indices and axes against OpenVINO, with all values of their attributes."""

import numpy as np
import pytest

from tests.support.openvino_peer import assert_agrees, case, fixed

F, N, L, T = np.float32, np.int32, np.int64, np.bool_
X = F([[-2.5, -0.5, 0.25], [0.75, 1.5, 3.0]])
ROW = F([0.5, -2.0, 4.0])
WHOLE = N([[-7, -2, 3], [4, 9, 12]])
PARTS = N([2, -3, 5])
ON = T([[True, False, True], [False, False, True]])
OTHER = T([[True, True, False], [False, True, True]])
NEAR = F([[-0.5, 0.0, 0.25], [0.5, 0.75, 0.9]])
CUBE = (np.arange(24, dtype=F).reshape(2, 3, 4) * 7 % 11) - 4
IMAGE = np.arange(48, dtype=F).reshape(1, 4, 2, 6)
SIZES = F([1.5, 2.5, -0.5, -1.5, 0.4999999702])

PAIRS = ["Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum", "SquaredDifference"]
COMPARISONS = ["Less", "Greater", "LessEqual", "GreaterEqual", "Equal", "NotEqual"]
LOGIC = ["LogicalAnd", "LogicalOr", "LogicalXor"]
CURVES = ["Abs", "Asinh", "Atan", "Ceiling", "Cos", "Cosh", "Erf", "Exp", "Floor", "HSigmoid", "HSwish", "Mish",
          "Negative", "Relu", "Sigmoid", "Sign", "Sin", "Sinh", "SoftPlus", "SoftSign", "Swish", "Tan",
          "Tanh"]  # fmt: skip

ELEMENTS = [
    *(case(op, X, ROW) for op in [*PAIRS, *COMPARISONS, "FloorMod", "Mod"]),
    *(case(op, WHOLE, PARTS) for op in ["Add", "FloorMod", "Mod", "Less"]),
    *(case(op, X, F([[0.5], [2.0]])) for op in ["Add", "Divide"]),
    *(case(op, ON, OTHER[0]) for op in LOGIC),
    case("Xor", ON, OTHER, opset=1),
    case("Add", X, X, auto_broadcast="none"),
    case("Add", CUBE, ROW, auto_broadcast="pdpd", **{"auto_broadcast.auto_broadcast_axis": 1}),
    case("Multiply", CUBE, F([2, 3]), auto_broadcast="pdpd", **{"auto_broadcast.auto_broadcast_axis": 0}),
    case("Divide", WHOLE, PARTS, m_pythondiv=True, expected=(WHOLE // PARTS,)),
    case("Divide", WHOLE, PARTS, m_pythondiv=False, expected=(np.trunc(WHOLE / PARTS).astype(N),)),
    case("Power", np.abs(X), ROW),
    *(case(f"Bitwise{op}", WHOLE, PARTS) for op in ["And", "Or", "Xor"]),
    case("BitwiseLeftShift", WHOLE * WHOLE, np.abs(PARTS)),
    case("BitwiseRightShift", WHOLE * WHOLE, np.abs(PARTS)),
    case("BitwiseNot", WHOLE),
    case("Select", ON, X, ROW),
    case("Select", T([[[True]], [[False]]]), CUBE, F(9)),
    case("Select", ON, X, X * 2, auto_broadcast="none"),
    *(case(op, X) for op in CURVES),
    *(case(op, NEAR) for op in ["Acos", "Asin", "Atanh"]),
    *(case(op, np.abs(X) + 1) for op in ["Log", "Sqrt", "Acosh"]),
    case("LogicalNot", ON),
    case("Floor", WHOLE, expected=(WHOLE,)),
    case("Round", SIZES, mode="half_to_even"),
    case("Round", SIZES, mode="half_away_from_zero", expected=(F([2, 3, -1, -2, 0]),)),
    *(case("IsInf", F([np.inf, -np.inf, np.nan, 1]), detect_negative=a, detect_positive=b) for a in (True, False)
      for b in (True, False)),
    case("IsNaN", F([np.inf, np.nan, 1])),
    case("IsFinite", F([np.inf, -np.inf, np.nan, 1])),
    case("Identity", X),
    case("Elu", X, alpha=0.7),
    case("Clamp", X, min=-1.0, max=1.25),
    case("Clamp", WHOLE, min=-2.5, max=4.5, expected=(N([[-2, -2, 3], [4, 4, 4]]),)),
    case("HardSigmoid", X, fixed(F(0.3)), fixed(F(0.4))),
    case("Selu", X, fixed(F([1.6])), fixed(F([1.1]))),
    case("Swish", X, F(0.5)),
    case("Gelu", X, opset=2),
    *(case("Gelu", X, approximation_mode=name) for name in ("erf", "tanh")),
    case("PRelu", CUBE, fixed(ROW)),
    case("PRelu", CUBE, fixed(F([0.25]))),
    case("GRN", CUBE, bias=0.5, opset=1),
    *(case("Convert", X * 3, destination_type=name) for name in ("f16", "i32", "i64", "boolean")),
    case("Convert", ON, destination_type="f32"),
    case("ConvertLike", X, WHOLE),
]  # fmt: skip

SHAPES = [
    case("ShapeOf", CUBE, opset=1),
    *(case("ShapeOf", CUBE, output_type=name) for name in ("i32", "i64")),
    case("Reshape", CUBE, fixed(L([4, -1])), special_zero=False),
    case("Reshape", CUBE, fixed(L([0, 0, 2, -1])), special_zero=True),
    case("Squeeze", X[None, :, None], fixed(L([0, -2])), open=False),
    case("Squeeze", X[None, :, None], open=False),
    case("Squeeze", X[None, :, None], fixed(L([0])), opset=1),
    case("Unsqueeze", X, fixed(L([0, -1]))),
    case("Transpose", CUBE, fixed(L([2, 0, 1]))),
    case("Transpose", CUBE, fixed(L([]))),
    *(case("Concat", X, X * 2, axis=axis) for axis in (0, 1, -1)),
    *(case("Broadcast", ROW, fixed(L([2, 3])), opset=opset) for opset in (1, 3)),
    case("Broadcast", ROW, fixed(L([2, 3, 4])), fixed(L([1])), mode="explicit"),
    case("Broadcast", X[:, None], fixed(L([4, 1])), mode="bidirectional"),
    case("Tile", X, fixed(L([2, 1, 3]))),
    case("Tile", CUBE, fixed(L([2, 3]))),
    *(case("DepthToSpace", IMAGE, mode=mode, block_size=2) for mode in ("blocks_first", "depth_first")),
    *(case("SpaceToDepth", IMAGE, mode=mode, block_size=2) for mode in ("blocks_first", "depth_first")),
    case("DepthToSpace", np.arange(64, dtype=F).reshape(1, 8, 2, 2, 2), mode="blocks_first", block_size=2),
    case("SpaceToDepth", np.arange(64, dtype=F).reshape(1, 1, 4, 4, 4), mode="depth_first", block_size=2),
    case("SpaceToBatch", IMAGE, *map(fixed, L([[1, 1, 2, 3], [0, 0, 1, 0], [0, 0, 1, 3]]))),
    case("BatchToSpace", IMAGE.reshape(4, 1, 2, 6), *map(fixed, L([[1, 1, 2, 2], [0, 0, 1, 0], [0, 0, 0, 2]]))),
    case("ShuffleChannels", IMAGE, axis=1, group=2),
    case("ShuffleChannels", IMAGE, axis=-1, group=3),
    case("Reverse", CUBE, fixed(L([0, -1])), opset=1, mode="index", expected=(CUBE[::-1, :, ::-1],)),
    case("Reverse", CUBE, fixed(T([False, True, False])), opset=1, mode="mask", expected=(CUBE[:, ::-1],)),
    case("ReverseSequence", CUBE, N([1, 3]), batch_axis=0, seq_axis=1),
    case("ReverseSequence", CUBE, N([1, 2, 2, 1]), batch_axis=-1, seq_axis=0),
    case("Roll", CUBE, fixed(L([1, -3])), fixed(L([0, 2]))),
    case("Roll", CUBE, fixed(L([2])), fixed(L([-1]))),
]


def strided(begins, ends, strides, **masks):
    lists = {name: [] for name in ("new_axis_mask", "shrink_axis_mask", "ellipsis_mask")}
    masks = {"begin_mask": [0] * len(begins), "end_mask": [0] * len(begins), **lists, **masks}
    return case("StridedSlice", CUBE, *(fixed(L(value)) for value in (begins, ends, strides)), **masks)


PLACES = [
    *(case("Split", CUBE, fixed(L(axis)), num_splits=2) for axis in (0, -1)),
    case("VariadicSplit", CUBE, fixed(L(2)), fixed(L([1, -1, 2]))),
    case("VariadicSplit", CUBE, fixed(L(-2)), fixed(L([1, 2]))),
    case("Slice", CUBE, *map(fixed, L([[0, 1], [2, 100], [1, 2]])), fixed(L([0, -1]))),
    case("Slice", CUBE, *map(fixed, L([[-1, 2], [-10, -4], [-1, -1]]))),
    case("SliceScatter", CUBE, CUBE[:, :2] * 10, *map(fixed, L([[0], [3], [2], [1]]))),
    strided([0, 1, -3], [2, 3, -1], [1, 1, 1]),
    strided([1, 1], [2, 2], [1, 1], begin_mask=[1, 0], end_mask=[0, 1]),
    strided([-1, 0, 3], [0, 3, 0], [-1, 2, -2], end_mask=[1, 0, 1]),
    strided([1, 0, -1], [2, 0, 0], [1, 1, 1], shrink_axis_mask=[1, 0, 1], end_mask=[0, 1, 0]),
    strided([0, 0, 1], [1, 0, 3], [1, 1, 1], new_axis_mask=[1, 0, 0], end_mask=[0, 1, 0]),
    strided([0, 1], [0, 3], [1, 1], ellipsis_mask=[1, 0]),
    strided([1, 0, 0, 2], [2, 0, 0, 3], [1, 1, 1, 1], shrink_axis_mask=[1, 0, 0, 0], ellipsis_mask=[0, 1, 0, 0],
            new_axis_mask=[0, 0, 1, 0]),
    *(case("Pad", X, fixed(L([1, 2])), fixed(L([0, 1])), pad_mode=mode) for mode in ("edge", "symmetric")),
    case("Pad", CUBE, fixed(L([0, 2, 1])), fixed(L([1, 0, 2])), pad_mode="reflect"),
    case("Pad", X, fixed(L([1, 0])), fixed(L([0, 2])), fixed(F(9)), pad_mode="constant", opset=1),
    case("Pad", X, fixed(L([1, -1])), fixed(L([-1, 2])), fixed(F(9)), pad_mode="constant"),
    *(case("Gather", CUBE, N([[0, 2], [1, 1]]), fixed(L(1)), opset=opset) for opset in (1, 7, 8)),
    case("Gather", CUBE, N([[0, 2], [1, -1]]), fixed(L(-1)), batch_dims=1),
    case("Gather", CUBE, N([[0, 2], [1, 1]]), fixed(L(2)), opset=7, batch_dims=-1),
    case("GatherElements", CUBE, N([[[1, 0, 3]] * 3] * 2), axis=-1),
    case("GatherND", CUBE, N([[0, 1], [1, 2]]), opset=5, open=False),
    case("GatherND", CUBE, N([[[1, 3], [2, 0]], [[0, 0], [1, 1]]]), batch_dims=1, open=False),
    *(case("GatherND", CUBE, N([[[3], [0], [1]], [[2], [2], [0]]]), batch_dims=2, opset=opset, open=False)
      for opset in (5, 8)),
    case("ScatterUpdate", CUBE, N([2, 0]), F(100 + np.arange(16)).reshape(2, 2, 4), fixed(L(1))),
    case("ScatterUpdate", X, N([[1, 0]]), F(100 + np.arange(6)).reshape(1, 2, 3), fixed(L(0))),
    case("ScatterElementsUpdate", X, N([[2, 0], [1, 1]]), F([[10, 20], [30, 40]]), fixed(L(1)), opset=3,
         expected=(F([[20, -0.5, 10], [0.75, 40, 3]]),)),
    *(case("ScatterElementsUpdate", X, N([[2, 0], [1, 1]]), F([[10, 20], [30, 40]]), fixed(L(-1)), reduction=how,
           use_init_val=own) for how in ("sum", "prod", "min", "max", "mean") for own in (True, False)),
    case("ScatterNDUpdate", X, N([[1, 2], [0, 0]]), F([10, 20]), opset=4, open=False),
    *(case("ScatterNDUpdate", X, N([[1], [1]]), F([[1, 2, 3], [4, 5, 6]]), reduction=how, open=False)
      for how in ("sum", "sub", "prod", "min", "max")),
    # of two rows for one place, OpenVINO's threads write either one last
    case("ScatterNDUpdate", X, N([[1], [0]]), F([[1, 2, 3], [4, 5, 6]]), reduction="none", open=False),
    *(case("OneHot", L([1, 0, 3]), fixed(L(3)), fixed(F(5)), fixed(F(-1)), axis=axis, opset=1) for axis in (-1, 0)),
    *(case("OneHot", L([1, -1, 3]), fixed(L(3)), fixed(F(5)), fixed(F(-1)), axis=-1, negative_indices_mode=how)
      for how in ("ignore_negative", "normalize")),
    *(case("NonZero", WHOLE * ON, output_type=name) for name in ("i32", "i64")),
    *(case("Unique", N([3, 1, 3, 2, 1]), sorted=how) for how in (True, False)),
    case("Unique", WHOLE[[0, 1, 0]], fixed(L(0)), index_element_type="i32"),
    *(case("Bucketize", X, fixed(F([-0.5, 0.75, 2])), with_right_bound=how, output_type="i32")
      for how in (True, False)),
    *(case("SearchSorted", F([[1, 2, 3], [0, 0, 5]]), F([[2, 4], [0, 9]]), right_mode=how) for how in (True, False)),
]  # fmt: skip

SUMS = ["ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceL1", "ReduceL2"]
AXES = [
    *(case(op, CUBE, fixed(L([0, -1])), keep_dims=keep) for op in SUMS for keep in (True, False)),
    *(case(op, WHOLE, fixed(L(1)), keep_dims=False) for op in SUMS[:5]),
    *(case(op, ON, fixed(L([1])), keep_dims=keep) for op in ("ReduceLogicalAnd", "ReduceLogicalOr")
      for keep in (True, False)),
    case("Softmax", CUBE, axis=1, opset=1),
    case("Softmax", CUBE, axis=-2),
    case("LogSoftmax", CUBE, axis=-1),
    *(case("TopK", CUBE, fixed(L(2)), axis=axis, mode=mode, sort=sort, index_element_type="i64")
      for axis, mode in ((-1, "max"), (1, "min")) for sort in ("value", "index")),
    case("TopK", X, fixed(L(2)), axis=1, mode="max", sort="value", opset=1),
    case("TopK", N([3, 1, 3, 1]), fixed(L(3)), axis=0, mode="max", sort="value", stable=True),
    *(case("CumSum", CUBE, fixed(L(axis)), exclusive=own, reverse=back)
      for axis, own, back in ((1, True, False), (-1, False, True), (0, True, True))),
    case("Range", fixed(N(2)), fixed(N(-7)), fixed(N(-3)), opset=1),
    case("Range", F(1), F(3), F(0.75), output_type="f32"),
    case("Range", fixed(F(1.2)), fixed(F(6.7)), fixed(F(2.1)), output_type="i32"),
    *(case("Eye", fixed(N(2)), fixed(N(4)), fixed(N(off)), output_type="f32") for off in (0, -1, 2)),
    case("Eye", fixed(N(2)), fixed(N(2)), fixed(N(0)), fixed(N([3])), output_type="i32"),
]  # fmt: skip


@pytest.mark.parametrize("case", ELEMENTS + SHAPES + PLACES + AXES, ids=str)
def test_layer_gives_what_openvino_gives(case):
    assert_agrees(case)


@pytest.mark.parametrize("case", [shape for shape in SHAPES + PLACES + AXES if shape.open], ids=str)
def test_layer_gives_the_same_where_the_call_gives_all_lengths(case):
    assert_agrees(case, open=True)
