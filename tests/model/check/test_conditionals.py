"""Rules about conditionals, each with the smallest network that breaks it."""

import numpy as np
import pytest

import netloop as trt
from tests.support.findings import line_of, only
from tests.support.networks import F, constant, mark


def test_conditional_without_a_condition(network):
    conditional = network.add_if_conditional()  # no condition
    conditional.name = "which"
    one = constant(network, 1, F)
    mark(network, y=conditional.add_output(one, one).get_output(0))

    found = only(network, "NL301", conditional)
    assert found.what == "'which' has no condition"
    assert found.fix == "call set_condition(tensor) on it, with a bool[]"
    assert (
        found.where
        == line_of(__file__, "conditional = network.add_if_conditional()  # no") + ", IIfConditional 'which'"
    )


def test_second_condition(network):
    conditional = network.add_if_conditional()
    first = conditional.set_condition(constant(network, True, np.bool_))
    second = conditional.set_condition(constant(network, True, np.bool_))
    one = constant(network, 1, F)
    mark(network, y=conditional.add_output(one, one).get_output(0))

    found = only(network, "NL301", second)
    assert found.fix == f"combine them into one tensor; the first is {first.name!r}"


def test_conditional_that_is_not_used_needs_no_condition(network):
    network.add_if_conditional().add_input(constant(network, 1, F))
    mark(network, y=constant(network, 1, F))

    assert trt.check(network) == []


@pytest.mark.parametrize("value", [np.int32(1), np.bool_([True])])
def test_condition_of_another_type(network, value):
    conditional = network.add_if_conditional()
    condition = conditional.set_condition(constant(network, value))
    one = network.add_input("x", trt.float32, ())
    mark(network, y=conditional.add_output(one, one).get_output(0))

    found = only(network, "NL401", condition)
    assert f"the condition of {conditional.name!r} is {condition.get_input(0).type}, but must be a bool[]" in found.what


def test_branches_of_different_types(network):
    conditional = network.add_if_conditional()
    conditional.set_condition(network.add_input("c", trt.bool, ()))
    a, b = network.add_input("a", trt.float32, (2,)), network.add_input("b", trt.int32, (2,))
    output = conditional.add_output(a, b)
    mark(network, y=output.get_output(0))

    found = only(network, "NL401", output)
    assert f"the branches of {conditional.name!r} give float32[2] and {b.type}" in found.what
    assert found.fix == "convert one of them"


def test_layer_takes_no_tensor_of_two_ranks(network):
    conditional = network.add_if_conditional()
    conditional.set_condition(network.add_input("c", trt.bool, ()))
    a, b = network.add_input("a", trt.float32, (2,)), network.add_input("b", trt.float32, ())
    either = conditional.add_output(a, b)
    reader = network.add_activation(either.get_output(0), trt.ActivationType.RELU)
    mark(network, y=reader.get_output(0))

    found = trt.check(network)
    assert [(finding.code, finding.at) for finding in found] == [("NL305", either), ("NL401", reader)]
    assert "input 0 is float32[] or float32[2], as the branches of a conditional have different ranks" in found[1].what


@pytest.mark.parametrize("taken", [True, False])
def test_branch_that_is_missing_is_an_error_of_the_reference_too(network, taken):
    conditional = network.add_if_conditional()
    conditional.set_condition(network.add_constant((), np.bool_(taken)).get_output(0))
    output = conditional.add_output(
        network.add_input("a", trt.float32, (2,)), network.add_input("b", trt.float32, (2,))
    )
    output._rewire(1, None)
    mark(network, y=output.get_output(0))

    with pytest.raises(trt.NetworkError, match="NL101: input 1"):
        trt.evaluate(network, {"a": np.ones(2, np.float32), "b": np.ones(2, np.float32)})
