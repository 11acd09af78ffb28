"""Operators of whole networks against OpenVINO: norms, attention, embeddings, windows, images."""

import numpy as np
import pytest

from tests.support.openvino_peer import assert_agrees, case, fixed

F, N, L, T = np.float32, np.int32, np.int64, np.bool_


def numbers(*shape, seed=0):
    return np.random.default_rng(sum(shape) + seed).normal(size=shape).astype(F)


IMAGE = numbers(2, 4, 5, 6)
MATRIX, LIST = numbers(3, 4), numbers(4)
PER_CHANNEL = [fixed(numbers(4, seed=index)) for index in range(3)]
VARIANCE = fixed(np.abs(numbers(4, seed=9)) + F(0.1))


def local_response():
    """LRN of three channels in numpy: OpenVINO 2026.4 takes 1 for the bias, whatever it is."""
    squares = np.pad(IMAGE**2, ((0, 0), (1, 1), (0, 0), (0, 0)))
    return IMAGE / (2 + 0.4 / 3 * (squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:])) ** F(0.6)


NORMS = [
    *(case("MVN", IMAGE, opset=2, across_channels=across, normalize_variance=both, eps=1e-5)
      for across in (True, False) for both in (True, False)),
    *(case("MVN", IMAGE, fixed(L([2, -1])), normalize_variance=True, eps=0.1, eps_mode=mode)
      for mode in ("inside_sqrt", "outside_sqrt")),
    case("MVN", IMAGE, fixed(L([1])), normalize_variance=False, eps=0.1, eps_mode="inside_sqrt"),
    case("BatchNormInference", IMAGE, *PER_CHANNEL, VARIANCE, epsilon=0.1),
    case("BatchNormInference", *PER_CHANNEL[:2], IMAGE, PER_CHANNEL[2], VARIANCE, opset=1, epsilon=0.1),
    case("GroupNormalization", IMAGE, *PER_CHANNEL[:2], num_groups=2, epsilon=0.1),
    *(case("NormalizeL2", IMAGE, fixed(L(axes)), eps=0.5, eps_mode=mode) for axes in ([1], [1, 2, 3])
      for mode in ("add", "max")),
    *(case("LRN", IMAGE, fixed(L(axes)), alpha=0.4, beta=0.6, bias=1.0, size=3) for axes in ([1], [2, 3])),
    case("LRN", IMAGE, fixed(L([1])), alpha=0.4, beta=0.6, bias=2.0, size=3, expected=(local_response(),)),
]  # fmt: skip

QUERY, KEY, VALUE = numbers(2, 3, 4), numbers(2, 5, 4), numbers(2, 5, 2)
PRODUCTS = [
    *(case("MatMul", a, b, transpose_a=False, transpose_b=False)
      for a, b in ((MATRIX, LIST), (LIST, MATRIX.T), (LIST, LIST), (QUERY, MATRIX.T), (MATRIX, MATRIX.T))),
    case("MatMul", MATRIX, QUERY, transpose_a=False, transpose_b=True),
    case("MatMul", MATRIX.T.copy(), MATRIX.T, transpose_a=True, transpose_b=False),
    case("Einsum", QUERY, KEY, equation="bij,bkj->bik"),
    case("Einsum", QUERY, KEY, equation="Bij,Bkj->kiB", open=False),
    *(case("ScaledDotProductAttention", QUERY, KEY, VALUE, causal=causal) for causal in (True, False)),
    case("ScaledDotProductAttention", QUERY, KEY, VALUE, numbers(3, 5), causal=False),
    case("ScaledDotProductAttention", QUERY, KEY, VALUE, numbers(2, 3, 5) < 1, causal=False),
    case("ScaledDotProductAttention", QUERY, KEY, VALUE, numbers(3, 5), F(0.3), causal=False),
]  # fmt: skip

TABLE, BAGS = numbers(6, 3), N([[0, 2], [5, 1], [2, 2]])
NAMES, STARTS, SEGMENTS, WEIGHTS = N([0, 2, 4, 1]), N([0, 2, 2]), N([0, 0, 2, 3]), numbers(4)
EMBEDDINGS = [
    case("EmbeddingBagPackedSum", TABLE, BAGS),
    case("EmbeddingBagPackedSum", TABLE, BAGS, numbers(3, 2)),
    *(case("EmbeddingBagPacked", TABLE, BAGS, reduction=how) for how in ("sum", "mean")),
    case("EmbeddingBagOffsetsSum", TABLE, NAMES, STARTS),
    case("EmbeddingBagOffsetsSum", TABLE, NAMES, STARTS, N(3)),
    case("EmbeddingBagOffsetsSum", TABLE, NAMES, STARTS, fixed(N(-1)), WEIGHTS),
    *(case("EmbeddingBagOffsets", TABLE, NAMES, STARTS, reduction=how) for how in ("sum", "mean")),
    case("EmbeddingSegmentsSum", TABLE, NAMES, SEGMENTS, fixed(N(5))),
    case("EmbeddingSegmentsSum", TABLE, NAMES, SEGMENTS, fixed(N(5)), N(1), WEIGHTS),
    *(case("SegmentMax", MATRIX, N([0, 0, 2]), fill_mode=fill, open=False) for fill in ("ZERO", "LOWEST")),
    *(case("SegmentMax", MATRIX, N([0, 0, 2]), fixed(N(count)), fill_mode="ZERO") for count in (5, 2)),
    case("SegmentMax", N([3, -9, 5]), fixed(L([0, 2, 2])), fill_mode="LOWEST"),
    case("SparseFillEmptyRows", F([1, 2, 3]), L([4, 5]), L([[0, 1], [0, 3], [2, 0]]), F(9), open=False),
    case("SparseFillEmptyRows", F([1, 2, 3]), N([4, 5]), N([[2, 1], [0, 3], [2, 0]]), F(9)),
]

STEPS = F(np.eye(4)[[[0, 0, 3, 1, 1, 3], [1, 3, 1, 2, 2, 0]]])
MASK = F([[1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 0, 0]])
TREE = np.array([[[1, 1, 1], [2, 2, 2]], [[4, 5, 6], [7, 8, 9]], [[2, 9, 3], [5, 5, 6]]], N)
DECODERS = [
    *(case("CTCGreedyDecoder", STEPS.transpose(1, 0, 2), MASK.T, ctc_merge_repeated=merges)
      for merges in (True, False)),
    *(case("CTCGreedyDecoderSeqLen", STEPS, N([6, 4]), merge_repeated=merges) for merges in (True, False)),
    case("CTCGreedyDecoderSeqLen", STEPS, N([5, 6]), fixed(N(1)), classes_index_type="i64", sequence_length_type="i64"),
    case("GatherTree", TREE, N([[[0, 0, 0]] * 2, [[0, 1, 1]] * 2, [[2, 1, 0], [0, 2, 2]]]), N([3, 2]), fixed(N(10))),
]  # fmt: skip

KERNEL = fixed(numbers(3, 4, 3, 2))
BACK = fixed(numbers(4, 3, 3, 2))
ONES, NONE = [1, 1], [0, 0]


def convolution(op, kernel, *more, x=IMAGE, strides=(2, 1), begin=(1, 0), end=(0, 1), dilations=(1, 2), **attributes):
    lists = {"strides": strides, "pads_begin": begin, "pads_end": end, "dilations": dilations}
    lists = {name: list(list_) for name, list_ in lists.items()}
    return case(op, x, kernel, *more, **lists, **attributes, open=False, tolerance=1e-4)


COLUMNS = numbers(2, 12, 9)


def deformable(kernel, groups=1, shifts=1, fades=False, masked=True, opset=8):
    """The output has 3 x 6 positions, and the window 6 taps."""
    offset = 2 * numbers(2, 12 * shifts, 3, 6)
    mask = [np.abs(numbers(2, 6 * shifts, 3, 6))] if masked else []
    more = {"bilinear_interpolation_pad": fades} if opset == 8 else {}
    lists = {"strides": [2, 1], "dilations": [1, 2], "pads_begin": [1, 1], "pads_end": [1, 1]}
    return case("DeformableConvolution", IMAGE, offset, kernel, *mask, opset=opset, **lists, **more, group=groups,
                deformable_group=shifts, auto_pad="explicit", tolerance=1e-4)  # fmt: skip


CONVOLUTIONS = [
    convolution("Convolution", KERNEL),
    *(convolution("Convolution", KERNEL, auto_pad=how) for how in ("same_upper", "same_lower", "valid")),
    convolution("Convolution", fixed(numbers(3, 4, 3)), x=IMAGE[:, :, 0], strides=[1], begin=[1], end=[1],
                dilations=[1]),
    convolution("GroupConvolution", fixed(numbers(2, 3, 2, 3, 2))),
    convolution("ConvolutionBackpropData", BACK),
    convolution("ConvolutionBackpropData", BACK, output_padding=[1, 0]),
    *(convolution("ConvolutionBackpropData", BACK, fixed(L([10, 7])), auto_pad=how, begin=NONE, end=NONE)
      for how in ("same_upper", "same_lower", "explicit")),
    convolution("GroupConvolutionBackpropData", fixed(numbers(2, 2, 3, 3, 2))),
    case("Col2Im", COLUMNS, fixed(L([4, 5])), fixed(L([2, 3])), strides=[1, 1], dilations=[1, 1],
         pads_begin=[0, 0], pads_end=[0, 0]),
    case("Col2Im", COLUMNS[0], fixed(N([6, 5])), fixed(N([2, 3])), strides=[2, 2], dilations=[2, 1],
         pads_begin=[1, 0], pads_end=[0, 2]),
    *(deformable(fixed(numbers(6, 4 // groups, 3, 2)), groups=groups, shifts=shifts, fades=fades)
      for groups, shifts, fades in ((1, 1, True), (2, 1, False), (1, 2, True), (2, 4, False))),
    deformable(fixed(numbers(6, 4, 3, 2)), masked=False, opset=1),
]  # fmt: skip


def pooling(op, opset, kernel=(3, 2), strides=(2, 2), begin=(1, 0), end=(1, 1), rounding="floor", **attributes):
    lists = {"kernel": kernel, "strides": strides, "pads_begin": begin, "pads_end": end}
    lists = {name: list(list_) for name, list_ in lists.items()}
    return case(op, IMAGE, opset=opset, **lists, rounding_type=rounding, **attributes, open=False)


POOLINGS = [
    *(pooling("AvgPool", opset, **{"exclude-pad": without}) for opset in (1, 14) for without in (True, False)),
    pooling("AvgPool", 16, dilations=[1, 2], **{"exclude-pad": True}),
    *(pooling("AvgPool", 14, auto_pad=how, begin=NONE, end=NONE, **{"exclude-pad": True})
      for how in ("same_upper", "valid")),
    *(pooling("AvgPool", 14, rounding=how, end=(0, 0), **{"exclude-pad": True}) for how in ("ceil", "ceil_torch")),
    pooling("MaxPool", 1),
    *(pooling("MaxPool", 8, dilations=[1, 2], axis=axis, index_element_type="i32") for axis in (0, 1, 2)),
    pooling("MaxPool", 14, rounding="ceil_torch", dilations=ONES, end=(0, 0)),
    case("AdaptiveAvgPool", IMAGE, fixed(L([2, 4])), open=False),
    *(case("AdaptiveMaxPool", x, fixed(L(shape)), opset=8, index_element_type="i32", open=False)
      for x, shape in ((IMAGE, [2, 4]), (IMAGE, [5, 1]), (IMAGE[0], [4]))),
]  # fmt: skip


def interpolation(value, **attributes):
    kind = "scales" if np.asarray(value).dtype == F else "sizes"
    attributes = {"mode": "linear_onnx", "shape_calculation_mode": kind, **attributes}
    return case("Interpolate", IMAGE, fixed(value), fixed(L([2, 3])), **attributes, open=False, tolerance=1e-4)


WAYS = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")
IMAGES = [
    *(interpolation(L([8, 3]), coordinate_transformation_mode=way) for way in WAYS),
    *(interpolation(F([2.5, 0.5]), coordinate_transformation_mode=way) for way in WAYS),
    *(interpolation(L([8, 3]), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode=how)
      for how in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")),
    *(interpolation(L([8, 9]), mode="cubic", coordinate_transformation_mode=way, cube_coeff=-0.5) for way in WAYS),
    interpolation(L([8, 9]), mode="linear", coordinate_transformation_mode="half_pixel"),
    interpolation(L([8, 9]), coordinate_transformation_mode="half_pixel", pads_begin=[0, 0, 1, 0],
                  pads_end=[0, 0, 0, 2]),
    case("Interpolate", IMAGE, fixed(L([7, 4])), fixed(F([2, 2])), fixed(L([2, 3])), opset=4, mode="linear_onnx",
         shape_calculation_mode="sizes", open=False, tolerance=1e-4),
    *(case("GridSample", IMAGE, numbers(2, 3, 2, 2), mode=mode, padding_mode=pad, align_corners=align)
      for mode, pad, align in (("bilinear", "zeros", True), ("bilinear", "border", False),
                               ("nearest", "zeros", False), ("bicubic", "reflection", True))),
    case("FakeQuantize", IMAGE, *(fixed(F(number)) for number in (-1, 1.5, -2, 3)), levels=17),
    case("FakeQuantize", IMAGE, fixed(F([[[-1]], [[-2]], [[-1]], [[0]]])), *(fixed(F(number)) for number in (1, 0, 5)),
         levels=5),
]  # fmt: skip

BOXES = F(
    [
        [[0, 0, 2, 2], [0, 0, 2, 2.1], [3, 3, 5, 5], [0, 1, 2, 3]],
        [[1, 1, 4, 4], [0, 0, 1, 1], [1, 1, 4, 5], [8, 8, 9, 9]],
    ]
)
SCORES = F([[[0.9, 0.8, 0.3, 0.7], [0.1, 0.6, 0.5, 0.2]], [[0.4, 0.35, 0.95, 0.05], [0.25, 0.15, 0.85, 0.45]]])
LIMITS = fixed(L(3)), fixed(F(0.4)), fixed(F(0.12))
REGIONS = F([[0, 0, 3, 4], [1.5, 1, 5, 2.25], [2, 2, 2.2, 2.3], [-1, -1, 9, 9]])
COMPLEX = numbers(3, 4, 5, 2)
SOUND, SPECTRA = numbers(2, 20), numbers(2, 5, 4, 2)
WINDOW = F([0.5, 1, 0.5, 0.25, 0.3, 0.2, 0.6, 0.1])
SIGNALS = [
    *(case("NonMaxSuppression", BOXES, SCORES, *LIMITS, opset=9, box_encoding=code, sort_result_descending=order)
      for code, order in (("corner", True), ("center", False))),
    case("NonMaxSuppression", BOXES, SCORES, *LIMITS, opset=9, output_type="i32"),
    *(case("ROIAlign", IMAGE, REGIONS, fixed(N([0, 1, 0, 1])), opset=9, pooled_h=2, pooled_w=3, sampling_ratio=ratio,
           spatial_scale=0.75, mode=mode, aligned_mode=aligned)
      for ratio, mode, aligned in ((2, "avg", "asymmetric"), (0, "avg", "half_pixel"), (3, "max", "half_pixel_for_nn"),
                                   (0, "max", "asymmetric"))),
    case("ROIAlign", IMAGE, REGIONS, fixed(N([0, 1, 0, 1])), opset=3, pooled_h=2, pooled_w=3, sampling_ratio=2,
         spatial_scale=0.75, mode="avg"),
    *(case(op, COMPLEX, fixed(L([0, -1])), opset=7, open=False) for op in ("DFT", "IDFT")),
    case("DFT", COMPLEX, fixed(L([1, 2])), fixed(L([6, 3])), opset=7, open=False),
    case("RDFT", COMPLEX[..., 0], fixed(L([0, 2])), opset=9, open=False),
    case("RDFT", COMPLEX[..., 0], fixed(L([1])), fixed(L([3])), opset=9, open=False),
    case("IRDFT", COMPLEX, fixed(L([0, 2])), opset=9, open=False),
    case("IRDFT", COMPLEX, fixed(L([2, 1])), fixed(L([5, 5])), opset=9, open=False),
    *(case("STFT", SOUND, fixed(WINDOW[:taps]), fixed(L(8)), fixed(N(3)), transpose_frames=turned)
      for taps, turned in ((8, False), (5, True))),
    case("STFT", SOUND[0], WINDOW, fixed(L(8)), fixed(L(5)), transpose_frames=True),
    *(case("ISTFT", SPECTRA, fixed(WINDOW[:taps]), fixed(L(8)), fixed(L(3)), center=center, normalized=scaled)
      for taps, center, scaled in ((8, False, True), (6, True, False), (5, False, False))),
    *(case("ISTFT", SPECTRA[0], WINDOW, fixed(L(8)), fixed(L(3)), fixed(L(length)), center=center, normalized=True)
      for length, center in ((7, True), (30, True), (30, False))),
]  # fmt: skip

CASES = NORMS + PRODUCTS + EMBEDDINGS + DECODERS + CONVOLUTIONS + POOLINGS + IMAGES + SIGNALS


@pytest.mark.parametrize("case", CASES, ids=str)
def test_layer_gives_what_openvino_gives(case):
    assert_agrees(case)


@pytest.mark.parametrize("case", [case_ for case_ in CASES if case_.open], ids=str)
def test_layer_gives_the_same_where_the_call_gives_all_lengths(case):
    assert_agrees(case, open=True)
