"""Networks of sequences and optional values, in onnxruntime and imported again."""

from typing import Any

import numpy as np
import pytest

import netloop as trt
import netloop.onnx
from tests.model.layers.test_sequence import growing
from tests.support.networks import combine, constant, counted, last, mark, stacked
from tests.support.onnx_models import assert_alike
from tests.support.onnx_runtime import export, run

F = np.float32
GIVEN = [F([1]), F([2, 3]), F([4, 5, 6])]


def only(layer):
    return layer.get_output(0)


def agree(network: trt.INetworkDefinition, **given: Any) -> None:
    """Check that onnxruntime and the imported network agree with the reference."""
    model = export(network)
    meant = trt.evaluate(network, given)
    for found in (run(model, given), trt.evaluate(netloop.onnx.load(model), given)):
        assert list(found) == list(meant)
        for name, value in meant.items():
            assert_alike(name, found[name], value)


def test_sequence_is_changed_and_read():
    network = trt.INetworkDefinition()
    s, x = network.add_sequence_input("s", trt.float32, (-1,)), network.add_input("x", trt.float32, (2,))
    at = constant(network, [1], np.int64)
    more = only(network.add_sequence_insert(s, x, at))
    less = only(network.add_sequence_erase(more))
    mark(
        network,
        more=more,
        less=only(network.add_sequence_erase(less, at)),
        part=only(network.add_sequence_at(less, at)),
    )
    mark(network, n=only(network.add_sequence_length(less)), y=only(network.add_sequence_concatenation(less, 0)))

    agree(network, s=GIVEN, x=F([8, 9]))


def test_sequence_is_made_of_tensors():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (2, 3))
    mark(network, pair=only(network.add_sequence([x, x])), none=only(network.add_sequence([], trt.int32)))
    mark(network, even=only(network.add_sequence_split(x, constant(network, 2), 1)))
    mark(network, rows=only(network.add_sequence_split(x, keep_axis=False)))
    mark(network, stack=only(network.add_sequence_concatenation(network.outputs[0], -1, True)))

    agree(network, x=np.arange(6, dtype=F).reshape(2, 3))


@pytest.mark.parametrize("trips", [0, 3])
def test_loop_grows_a_sequence(trips):
    network = trt.INetworkDefinition()
    loop, state = growing(network, only(network.add_sequence([], trt.float32)), trips)
    mark(network, y=last(loop, only(state)))

    agree(network)


@pytest.mark.parametrize("condition", [False, True])
def test_branches_give_sequences(condition):
    network = trt.INetworkDefinition()
    s = network.add_sequence_input("s", trt.float32, (-1,))
    choice = network.add_if_conditional()
    choice.set_condition(network.add_input("c", trt.bool, ()))
    mark(network, y=only(choice.add_output(only(network.add_sequence_erase(s)), s)))

    agree(network, s=GIVEN, c=np.bool_(condition))


@pytest.mark.parametrize("condition", [False, True])
def test_value_may_be_absent_after_a_branch(condition):
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (2,))
    absent = only(network.add_optional(None, trt.float32, (2,)))
    choice, other = network.add_if_conditional(), network.add_if_conditional()
    choice.set_condition(network.add_input("c", trt.bool, ()))
    found = only(choice.add_output(x, absent))
    there = only(network.add_optional_has(found))
    other.set_condition(there)
    chosen = only(other.add_output(only(network.add_optional_get(found)), constant(network, [8, 9], F)))
    mark(network, there=there, y=chosen)

    agree(network, c=np.bool_(condition), x=F([1, 2]))


def test_type_that_onnx_has_no_sequences_of_is_refused():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.bfloat16, (2,))
    mark(network, y=only(network.add_sequence([x])))

    with pytest.raises(trt.NetworkError, match="ONNX has neither sequences nor optional values of bfloat16"):
        export(network)


@pytest.mark.parametrize("trips", [0, 2])
def test_loop_stacks_what_a_sequence_holds(trips):
    network = trt.INetworkDefinition()
    s, n = network.add_sequence_input("s", trt.float32, (-1,)), network.add_input("n", trt.int64, ())
    loop = counted(network, n)
    number = loop.add_recurrence(constant(network, 0, np.int64))
    number.set_input(1, combine(network, only(number), 1))
    mark(network, y=stacked(loop, only(network.add_sequence_at(s, only(number))), n))

    agree(network, s=[F([1, 2]), F([3, 4])], n=np.int64(trips))
