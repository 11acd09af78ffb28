"""Names of TensorRT that netloop has only as names: they can be mentioned, and are refused with a reason when used."""

import pytest

import netloop as trt
from netloop.model.plugins import unavailable

CLASSES = [
    attribute
    for name, attribute in vars(unavailable).items()
    if isinstance(attribute, type) and attribute.__module__ == unavailable.__name__
][1:]


@pytest.mark.parametrize("kind", CLASSES)
def test_class_can_be_mentioned_and_derived_from(kind):
    class Mine(kind):
        def __init__(self, size: int):
            self.size = size

        def clone(self, other: kind) -> kind:
            return other

    assert issubclass(Mine, kind)
    assert getattr(trt, kind.__name__) is kind
    with pytest.raises(
        trt.NetloopError, match=rf"NL421: netloop has no {kind.__name__}, from which Mine derives"
    ) as caught:
        Mine(3)
    assert caught.value.findings[0].why
    assert caught.value.findings[0].fix


@pytest.mark.parametrize("kind", CLASSES)
def test_class_is_refused_when_instantiated(kind):
    with pytest.raises(trt.NetloopError, match=f"netloop has no {kind.__name__}\n"):
        kind()


@pytest.mark.parametrize(
    "use",
    [
        lambda network, x: network.add_plugin_v2([x], object()),
        lambda network, x: network.add_plugin((x, object())),
        lambda network, x: trt.IPluginCreator.create_plugin(object(), "name", []),
        lambda network, x: trt.get_plugin_registry().load_library("plugins.so"),
        lambda network, x: trt.get_plugin_registry().deregister_library(0),
    ],
)
def test_method_is_refused_when_called(use):
    network = trt.INetworkDefinition()
    with pytest.raises(trt.NetloopError, match="NL421"):
        use(network, network.add_input("x", trt.float32, (2,)))
    assert network.num_layers == 0


def test_registry_for_builds_is_the_registry():
    assert trt.get_builder_plugin_registry(trt.EngineCapability.STANDARD) is trt.get_plugin_registry()
    with pytest.raises(TypeError, match="capability must be a member of EngineCapability"):
        trt.get_builder_plugin_registry(0)


def test_version_of_the_parser_is_that_of_its_header():
    assert trt.get_nv_onnx_parser_version() == 0 * 10000 + 1 * 100 + 0
