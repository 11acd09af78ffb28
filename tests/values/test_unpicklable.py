"""Objects of one process are not pickled or copied, and say what to do; plain values are."""

import copy
import pickle

import numpy as np
import pytest

import netloop as trt
from netloop.values.types import ABSENT, Absent, Tensors
from tests.support import networks

LOGGER = trt.Logger()


def engine():
    return trt.compile(networks.running_sum())


BOUND = {
    "IExecutionContext": (lambda: engine().create_execution_context(), "pickle the engine, and create another"),
    "ISliceLayer": (lambda: sliced().get_layer(0), "network.copy(), or pickle the network"),
    "ITensor": (lambda: sliced().get_input(0), "network.copy(), or pickle the network"),
    "ILoop": (lambda: networks.running_sum().loops[0], "network.copy()"),
    "IIfConditional": (lambda: trt.INetworkDefinition().add_if_conditional(), "network.copy()"),
    "Builder": (lambda: trt.Builder(LOGGER), "create one in the other process"),
    "Runtime": (lambda: trt.Runtime(LOGGER), "create one in the other process"),
    "Refitter": (lambda: trt.Refitter(engine(), LOGGER), "create one in the other process"),
    "EngineInspector": (lambda: engine().create_engine_inspector(), "create one in the other process"),
    "OnnxParser": (lambda: trt.OnnxParser(trt.INetworkDefinition(), LOGGER), "create one in the other process"),
    "IPluginRegistry": (trt.get_plugin_registry, "create one in the other process"),
    "Trace": (lambda: trt.trace(networks.running_sum(), {"x": networks.X}), "pickle the values"),
}


def sliced():
    network = trt.INetworkDefinition()
    network.add_slice(network.add_input("x", trt.float32, (4,)), (0,), (2,), (1,))
    return network


@pytest.mark.parametrize("name", BOUND)
@pytest.mark.parametrize("action", [pickle.dumps, copy.copy, copy.deepcopy])
def test_object_of_one_process_says_what_to_do_instead(name, action):
    make, instead = BOUND[name]
    with pytest.raises(TypeError) as caught:
        action(make())

    assert str(caught.value).startswith(f"{name} cannot be pickled or copied")
    assert instead in str(caught.value)


class MyNetwork(trt.INetworkDefinition):
    """A network of a class that a plan does not know."""


def test_network_of_another_class_says_what_to_do_instead():
    with pytest.raises(TypeError, match=r"MyNetwork cannot be pickled, .* pickle netloop.plan.dumps\(network\)"):
        pickle.dumps(MyNetwork())


def profile():
    made = trt.Builder(LOGGER).create_optimization_profile()
    made.set_shape("x", (1, 2), (3, 4), (5, 6))
    return made


VALUES = [
    trt.Dims([1, -1]),
    trt.DimsHW(3, 4),
    trt.Dims2(3, 4),
    trt.Dims3(3, 4, 5),
    trt.Dims4(3, 4, 5, 6),
    trt.Permutation([1, 0]),
    trt.bfloat16,
    trt.TripLimit.WHILE,
    trt.ILogger.Severity.INFO,
    trt.Severity.PORTABILITY,
    networks.running_sum().get_input(0).type,
]
RESULTS = {
    "plan": lambda: engine().serialize(),
    "comparison": lambda: trt.compare(networks.running_sum(), {"x": networks.X}),
}
each_copy = pytest.mark.parametrize(
    "copied", [lambda value: pickle.loads(pickle.dumps(value)), copy.copy, copy.deepcopy]
)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
@each_copy
def test_plain_value_can_be_pickled_and_copied(value, copied):
    assert type(copied(value)) is type(value)
    assert copied(value) == value


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
@each_copy
def test_result_can_be_pickled_and_copied(result, copied):
    test_plain_value_can_be_pickled_and_copied(result(), copied)


@each_copy
def test_other_values_keep_their_parts(copied):
    config = trt.Builder(LOGGER).create_builder_config()
    config.max_trips = 3
    config.add_optimization_profile(profile())

    assert copied(profile()).shapes() == profile().shapes()
    assert copied(config).max_trips == 3
    assert copied(config).profiles[0].shapes() == profile().shapes()
    np.testing.assert_array_equal(copied(trt.Weights(networks.X)).numpy(), networks.X.reshape(-1))
    assert copied(trt.Logger(trt.Logger.INFO)).min_severity is trt.Logger.INFO
    assert isinstance(copied(ABSENT), Absent)
    assert type(copied(Tensors((networks.X,)))) is Tensors
