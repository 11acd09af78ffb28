import jax.numpy as jnp
import numpy as np
import pytest

from netloop.model.layers.assertion import IAssertionLayer
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import ExecutionError
from netloop.values.enums import DataType
from netloop.values.types import TensorType
from tests.support.laws import refuses
from tests.support.networks import RAISING, Op, asserted, combine, counted, counter, last, mark, run

LAYER = IAssertionLayer(message="the sizes differ")


def boolean(*shape):
    return TensorType(np.dtype(np.bool_), shape)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (64,), (-1,)])
def test_assertion_has_no_output(shape):
    assert LAYER.infer(boolean(*shape)) == ()


@pytest.mark.parametrize("array", [np.array, jnp.array])
@pytest.mark.parametrize(
    ("condition", "wanted"), [(True, True), (False, False), ([True, True], True), ([True, False], False)]
)
def test_assertion_holds_if_every_element_is_true(array, condition, wanted):
    assert bool(LAYER.holds(array(condition))) == wanted


def test_assertion_about_nothing_holds():
    assert LAYER.holds(np.zeros(0, np.bool_))


def test_condition_of_numbers_is_refused():
    refuses(LAYER, np.int32([1]), match="the condition must be bool, not int32[1]")


def test_condition_of_two_axes_is_refused():
    refuses(LAYER, boolean(2, 2), match="the condition must be 0-D or 1-D, not bool[2,2]")


def test_condition_of_65_elements_is_refused():
    refuses(LAYER, boolean(65), match="the condition has 65 elements, but may have at most 64")


def test_network_takes_an_assertion():
    network = INetworkDefinition()
    condition = network.add_input("same", DataType.BOOL, ())
    made = network.add_assertion(condition, "the sizes differ")

    assert made.num_outputs == 0
    assert made.message == "the sizes differ"
    assert network.num_layers == 1


def test_message_that_is_no_text_is_refused():
    with pytest.raises(TypeError, match=r"IAssertionLayer\.message must be a str, not 3"):
        LAYER.message = 3


@pytest.mark.parametrize("way", RAISING)
def test_assertion_is_checked_in_the_last_trip(way):
    assert run(way, asserted(most=3), {"n": np.int32(3)})["y"] == 3
    with pytest.raises(ExecutionError, match="the trip is below 3"):
        run(way, asserted(most=3), {"n": np.int32(4)})


@pytest.mark.parametrize("way", RAISING)
@pytest.mark.parametrize("is_known", [True, False], ids=["scan", "while"])
def test_assertion_that_holds_again_later_is_an_error(is_known, way):
    network = INetworkDefinition()
    loop = counted(network, 3 if is_known else network.add_input("n", DataType.INT32, ()))
    now = counter(network, loop)
    network.add_assertion(combine(network, now, 0, Op.GREATER), "it is not the first iteration")
    mark(network, y=last(loop, now))

    with pytest.raises(ExecutionError, match="it is not the first iteration"):
        run(way, network, {} if is_known else {"n": np.int32(3)})
