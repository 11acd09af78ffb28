"""Which loop runs in slots."""

import numpy as np
import pytest

import netloop as trt
from tests.compiler.execution.test_slot_loop import collatz_of_each
from tests.support.generators import generator, prompts
from tests.support.networks import chain, constant, counted, last, loop_in_conditional, mark, nested, stacked


def two_loops():
    network = trt.INetworkDefinition()
    state = network.add_input("x", trt.float32, ())
    for name in ("first", "second"):
        loop = counted(network, 2)
        loop.name = name
        total = loop.add_recurrence(state)
        total.set_input(
            1, network.add_elementwise(total.get_output(0), state, trt.ElementWiseOperation.SUM).get_output(0)
        )
        state = last(loop, total.get_output(0))
    return mark(network, y=state)


def test_the_loop_that_streams_is_chosen():
    engine = trt.SlotEngine(generator(), slots=2)

    assert [set(row) for row in engine.submit(prompts(1, most=4)[0]).rows()] in (
        [],
        [{"text"}] * 1,
        [{"text"}] * 2,
        [{"text"}] * 3,
        [{"text"}] * 4,
    )


@pytest.mark.parametrize("name", ["reading", "writing"])
def test_a_loop_is_chosen_by_its_name(name):
    engine, alone = trt.SlotEngine(generator(), slots=2, loop=name), trt.compile(generator())
    given = {**prompts(1)[0], "most": np.int32(5)}

    request = engine.submit(given)

    np.testing.assert_array_equal(request.result()["text"], alone(given)["text"])
    assert (request.trips == 3) == (name == "reading")


def test_several_loops_need_a_name():
    with pytest.raises(
        trt.NetworkError, match="NL623: the network has several loops, 'first', 'second', and one of them"
    ) as caught:
        trt.SlotEngine(two_loops())

    assert caught.value.findings[0].fix == "choose it: loop='second'"
    assert trt.SlotEngine(two_loops(), loop="second").submit({"x": np.float32(1)}).result()["y"] == 9


@pytest.mark.parametrize("network", [chain(2), loop_in_conditional()])
def test_a_network_without_a_loop_outside_of_conditionals_is_refused(network):
    with pytest.raises(trt.NetworkError, match="NL623: the network has no loop outside of conditionals"):
        trt.SlotEngine(network)


def test_an_inner_loop_is_refused():
    network = nested()
    network.loops[0].name, network.loops[1].name = "outer", "inner"

    with pytest.raises(trt.NetworkError, match="NL623: 'inner' is inside another loop") as caught:
        trt.SlotEngine(network, loop="inner")

    assert caught.value.findings[0].fix == "choose another loop: 'outer'"


def test_equal_names_are_refused():
    network = two_loops()
    network.loops[1].name = "first"

    with pytest.raises(trt.NetworkError, match="NL623: several loops are called 'first'"):
        trt.SlotEngine(network, loop="first")


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match=r"the network has no loop 'frist'; .* did you mean 'first'"):
        trt.SlotEngine(two_loops(), loop="frist")
    with pytest.raises(TypeError, match="loop is the name of a loop"):
        trt.SlotEngine(two_loops(), loop=1)


def test_a_loop_of_unknown_length_in_a_branch_is_refused():
    with pytest.raises(
        trt.NetworkError, match="NL623: 'collatz', whose length is not known, is inside the cond"
    ) as caught:
        trt.SlotEngine(collatz_of_each(conditional=True))

    assert caught.value.findings[0].fix.startswith("pass max_trips")


def test_a_loop_of_unknown_length_in_another_one_is_refused():
    network = trt.INetworkDefinition()
    state = network.add_input("x", trt.int32, ())
    n = network.add_input("n", trt.int32, ())
    states = [counted(network, n).add_recurrence(state)]
    for _ in range(2):
        states.append(counted(network, n).add_recurrence(states[-1].get_output(0)))
    made = network.add_elementwise(
        states[-1].get_output(0), constant(network, 1, np.int32), trt.ElementWiseOperation.SUM
    ).get_output(0)
    for recurrence in reversed(states):
        recurrence.set_input(1, made)
        made = last(recurrence.loop, recurrence.get_output(0))
    mark(network, y=made)

    with pytest.raises(trt.NetworkError, match=r"NL623: .* is inside the loop"):
        trt.SlotEngine(network)
    request = trt.SlotEngine(network, max_trips=9).submit({"x": np.int32(0), "n": np.int32(2)})
    assert request.result()["y"] == 8


def test_a_network_with_strings_is_refused():
    network = trt.INetworkDefinition()
    words = network.add_constant((2,), np.array(["a", "b"], np.dtypes.StringDType())).get_output(0)
    loop = counted(network, 2)
    mark(network, y=stacked(loop, loop.add_iterator(words).get_output(0), constant(network, 2, np.int32)))

    with pytest.raises(trt.NetworkError, match="NL503"):
        trt.SlotEngine(network)


def test_a_network_that_needs_the_host_is_refused():
    network = trt.INetworkDefinition()
    loop = counted(network, 2)
    found = network.add_non_zero(network.add_input("x", trt.bool, (3,))).get_output(0)
    total = loop.add_recurrence(found)
    total.set_input(1, total.get_output(0))
    mark(network, y=last(loop, total.get_output(0)))

    with pytest.raises(trt.NetworkError, match="NL50"):
        trt.SlotEngine(network)
