"""The function ``check`` as a whole."""

import numpy as np
import pytest

import netloop as trt
from netloop.model.check.rule import RULES
from tests.support.networks import EXAMPLES, LAST, F, Op, combine, constant, counted, counter, last, mark, running_sum

PORTABILITY, ERROR = trt.Severity.PORTABILITY, trt.Severity.ERROR


WITHOUT_INPUTS = {"conditional in a loop", "loop in a conditional", "loop in the branch not taken"}
"""The examples whose conditionals have no inputs, so that TensorRT runs both branches."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_right_network_has_no_findings(name):
    found = [(finding.code, finding.severity) for finding in trt.check(EXAMPLES[name].make())]

    assert found == ([("NL302", PORTABILITY)] if name in WITHOUT_INPUTS else [])


@pytest.mark.parametrize("name", [example for example in EXAMPLES if example not in WITHOUT_INPUTS])
def test_right_network_is_fit_for_tensorrt(name):
    assert trt.check(EXAMPLES[name].make(), "tensorrt") == []


def four_faults():
    network = trt.INetworkDefinition()
    forever = network.add_loop()
    now = counter(network, forever)
    state = counted(network, 2).add_recurrence(now.producer.get_input(0))
    mixed = network.add_elementwise(last(forever, now), constant(network, 1, F), Op.SUM)
    mark(network, escaped=state.get_output(0), mixed=mixed.get_output(0))
    return network


def test_everything_that_is_wrong_is_told_at_once():
    assert [finding.code for finding in trt.check(four_faults())] == ["NL201", "NL203", "NL210", "NL401"]


@pytest.mark.parametrize(
    "refuses",
    [trt.compile, trt.to_jax, lambda network: trt.evaluate(network, {})],
    ids=["compile", "to_jax", "evaluate"],
)
def test_everything_that_is_wrong_is_raised_at_once(refuses):
    with pytest.raises(trt.NetworkError) as caught:
        refuses(four_faults())

    assert [finding.code for finding in caught.value.findings] == ["NL201", "NL203", "NL210", "NL401"]
    assert all(f"{finding.code}: " in str(caught.value) for finding in caught.value.findings)


def last_of_a_layer(network):
    loop = counted(network, 2)
    return mark(network, y=last(loop, combine(network, counter(network, loop), 1)))


def test_what_only_tensorrt_refuses_stops_no_build(network):
    last_of_a_layer(network)

    assert [(finding.code, finding.severity) for finding in trt.check(network)] == [("NL204", PORTABILITY)]
    assert trt.compile(network)({})["y"] == 3


def test_what_tensorrt_refuses_is_an_error_for_tensorrt(network):
    last_of_a_layer(network)

    assert [(finding.code, finding.severity) for finding in trt.check(network, target="tensorrt")] == [("NL204", ERROR)]


def test_target_is_tensorrt(network):
    with pytest.raises(ValueError, match="target must be None or 'tensorrt', not 'onnx'"):
        trt.check(network, "onnx")


def test_findings_of_a_rule_come_in_the_order_in_which_things_were_added(network):
    for name in ("a", "b", "c"):
        loop = counted(network, 1)
        state = loop.add_recurrence(constant(network, 0, F))
        state.name = name
        mark(network, **{f"y{name}": last(loop, state.get_output(0))})

    assert [finding.what for finding in trt.check(network)] == [f"{name!r} has no next value" for name in "abc"]


def test_finding_is_printed_with_place_reason_and_fix(network):
    loop = counted(network, 1)
    state = loop.add_recurrence(constant(network, 0, F))
    state.name = "h"
    mark(network, y=last(loop, state.get_output(0)))
    (found,) = trt.check(network)

    assert str(found).splitlines() == [
        "NL203: 'h' has no next value",
        f"  at {state.source_location}, IRecurrenceLayer 'h'",
        "  because a recurrence is X, Y0, Y1, ...: input 0 is its initial value X, and input 1 its next value Y",
        "  fix: call set_input(1, tensor) on the layer, with the value for the next iteration",
    ]


def test_mending_a_network_silences_its_finding(network):
    loop = counted(network, 1)
    state = loop.add_recurrence(constant(network, 0, F))
    mark(network, y=last(loop, state.get_output(0)))
    assert len(trt.check(network)) == 1
    state.set_input(1, state.get_output(0))

    assert trt.check(network) == []


def test_check_changes_nothing(network):
    broken = four_faults()

    assert list(map(str, trt.check(broken))) == list(map(str, trt.check(broken)))


def test_loops_that_nothing_needs_are_not_complained_about_for_their_wiring(network):
    first, second = counted(network, 2), counted(network, 2)
    combine(network, counter(network, first), counter(network, second))
    mark(network, y=constant(network, 1, F))

    assert trt.check(network) == []


def test_every_rule_has_a_reason_without_a_stop():
    reasons = [rule.code.why for rule in RULES.values()]

    assert all((why and why[0].islower()) or why.startswith("TensorRT") for why in reasons)
    assert not any(why.endswith(".") for why in reasons)


def test_register_has_all_rules():
    assert sorted(RULES) == [
        *("NL105", "NL106", "NL108"),
        *("NL201", "NL202", "NL203", "NL204", "NL205", "NL208", "NL209", "NL210", "NL211", "NL212"),
        *("NL213", "NL214", "NL215", "NL216", "NL217", "NL218", "NL219", "NL220", "NL221", "NL222"),
        *("NL301", "NL302", "NL303", "NL304", "NL305"),
        *("NL401", "NL402", "NL403", "NL404", "NL413"),
    ]


# ---------------------------------------------------------------------------- what only a compiler refuses


def test_shape_that_only_the_run_tells_is_refused_by_a_pure_function(network):
    conditional = network.add_if_conditional()
    conditional.set_condition(network.add_input("c", trt.bool, ()))
    a, b = network.add_input("a", trt.float32, (2,)), network.add_input("b", trt.float32, (3,))
    output = conditional.add_output(a, b)
    output.name = "picked"
    mark(network, y=combine(network, output.get_output(0), 1))

    assert trt.check(network) == []
    function, weights = trt.to_jax(network)
    with pytest.raises(trt.NetworkError) as caught:
        function(weights, {"c": np.bool_(True), "a": np.ones(2, np.float32), "b": np.ones(3, np.float32)})
    (found,) = caught.value.findings
    assert (found.code, found.at.name) == ("NL501", "picked")
    assert found.what == "'picked' makes float32[-1], a data-dependent shape"
    assert "netloop.compile runs it as it is" in found.fix
    assert str(output.source_location) in found.where


def test_length_that_follows_from_a_loop_is_refused_by_a_pure_function(network):
    first = counted(network, 3)
    length = last(first, counter(network, first))
    second = counted(network, 3)
    output = second.add_loop_output(counter(network, second), trt.LoopOutput.CONCATENATE)
    output.set_input(1, length)
    mark(network, y=output.get_output(0))

    np.testing.assert_array_equal(trt.evaluate(network, {})["y"], [0, 1, 2])
    np.testing.assert_array_equal(trt.compile(network)({})["y"], [0, 1, 2])
    function, weights = trt.to_jax(network)
    with pytest.raises(trt.NetworkError, match="NL501"):
        function(weights, {})


def test_last_value_is_fit_for_tensorrt():
    assert trt.check(running_sum(2, LAST), "tensorrt") == []
