"""Sequences of saved models, which are stacked tensors in OpenVINO, against onnxruntime."""

import numpy as np
import pytest

import netloop as trt
from netloop.onnx import load
from tests.formats.openvino.exporter.test_control import TRUE, check_calls
from tests.support.onnx_models import model
from tests.support.openvino_runtime import export

CALLS = [
    {"x": np.random.default_rng(rows).normal(size=(rows, 3)).astype(np.float32), "n": np.array(trips)}
    for rows, trips in ((2, 3), (2, 3), (4, 2), (3, 5), (7, 5), (7, 2))
]
BODIES = {
    "appended": "u2 = Add(u, x) q2 = SequenceInsert(q, u2)",
    "put first": "u2 = Add(u, x) q2 = SequenceInsert(q, u2, z)",
    "appended in every other iteration": """u2 = Add(u, x) two = Constant<value = int64 {2}>() m = Mod(i, two)
        even = Equal(m, z) q2 = If(even) <then_branch = a () => (seq(float[B,C]) p) { p = SequenceInsert(q, u2) },
                                    else_branch = o () => (seq(float[B,C]) p) { p = Identity(q) }>""",
    "read in the loop": "q1 = SequenceInsert(q, u) l = SequenceAt(q1, e) u2 = Add(l, x) q2 = Identity(q1)",
}
ALL = "y = ConcatFromSequence<axis=0>(s)"
NUMBER = "l = SequenceLength(s) y = Expand(l, one)"
RESULTS = """last = SequenceAt(s, e) first = SequenceAt(s, z) beside = ConcatFromSequence<axis=-1>(s)
    planes = ConcatFromSequence<axis=0, new_axis=1>(s) columns = ConcatFromSequence<axis=-1, new_axis=1>(s)
    s1 = SequenceErase(s, z) without_first = ConcatFromSequence<axis=1>(s1)
    s2 = SequenceErase(s) without_last = ConcatFromSequence<axis=0>(s2)
    m2 = Constant<value = int64 {-2}>() s3 = SequenceErase(s, m2) without_middle = ConcatFromSequence<axis=0>(s3)
    s4 = SequenceInsert(s, x, e) with_another = ConcatFromSequence<axis=0>(s4)"""
NAMES = "last, first, beside, planes, columns, without_first, without_last, without_middle, with_another"


def looped(body, result, names="y", columns="3"):
    """A result of a sequence to which a loop of n iterations adds tensors."""
    body, type = body.replace("C]", f"{columns}]"), f"float[B,{columns}]"
    return f"""g ({type} x, int64 n) => ({names})
        {{ {TRUE} z = Constant<value = int64 {{0}}>() e = Constant<value = int64 {{-1}}>()
          one = Constant<value_ints=[1]>() s0 = SequenceEmpty() h = Sub(x, x)
          h2, s = Loop(n, t, h, s0) <body = b (int64 i, bool c, {type} u, seq({type}) q)
            => (bool c, {type} u2, seq({type}) q2) {{ {body} }}>
          {result} }}"""


@pytest.mark.parametrize("body", BODIES)
def test_sequence_that_a_loop_makes(body):
    check_calls(looped(BODIES[body], ALL), CALLS)


@pytest.mark.parametrize("columns", ["3", "C"])
def test_what_is_read_from_a_sequence(columns):
    check_calls(looped(BODIES["appended"], RESULTS, NAMES, columns), CALLS)


def test_sequence_of_a_loop_without_iterations_is_empty():
    calls = [inputs | {"n": np.array(trips)} for inputs, trips in zip(CALLS, (0, 1, 0, 2, 5, 0), strict=True)]

    check_calls(looped(BODIES["appended"], NUMBER), calls)


def test_sequence_of_numbers():
    check_calls(
        f"""g (int64 n) => (y) {{ {TRUE} s0 = SequenceEmpty<dtype=7>()
        s = Loop(n, t, s0) <body = b (int64 i, bool c, seq(int64) q) => (bool c, seq(int64) q2)
          {{ q2 = SequenceInsert(q, i) }}>
        y = ConcatFromSequence<axis=0, new_axis=1>(s) }}""",
        [{"n": inputs["n"]} for inputs in CALLS],
    )


@pytest.mark.parametrize(("axis", "keeps"), [(0, 1), (1, 0), (-1, 1)])
def test_slices_of_a_tensor(axis, keeps):
    check_calls(
        f"""g (float[B,3] x) => (y, w) {{ a = Add(x, x) last = Constant<value = int64 {{-1}}>()
        s = SplitToSequence<axis={axis}, keepdims={keeps}>(x) y = SequenceAt(s, last)
        r = SequenceConstruct(x, a, x) w = ConcatFromSequence<axis=1>(r) }}""",
        [{"x": inputs["x"]} for inputs in CALLS],
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("g (float[B,3] x) => (seq(float[B,3]) y) { y = SequenceConstruct(x, x) }", "the output 'y' is a sequence of"),
        (
            """g (float[B,3] x, int64[K] l) => (y) { z = Constant<value = int64 {0}>()
            s = SplitToSequence<axis=1>(x, l) y = SequenceAt(s, z) }""",
            "the parts of a split may have several lengths",
        ),
        (
            """g (float[B,3] x, float[B,2] w, int64 n) => (y)
            { s = SequenceConstruct(x, w) r = SequenceErase(s, n) y = SequenceLength(r) }""",
            r"a sequence holds tensors of the shapes \[-1, 3\] and \[-1, 2\]",
        ),
        (
            """g (float[B,3] x, float[3] w, int64 n) => (y)
            { s0 = SequenceConstruct(x, x) s = SequenceInsert(s0, w) r = SequenceErase(s, n) y = SequenceLength(r) }""",
            r"a sequence holds tensors of the shapes \[-1, 3\] and \[3\]",
        ),
    ],
)
def test_sequences_that_openvino_cannot_stack_are_refused(text, why):
    with pytest.raises(trt.NetworkError, match=why) as caught:
        export(load(model(text)))

    assert {finding.code for finding in caught.value.findings} == {"NL732"}
