"""Exported layers of every kind in OpenVINO against the reference, on the cases of the layers' own tests."""

import numpy as np
import pytest

import netloop as trt
from netloop.values.types import data_type
from tests.formats.onnx.exporter.test_cases import NOT_IN_ONNX
from tests.support.examples import mostly_slow
from tests.support.laws import Case, assert_close
from tests.support.layer_cases import add_case, all_cases, network_of
from tests.support.openvino_runtime import export, run

NOT_IN_PLUGIN = {
    "its binding has no such arrays in numpy": [
        "ICastLayer: float32 to INT4",
        "ICastLayer: float64 to INT4",
        "ICastLayer: float16 to INT4",
        "ICastLayer: bfloat16 to INT4",
        "ICastLayer: beyond INT4",
        "ICastLayer: int4 to UINT8 wraps",
        "ICastLayer: int32 to INT4 wraps",
        "ICastLayer: FP4 to INT32",
        "ICastLayer: float64 to FP4 rounds once",
        "ICastLayer: int32 to E8M0 rounds once",
        "ICastLayer: int32 to E8M0, not positive",
        "ICastLayer: float32 to E8M0",
        "IQuantizeLayer: INT8, scale E8M0",
        "IQuantizeLayer: FP8 by the least E8M0",
        "IQuantizeLayer: FP8 by the largest E8M0",
        "IQuantizeLayer: INT4, blocks",
        "IQuantizeLayer: FP4",
        "IQuantizeLayer: FP4 of no numbers",
        "IDequantizeLayer: INT4, blocks",
        "IDequantizeLayer: FP8, scales E8M0",
        "IDequantizeLayer: FP8, the least scale E8M0",
        "IDequantizeLayer: FP4, blocks",
        "IDynamicQuantizeLayer: FP4 by FP8 by a scale",
        "IDynamicQuantizeLayer: an axis cut into blocks",
    ],
    "it treats NaN as a number": [
        "IActivationLayer: RELU of NaN",
        "IActivationLayer: CLIP of NaN",
        "IActivationLayer: HARD_SIGMOID of NaN",
        "IUnaryLayer: EXP at its limits",
        "IElementWiseLayer: MAX with NaN",
        "IElementWiseLayer: MIN with NaN",
        "ICastLayer: float32 to INT32",
        "ICastLayer: float32 to INT64",
        "ICastLayer: float64 to INT32",
        "ICastLayer: float64 to INT64",
        "ICastLayer: float16 to INT32",
        "ICastLayer: float16 to INT64",
        "ICastLayer: bfloat16 to INT32",
        "ICastLayer: bfloat16 to INT64",
        "ICastLayer: float32 to UINT8",
        "ICastLayer: float64 to UINT8",
        "ICastLayer: float16 to UINT8",
        "ICastLayer: bfloat16 to UINT8",
        "IQuantizeLayer: INT8 of no numbers",
        "IQuantizeLayer: FP8 of no numbers",
        "IReduceLayer: MAX with a NaN",
        "IReduceLayer: MIN with a NaN",
        "ISoftMaxLayer: a NaN",
        "IRaggedSoftMaxLayer: NaN stays in the bound",
        "ITopKLayer: MAX with NaNs",
        "ITopKLayer: MIN with NaNs",
        "ITopKLayer: the largest with NaNs",
        "ITopKLayer: the smallest with NaNs",
        "ITopKLayer: MAX of NaN of either sign",
        "ITopKLayer: MIN of NaN of either sign",
        "ITopKLayer: the largest of negative NaN",
        "ITopKLayer: the smallest of negative NaN",
    ],
    "TopK has no order of NaN, and of zeros of either sign": [
        *(
            f"ITopKLayer: {op} of {dtype} in total order"
            for op in ("MAX", "MIN")
            for dtype in ("float32", "float64", "float16", "bfloat16")
        ),
        "ITopKLayer: the largest in total order",
        "ITopKLayer: the smallest in total order",
    ],
    "it computes integers of 64 bits in 32": [
        "IActivationLayer: RELU of int64",
        "IUnaryLayer: ABS of int64",
        "IUnaryLayer: NEG of int64",
        "IUnaryLayer: SIGN of int64",
        "IElementWiseLayer: SUB of large int64",
        "ICastLayer: beyond INT64",
        "ICastLayer: int64 to BF16 rounds once",
        "IReduceLayer: SUM of int64",
        "IReduceLayer: AVG of uint64",
        "IReduceLayer: MIN of no uint64",
        "IReduceLayer: MIN of no integers",
        "ICumulativeLayer: int64",
        "ITopKLayer: MAX at the ends of int64",
        "ITopKLayer: MIN at the ends of int64",
        "ITopKLayer: the smallest at the ends of int64",
        "IResizeLayer: nearest keeps integers",
        "IFillLayer: linear int64",
        "IFillLayer: linear int64 beyond what a double holds",
    ],
    "it computes float64 in float32": [
        "IUnaryLayer: ISINF of float64",
        "ICastLayer: float64 beyond FLOAT",
        "ICastLayer: float64 to BF16 rounds once",
        "ICastLayer: float64 to FP8 rounds once",
        "ITopKLayer: the largest of float64",
    ],
    "it converts to unsigned integers by way of int32": [
        "ICastLayer: float32 to UINT32",
        "ICastLayer: float32 to UINT64",
    ],
    "it multiplies infinite and missing numbers by 0": [
        "IGridSampleLayer: infinity at an edge is mixed with nothing, CLAMP False",
        "IGridSampleLayer: infinity at an edge is mixed with nothing, CLAMP True",
        "IGridSampleLayer: infinity at an edge is mixed with nothing, REFLECT False",
        "IResizeLayer: what is far away does not count",
    ],
    "it multiplies by the reciprocal": [
        "IMoELayer: one scale, many rows",
        "IMoELayer: a scale an expert, many rows",
        "IQuantizeLayer: INT8, a scale a row",
        "IQuantizeLayer: INT8, zero points",
        "IQuantizeLayer: INT8, whole rows",
    ],
    "it computes the lowest finite number": [
        "IPoolingLayer: maximum of nothing but padding",
    ],
    "it saturates integers": [
        "IElementWiseLayer: SUM of int8 wraps",
    ],
    "its sums of nothing are wrong": [
        "IAttentionOutputLayer: no keys give 0",
        "IMoELayer: no experts of a token",
    ],
    "it refuses random numbers between two that are equal": ["IFillLayer: uniform of one number"],
    "it refuses diagonals, and indices that leave elements out": [
        "IGatherLayer: fewer off the axis",
        "IEinsumLayer: ii",
    ],
}
"""The differences of the CPU plugin, and the cases that show them."""

OTHERWISE = {name for names in NOT_IN_PLUGIN.values() for name in names}


def outputs(case: Case) -> tuple[np.ndarray, ...]:
    results = case.layer.evaluate(*case.inputs, **case.named)
    return results if isinstance(results, tuple) else (results,)


def is_refused(case: Case) -> bool:
    layer = case.layer
    return (
        str(case) in NOT_IN_ONNX
        or isinstance(layer, trt.IDeterminantLayer)
        or (isinstance(layer, trt.ICumulativeLayer) and layer.op is trt.CumulativeOperation.PROD)
        or (isinstance(layer, trt.IResizeLayer) and layer.coordinate_transformation is CROP)
    ) and outputs(case)[0].size > 0


CROP = trt.ResizeCoordinateTransformation.CROP
CASES = all_cases()
REFUSED = [case_ for case_ in CASES if is_refused(case_)]
SAVED = [case_ for case_ in CASES if not is_refused(case_) and str(case_) not in OTHERWISE]
DRAWING = [case_ for case_ in SAVED if case_.layer.draws]
CERTAIN = [case_ for case_ in SAVED if not case_.layer.draws]
KINDS = list(dict.fromkeys(type(case_.layer) for case_ in CERTAIN))


@pytest.mark.parametrize("kind", mostly_slow(30, KINDS), ids=lambda kind: kind.__name__)
def test_layer_in_openvino_agrees_with_the_reference(kind):
    cases = [case_ for case_ in CERTAIN if type(case_.layer) is kind]
    network, arrays = trt.INetworkDefinition(), {}
    for number, case in enumerate(cases):
        arrays |= add_case(network, case, before=f"{number}.")
    got = run(export(network), arrays)

    for number, case in enumerate(cases):
        for position, wanted in enumerate(outputs(case)):
            found = got[f"{number}.y{position}"]
            assert found.dtype == wanted.dtype, case
            if wanted.dtype.name.startswith("float8"):
                found, wanted = found.astype(np.float32), wanted.astype(np.float32)
            assert_close(found, wanted, max(case.rtol, 1e-4))


@pytest.mark.parametrize("case", DRAWING, ids=str)
def test_random_fill_has_its_type_and_shape(case):
    network, arrays = network_of(case)
    (meant,) = network.outputs
    got = run(export(network), arrays)["y0"]

    assert (data_type(got.dtype), got.shape) == (meant.dtype, tuple(meant.shape))


def test_what_openvino_cannot_express_is_refused():
    for case in REFUSED:
        with pytest.raises(trt.NetworkError, match="NL732"):
            export(network_of(case)[0])


def test_every_exception_is_a_case():
    assert {str(case_) for case_ in CASES} >= OTHERWISE
