"""The listing of a network: layers indented by loops and branches."""

import sys

import numpy as np
import pytest

import netloop as trt
from tests.support.networks import EXAMPLES, LAST, constant, counted


def lines(network):
    return str(network).splitlines()


def test_layers_of_a_loop_are_indented_between_its_boundary_layers(network):
    loop = counted(network, 3)
    loop.name = "steps"
    state = loop.add_recurrence(constant(network, np.float32(1)))
    body = network.add_unary(state.get_output(0), trt.UnaryOperation.EXP)
    state.set_input(1, body.get_output(0))
    network.mark_output(loop.add_loop_output(state.get_output(0), LAST).get_output(0))

    found = lines(network)

    head = found.index("  loop steps")
    inside = [name.split("(")[0].strip() for name in found[head + 1 : -1]]
    assert inside == ["%1 TripLimit COUNT", "%3 Recurrence", "%4 Unary EXP", "%5 LoopOutput LAST_VALUE"]
    assert all(name.startswith("    %") for name in found[head + 1 : -1])


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_every_layer_has_one_line(name):
    network = EXAMPLES[name].make()

    numbers = sorted(int(line.split()[0][1:]) for line in lines(network) if line.split()[0].startswith("%"))

    assert numbers == list(range(network.num_layers))


def test_a_loop_that_is_half_built_is_listed_with_the_reason(network):
    loop = network.add_loop()
    loop.add_recurrence(network.add_input("x", trt.float32, ()))

    found = str(network)

    assert "%0 Recurrence (x) -> %0: float32[]" in found


def test_a_conditional_without_a_condition_is_listed(network):
    x = network.add_input("x", trt.float32, ())
    conditional = network.add_if_conditional()
    inside = conditional.add_input(x).get_output(0)
    network.mark_output(conditional.add_output(inside, inside).get_output(0))

    assert "has no condition" in str(network)
    assert "%0 IfConditionalInput (x)" in str(network)


def test_an_input_and_attribute_that_fit_nothing_give_an_unknown_type(network):
    a, b = network.add_input("a", trt.float32, (2,)), network.add_input("b", trt.int32, (3,))
    layer = network.add_elementwise(a, b, trt.ElementWiseOperation.SUM)

    assert str(layer) == "%0 ElementWise SUM (a, b) -> %0: ?"


def test_hostile_names_are_cut_and_escaped(network):
    layer = network.add_identity(network.add_input("x", trt.float32, ()))
    layer.name = "<script>\n\x1b[31m" + "A" * 10_000_000
    network.name = "<b>"

    assert len(str(network)) < 1000
    assert "\x1b" not in str(network)
    assert "\n    " not in str(layer)
    assert "<script>" not in network._repr_html_()
    assert "<b>" not in network._repr_html_()


def test_html_closes_every_element_that_it_opens():
    for example in EXAMPLES.values():
        page = example.make()._repr_html_()
        for element in ("details", "div", "summary", "code"):
            assert page.count(f"<{element}>") + page.count(f"<{element} ") == page.count(f"</{element}>")


def test_arrays_are_shown_as_type_and_shape(network):
    layer = network.add_constant((2, 3), np.ones((2, 3), np.float32))

    assert "shape=(2, 3), weights=float32[6]" in repr(layer)
    assert "1." not in repr(layer)


def test_objects_are_shown_in_a_line(network):
    network.mark_output(network.add_identity(network.add_input("x", trt.float32, ())).get_output(0))
    engine = trt.compile(network)
    config = trt.IBuilderConfig()
    config.max_trips = 3

    assert repr(network) == f"<INetworkDefinition {network.name!r}: 1 input, 1 layer, 1 output>"
    assert repr(engine).startswith("<ICudaEngine ")
    assert repr(engine.create_execution_context()).startswith("<IExecutionContext of <ICudaEngine")
    assert repr(config) == "<IBuilderConfig max_trips=3>"
    assert repr(trt.Weights(np.ones(4, np.float32))) == "<Weights float32[4]>"
    assert "%0 Identity (x)" in str(engine)


def calls_of_a_listing(layers):
    """The calls of Python functions that the listing of a chain of layers takes."""
    network, calls = trt.INetworkDefinition(), 0
    x = network.add_input("x", trt.float32, ())
    for _ in range(layers):
        x = network.add_identity(x).get_output(0)
    network.mark_output(x)

    def count(frame, event, value):
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        found = str(network)
    finally:
        sys.setprofile(before)
    assert found.count("\n") == layers + 2
    return calls


def test_listing_takes_work_in_proportion_to_the_layers():
    assert calls_of_a_listing(2000) < 2.1 * calls_of_a_listing(1000)
