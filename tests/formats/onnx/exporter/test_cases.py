"""Exported layers of every kind in onnxruntime against the reference, on the cases of the layers' own tests."""

import numpy as np
import pytest

import netloop as trt
from netloop.formats.onnx_graph.exporter_table import EXPORTERS
from netloop.model.layers.assertion import IAssertionLayer
from netloop.model.layers.conditional import IIfConditionalBoundaryLayer
from netloop.model.layers.loop import ILoopBoundaryLayer
from netloop.model.plan.layer_kinds import kinds
from netloop.values import types
from netloop.values.types import data_type
from tests.support.laws import Case, assert_close
from tests.support.layer_cases import all_cases, network_of
from tests.support.onnx_runtime import export, run, run_by_reference

STRUCTURE = (ILoopBoundaryLayer, IIfConditionalBoundaryLayer, IAssertionLayer)
"""The kinds without an exporter of their own: ``exporter.py``, ``loop.py`` and ``conditional.py`` export them."""

NO_KERNEL = "onnxruntime has no kernel for this type"
ROUNDS_TWICE = "onnxruntime rounds to float32 on the way"
TIMES_ZERO = "onnxruntime multiplies infinite and missing numbers by 0"
NO_NAN = "onnxruntime ignores NaN"
NO_NAN_YET = "onnxruntime ignores NaN before 1.32"
NO_TOTAL_ORDER = "ONNX's TopK has no order of NaN, and of zeros of either sign"

# fmt: off
NOT_IN_ONNX = {
    "IDequantizeLayer: INT8 to double":                                 "double",
    "IDynamicQuantizeLayer: FP8 by E8M0":                               "powers of two",
    "IDynamicQuantizeLayer: a block of zeros by E8M0":                  "powers of two",
    "IDynamicQuantizeLayer: the greatest and no numbers by E8M0":       "powers of two",
}
NOT_IN_ONNXRUNTIME = {
    "IPoolingLayer: maximum of nothing but padding": "onnxruntime computes the lowest finite number",
    "IPoolingLayer: average of nothing but padding": "onnxruntime moves padding into pooling before 1.32",
    "IQuantizeLayer: INT8 of no numbers":            "onnxruntime quantizes NaN to the least integer",
    "IReduceLayer: SUM of int32 wraps":              "onnxruntime sums int32 in floating point",
    "IReduceLayer: AVG of uint64":                  "onnxruntime sums int64 in floating point",
    "IReduceLayer: MIN of no uint64":               NO_KERNEL,
    "IReduceLayer: MAX of no bool":                 "onnxruntime refuses a maximum of nothing in bool",
    "ICastLayer: float64 to FP8 rounds once":       ROUNDS_TWICE,
    "ICastLayer: float64 to FP4 rounds once":       ROUNDS_TWICE,
    "ICastLayer: int32 to E8M0 rounds once":        ROUNDS_TWICE,
    "IReduceLayer: MAX with a NaN":                  NO_NAN,
    "IReduceLayer: MIN with a NaN":                  NO_NAN,
    "ITopKLayer: MAX with NaNs":                     NO_NAN_YET,
    "ITopKLayer: MIN with NaNs":                     NO_NAN,
    "ITopKLayer: the largest with NaNs":             NO_NAN_YET,
    "ITopKLayer: the smallest with NaNs":            NO_NAN,
    "ITopKLayer: MIN of NaN of either sign":         NO_NAN,
    "ITopKLayer: the smallest of negative NaN":      NO_NAN,
    **{f"ITopKLayer: {op} of {dtype} in total order": NO_TOTAL_ORDER
       for op in ("MAX", "MIN") for dtype in ("float32", "float64", "float16", "bfloat16")},
    "ITopKLayer: the largest in total order":        NO_TOTAL_ORDER,
    "ITopKLayer: the smallest in total order":       NO_TOTAL_ORDER,
    "IGridSampleLayer: far away":                    "onnxruntime overflows at positions far from all pixels",
    "IGridSampleLayer: infinity at an edge is mixed with nothing, CLAMP False":   TIMES_ZERO,
    "IGridSampleLayer: infinity at an edge is mixed with nothing, CLAMP True":    TIMES_ZERO,
    "IGridSampleLayer: infinity at an edge is mixed with nothing, REFLECT False": TIMES_ZERO,
    "IResizeLayer: what is far away does not count": TIMES_ZERO,
    "IResizeLayer: a part with nothing in it":       "onnxruntime does not resize a single axis with antialias",
}
OF_DOUBLE = {
    "LeakyRelu", "Elu", "Selu", "Softsign", "Softplus", "HardSigmoid", "ThresholdedRelu", "Gelu", "Tan", "Sinh", "Cosh",
    "Asin", "Acos", "Atan", "Asinh", "Acosh", "Atanh", "Erf", "Conv", "ConvTranspose", "AveragePool", "LRN", "Resize",
    "Det",
}
# fmt: on
"""The operators without a float64 kernel in onnxruntime."""

BY_REFERENCE = {np.dtype(types.NUMPY_TYPES[trt.fp4])}
"""The types that only the onnx package's own runtime computes."""

CASES = [case_ for case_ in all_cases() if str(case_) not in NOT_IN_ONNX]
DRAWING = [case_ for case_ in CASES if case_.layer.draws]
CERTAIN = [case_ for case_ in CASES if not case_.layer.draws]


def outputs(case: Case) -> tuple[np.ndarray, ...]:
    results = case.layer.evaluate(*case.inputs, **case.named)
    return results if isinstance(results, tuple) else (results,)


def assert_same(got: np.ndarray, wanted: np.ndarray, rtol: float) -> None:
    assert got.dtype == wanted.dtype
    if wanted.dtype.name.startswith(("float8", "float4", "int4")):
        got, wanted = got.astype(np.float32), wanted.astype(np.float32)
    assert_close(got, wanted, max(rtol, 1e-5))


def agree(case: Case, dynamic: bool = False) -> None:
    network, arrays = network_of(case, dynamic)
    model = export(network)
    meant = outputs(case)
    if any(
        array is not None and array.dtype == np.float64 for array in (*case.inputs, *meant)
    ) and OF_DOUBLE.intersection(node.op_type for node in model.graph.node):
        pytest.skip(NO_KERNEL)
    by_reference = BY_REFERENCE & {array.dtype for array in (*case.inputs, *meant) if array is not None}
    got = (run_by_reference if by_reference else run)(model, arrays)
    for position, wanted in enumerate(meant):
        assert_same(got[f"y{position}"], wanted, case.rtol)


def skipping(cases: list[Case]) -> list:
    reasons = NOT_IN_ONNXRUNTIME
    return [
        pytest.param(case_, id=str(case_), marks=pytest.mark.skip(reasons[str(case_)]) if str(case_) in reasons else ())
        for case_ in cases
    ]


@pytest.mark.parametrize("kind", kinds().values())
def test_every_kind_has_an_exporter(kind):
    assert kind in EXPORTERS or issubclass(kind, STRUCTURE)


@pytest.mark.parametrize("case", skipping(CERTAIN))
def test_layer_in_onnxruntime_agrees_with_the_reference(case):
    agree(case)


@pytest.mark.parametrize("case", DRAWING, ids=str)
def test_random_fill_has_its_type_and_shape(case):
    network, arrays = network_of(case)
    (meant,) = network.outputs
    got = run(export(network), arrays)["y0"]

    assert (data_type(got.dtype), got.shape) == (meant.dtype, tuple(meant.shape))


def test_random_fills_have_their_distributions():
    network = trt.INetworkDefinition()
    for name, kind in (("uniform", trt.FillOperation.RANDOM_UNIFORM), ("normal", trt.FillOperation.RANDOM_NORMAL)):
        fill = network.add_fill((4000,), kind)
        fill.alpha, fill.beta = 3, 5
        fill.get_output(0).name = name
        network.mark_output(fill.get_output(0))
    got = run(export(network), {})

    assert 3 <= got["uniform"].min() < 3.1
    assert 4.9 < got["uniform"].max() < 5
    assert abs(got["normal"].mean() - 3) < 0.5
    assert abs(got["normal"].std() - 5) < 0.5


@pytest.mark.parametrize("name", NOT_IN_ONNX)
def test_what_onnx_cannot_express_is_refused(name):
    (case,) = (case_ for case_ in all_cases() if str(case_) == name)

    with pytest.raises(trt.NetworkError, match="NL731"):
        export(network_of(case)[0])


@pytest.mark.parametrize("name", NOT_IN_ONNXRUNTIME)
def test_every_exception_is_a_case(name):
    assert name in map(str, CERTAIN)
