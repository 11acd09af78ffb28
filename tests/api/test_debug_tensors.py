"""Debug tensors: a context reports the values of marked tensors to a listener as they are computed."""

import ctypes

import numpy as np
import pytest

import netloop as trt
from tests.support import networks
from tests.support.log import Log

SUM = trt.ElementWiseOperation.SUM


class Listener(trt.IDebugListener):
    """Keep the reported values, copied from their addresses."""

    def __init__(self, answer=None):
        super().__init__()
        self.reported = []
        self.seen = []
        self.answer = answer

    def process_debug_tensor(self, addr, location, type, shape, name, stream):
        size = trt.volume(shape) * type.itemsize
        array = np.frombuffer(ctypes.string_at(addr, size), trt.nptype(type)).reshape(shape)
        self.reported.append((name, array.tolist()))
        self.seen.append((location, type, tuple(shape), stream))
        return self.answer


class Raising(trt.IDebugListener):
    def process_debug_tensor(self, addr, location, type, shape, name, stream):
        raise KeyError("lost")


def built(network, log=None):
    builder = trt.Builder(log or Log())
    return builder.build_engine_with_config(network, builder.create_builder_config())


def run(context, **arrays):
    """Run on arrays for all inputs and outputs; whether the run succeeded."""
    for name, array in arrays.items():
        context.set_tensor_address(name, array.ctypes.data)
    return context.execute_async_v3(7)


def listening(network, listener, log=None):
    """A context of the network's engine with all debug tensors enabled."""
    context = built(network, log).create_execution_context()
    context.set_debug_listener(listener)
    assert context.set_all_tensors_debug_state(True)
    return context


def straight():
    """y = (x + x) + x, with the first sum marked as ``twice``."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (2,))
    twice = network.add_elementwise(x, x, SUM).get_output(0)
    twice.name = "twice"
    y = network.add_elementwise(twice, x, SUM).get_output(0)
    y.name = "y"
    network.mark_output(y)
    assert network.mark_debug(twice)
    return network, twice


def counting(limit=None):
    """A loop of 3 iterations, or while its state is below ``limit``: state = state + x; ``total`` is its last value."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.int32, ())
    loop = network.add_loop()
    if limit is None:
        three = network.add_constant((), np.array(3, np.int32)).get_output(0)
        loop.add_trip_limit(three, trt.TripLimit.COUNT)
    state = loop.add_recurrence(network.add_constant((), np.array(0, np.int32)).get_output(0))
    now = state.get_output(0)
    now.name = "state"
    following = network.add_elementwise(now, x, SUM).get_output(0)
    following.name = "next"
    state.set_input(1, following)
    if limit is not None:
        most = network.add_constant((), np.array(limit, np.int32)).get_output(0)
        below = network.add_elementwise(now, most, trt.ElementWiseOperation.LESS).get_output(0)
        below.name = "below"
        loop.add_trip_limit(below, trt.TripLimit.WHILE)
        network.mark_debug(below)
    total = loop.add_loop_output(now, trt.LoopOutput.LAST_VALUE).get_output(0)
    total.name = "total"
    network.mark_output(total)
    return network, now, following


X, Y = np.array([1, 2], np.float32), np.empty(2, np.float32)
ONE, TOTAL = np.array(1, np.int32), np.empty((), np.int32)

# ---------------------------------------------------------------------- reported values


def test_listener_receives_the_value_at_a_host_address():
    network, _ = straight()
    context = listening(network, listener := Listener())

    assert run(context, x=X, y=Y)
    assert listener.reported == [("twice", [2, 4])]
    assert listener.seen == [(trt.TensorLocation.HOST, trt.float32, (2,), 7)]
    assert Y.tolist() == [3, 6]


def test_disabled_tensor_is_not_reported():
    network, _ = straight()
    context = built(network).create_execution_context()
    context.set_debug_listener(listener := Listener())

    assert run(context, x=X, y=Y)
    assert listener.reported == []


def test_without_a_listener_the_compiled_program_runs():
    network, _ = straight()
    engine = built(network)
    context = engine.create_execution_context()
    context.set_all_tensors_debug_state(True)

    assert run(context, x=X, y=Y)
    assert engine.program_count == 1
    assert context.get_debug_listener() is None


def test_tensor_in_a_loop_is_reported_in_each_iteration():
    network, _, following = counting()
    network.mark_debug(following)
    context = listening(network, listener := Listener())

    assert run(context, x=ONE, total=TOTAL)
    assert listener.reported == [("next", 1), ("next", 2), ("next", 3)]


def test_recurrence_is_reported_before_each_iteration_and_after_the_last():
    network, now, _ = counting()
    network.mark_debug(now)
    context = listening(network, listener := Listener())

    assert run(context, x=ONE, total=TOTAL)
    assert [value for _, value in listener.reported] == [0, 1, 2, 3]


def test_condition_of_a_loop_is_reported_once_for_each_evaluation():
    network, _, _ = counting(limit=2)
    context = listening(network, listener := Listener())

    assert run(context, x=ONE, total=TOTAL)
    assert listener.reported == [("below", True), ("below", True), ("below", False)]
    assert TOTAL == 2


@pytest.mark.parametrize(("flag", "reported"), [(True, [("doubled", [2, 4])]), (False, [])])
def test_branch_that_is_not_taken_is_not_reported(flag, reported):
    network = trt.INetworkDefinition()
    condition, x = network.add_input("flag", trt.bool, ()), network.add_input("x", trt.float32, (2,))
    doubled = network.add_elementwise(x, x, SUM).get_output(0)
    doubled.name = "doubled"
    choice = network.add_if_conditional()
    choice.set_condition(condition)
    y = choice.add_output(doubled, x).get_output(0)
    y.name = "y"
    network.mark_output(y)
    network.mark_debug(doubled)
    context = listening(network, listener := Listener())

    assert run(context, flag=np.array(flag), x=X, y=Y)
    assert listener.reported == reported


@pytest.mark.parametrize("name", networks.EXAMPLES)
def test_watched_elements_are_those_of_the_reference(name):
    example = networks.EXAMPLES[name]
    network = example.make()
    tensors = network.inputs + [tensor for layer in network for tensor in layer.outputs]
    for other in tensors:
        network.mark_debug(other)
    engine, trace = trt.compile(network), trt.trace(network, example.inputs)
    originals = dict(zip(engine.network.marks.debug, tensors, strict=True))
    reported = {tensor: [] for tensor in tensors}

    def tell(tensor, at, value):
        reported[originals[tensor]].append(at)
        np.testing.assert_array_equal(value, trace[originals[tensor]][at])

    networks.assert_outputs(engine.watch(example.inputs, originals, tell), example.outputs)
    for tensor in tensors:
        needed = {at if isinstance(at, tuple) else (at,) for at in trace[tensor].computed}
        assert needed <= set(reported[tensor]), f"{tensor} was computed but not reported"
        assert reported[tensor] == sorted(set(reported[tensor]))


def test_input_is_reported_first():
    network, _ = straight()
    network.mark_debug(network.get_input(0))
    context = listening(network, listener := Listener())

    assert run(context, x=X, y=Y)
    assert [name for name, _ in listener.reported] == ["x", "twice"]


def test_tensor_that_the_network_does_not_need_is_not_reported():
    network, twice = straight()
    network.mark_debug(network.add_unary(twice, trt.UnaryOperation.NEG).get_output(0))
    context = listening(network, listener := Listener())

    assert run(context, x=X, y=Y)
    assert [name for name, _ in listener.reported] == ["twice"]


def test_unfused_tensors_are_those_outside_of_loops():
    network, _, _ = counting()
    assert network.mark_unfused_tensors_as_debug_tensors()
    context = built(network).create_execution_context()
    context.set_debug_listener(listener := Listener())

    assert run(context, x=ONE, total=TOTAL)
    assert listener.reported == []
    context.unfused_tensors_debug_state = True
    assert run(context, x=ONE, total=TOTAL)
    assert listener.reported == [("total", 3)]


def test_unfused_tensors_that_were_not_marked_are_not_reported():
    network, _ = straight()
    network.mark_unfused_tensors_as_debug_tensors()
    network.unmark_unfused_tensors_as_debug_tensors()
    context = built(network).create_execution_context()
    context.set_debug_listener(listener := Listener())
    context.unfused_tensors_debug_state = True

    assert run(context, x=X, y=Y)
    assert listener.reported == []


# ---------------------------------------------------------------------- marks and states


def test_state_of_a_debug_tensor_is_returned():
    network, _ = straight()
    context = built(network).create_execution_context()

    assert not context.get_debug_state("twice")
    assert context.set_tensor_debug_state("twice", True)
    assert context.get_debug_state("twice")


def test_state_of_what_was_not_marked_cannot_be_set():
    network, _ = straight()
    context = built(network, log := Log()).create_execution_context()

    assert not context.set_tensor_debug_state("y", True)
    assert log.errors() == ["there is no debug tensor 'y'"]


def test_mark_is_in_the_plan_and_in_the_engine():
    network, twice = straight()
    plan = built(network).serialize()
    engine = trt.Runtime(Log()).deserialize_cuda_engine(plan)

    assert network.is_debug_tensor(twice)
    assert engine.is_debug_tensor("twice")
    assert not engine.is_debug_tensor("y")
    assert engine.serialize() == plan


def test_mark_can_be_taken_back():
    network, twice = straight()

    assert network.unmark_debug(twice)
    assert not network.is_debug_tensor(twice)
    assert not built(network).is_debug_tensor("twice")


def test_tensor_of_another_network_is_not_marked():
    network, _ = straight()
    with pytest.raises(trt.NetworkError, match="NL103"):
        network.mark_debug(trt.INetworkDefinition().add_input("x", trt.float32, ()))
    with pytest.raises(TypeError, match="tensor must be an ITensor"):
        network.mark_debug(network.get_layer(0))


# ---------------------------------------------------------------------- errors that end a run


def test_listener_that_says_no_ends_the_run():
    network, _ = straight()
    context = listening(network, Listener(answer=False), log := Log())

    assert not run(context, x=X, y=Y)
    assert log.errors()[0].startswith("NL622: the debug listener ended the run at 'twice'")


def test_listener_that_raises_ends_the_run_with_its_words():
    network, _ = straight()
    context = listening(network, Raising(), log := Log())

    assert not run(context, x=X, y=Y)
    assert "raised KeyError('lost') at 'twice'" in log.errors()[0]


def test_other_objects_than_listeners_are_refused():
    network, _ = straight()
    with pytest.raises(TypeError, match="listener must be None or IDebugListener"):
        built(network).create_execution_context().set_debug_listener(print)


def test_failure_after_a_debug_tensor_is_reported_as_usual():
    network, _, following = counting()
    network.mark_debug(following)
    one = network.add_constant((), np.array(1, np.int32)).get_output(0)
    is_one = network.add_elementwise(network.get_input(0), one, trt.ElementWiseOperation.EQUAL).get_output(0)
    network.add_assertion(is_one, "x is one")
    context = listening(network, Listener(), log := Log())

    assert not run(context, x=np.array(2, np.int32), total=TOTAL)
    assert "x is one" in log.errors()[0]
