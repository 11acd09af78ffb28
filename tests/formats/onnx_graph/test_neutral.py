"""Saved models without nodes that change nothing."""

import numpy as np
import pytest
from onnx import parser

import netloop as trt
from netloop.onnx import load
from tests.support.networks import Op, constant, counted, counter, mark, stacked
from tests.support.onnx_runtime import export, run


def operators(model):
    """The operators of the outermost graph, except the copies that outputs need."""
    return [attribute.op_type for attribute in model.graph.node if attribute.op_type != "Identity"]


def agree(network, inputs):
    model = export(network)
    for optimized in (False, True):
        for name, wanted in trt.evaluate(network, inputs).items():
            got = run(model, inputs, optimized)[name]
            assert (got.dtype, got.shape, got.tobytes()) == (wanted.dtype, wanted.shape, wanted.tobytes())
    return operators(model)


X = {"int32": np.int32([-3, 0, 5]), "float32": np.float32([-0.0, 0.0, np.inf]), "bool": np.array([True, False, True])}


@pytest.mark.parametrize(
    ("op", "number", "dtype", "is_neutral"),
    [
        (Op.SUM, 0, "int32", True), (Op.SUB, 0, "int32", True), (Op.PROD, 1, "int32", True), (Op.DIV, 1, "int32", True),
        (Op.PROD, 1, "float32", True), (Op.DIV, 1, "float32", True), (Op.AND, True, "bool", True),
        (Op.OR, False, "bool", True), (Op.XOR, False, "bool", True), (Op.SUM, 0, "float32", False),
        (Op.SUB, 0, "float32", False), (Op.SUM, 1, "int32", False), (Op.AND, False, "bool", False),
        (Op.AND, 1, "int32", False), (Op.MAX, 0, "int32", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_open", [False, True])
def test_constant_that_changes_nothing_needs_no_operator(op, number, dtype, is_neutral, is_open):
    network = trt.INetworkDefinition()
    x = network.add_input("x", getattr(trt, dtype), (-1,) if is_open else (3,))
    mark(network, y=network.add_elementwise(x, constant(network, [number], dtype), op).get_output(0))

    assert (agree(network, {"x": X[dtype]}) == []) == is_neutral


@pytest.mark.parametrize("op", [Op.SUM, Op.PROD, Op.SUB, Op.DIV])
def test_constant_in_front_changes_nothing_in_sums_and_products_only(op):
    network = trt.INetworkDefinition()
    number = constant(network, [int(op in (Op.PROD, Op.DIV))], np.int32)
    mark(network, y=network.add_elementwise(number, network.add_input("x", trt.int32, (3,)), op).get_output(0))

    assert (agree(network, {"x": np.int32([2, -3, 4])}) == []) == (op in (Op.SUM, Op.PROD))


@pytest.mark.parametrize("is_open", [False, True])
def test_constant_that_is_longer_than_the_input_repeats_it(is_open):
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.int32, (-1,) if is_open else (1,))
    mark(network, y=network.add_elementwise(x, constant(network, [0, 0], np.int32), Op.SUM).get_output(0))

    assert agree(network, {"x": np.int32([7])})


@pytest.mark.parametrize("flag", [False, True])
def test_choice_by_a_constant_needs_no_operator(flag):
    network = trt.INetworkDefinition()
    a, b = network.add_input("a", trt.int32, (2,)), network.add_input("b", trt.int32, (2,))
    choice = constant(network, [flag], np.bool_)
    mark(network, y=network.add_select(choice, a, b).get_output(0))

    assert agree(network, {"a": np.int32([1, 2]), "b": np.int32([3, 4])}) == []


LOOP = """<ir_version: 8, opset_import: ["" : 18]>
g (float[B] s0, int64 n) => (s, all) { t = Constant<value = bool {1}>()
  s, all = Loop(n, t, s0) <body = b (int64 i, bool c, float[B] u) => (c2, float[B] w, row)
  { w = Add(u, u) row = Identity(w) c2 = CONDITION }> }"""


@pytest.mark.parametrize("condition", ["Identity(c)", "Constant<value = bool {1}>()"])
def test_counted_loop_is_saved_without_choices_and_padding(condition):
    network = load(parser.parse_model(LOOP.replace("CONDITION", condition)))

    for trips in (-2, 0, 1, 2, 5):
        found = agree(network, {"s0": np.float32([1, 2, 3]), "n": np.int64(trips)})
        assert not {"Where", "And", "ConstantOfShape", "Sub"}.intersection(found)


def test_condition_below_a_count_is_no_branch():
    text = LOOP.replace("CONDITION", "Less(i, n)")
    model = export(load(parser.parse_model(text)))
    (loop,) = (attribute for attribute in model.graph.node if attribute.op_type == "Loop")

    assert "If" not in [attribute.op_type for attribute in loop.attribute[0].g.node]


def test_rows_up_to_a_length_that_may_be_negative_are_padded():
    network = trt.INetworkDefinition()
    n = network.add_input("n", trt.int64, ())
    loop = counted(network, n)
    mark(network, y=stacked(loop, counter(network, loop), n))
    model = export(network)

    assert run(model, {"n": np.int64(3)})["y"].tolist() == [0, 1, 2]
    with pytest.raises(Exception, match="ConstantOfShape"):
        run(model, {"n": np.int64(-1)})
