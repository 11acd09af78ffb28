import inspect
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import netloop
from netloop.model.graph.layer import ILayer, Operation
from netloop.model.layers.pointwise import IActivationLayer, IElementWiseLayer, IUnaryLayer
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import NetworkError
from netloop.values.enums import (
    ActivationType,
    DataType,
    ElementWiseOperation,
    FillOperation,
    LayerType,
    LoopOutput,
    TopKOperation,
    TripLimit,
)


@pytest.fixture
def x(network):
    return network.add_input("x", DataType.FLOAT, (2, 3))


@pytest.fixture
def layer(network, x):
    return network.add_activation(x, ActivationType.LEAKY_RELU)


# ---------------------------------------------------------------------------- attributes


def test_attributes_start_with_the_defaults_of_tensorrt(layer):
    assert (layer.alpha, layer.beta, layer.metadata, layer.num_ranks) == (0.0, 0.0, "", 1)


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int64(2)])
def test_number_becomes_a_float(layer, value):
    layer.alpha = value

    assert layer.alpha == 2.0
    assert type(layer.alpha) is float


@pytest.mark.parametrize("value", ["2", None, True, [2.0], np.bool_(True)])
def test_number_is_nothing_else(layer, value):
    with pytest.raises(TypeError, match=r"IActivationLayer.alpha must be a number, not"):
        layer.alpha = value


@pytest.mark.parametrize("value", [4, "TANH", LayerType.ACTIVATION, None])
def test_enumeration_takes_its_members_alone(layer, value):
    with pytest.raises(TypeError, match=r"IActivationLayer.type must be a member of ActivationType, not"):
        layer.type = value


def test_name_of_a_layer_is_a_str(layer):
    layer.name = "activation"
    with pytest.raises(TypeError, match=r"IActivationLayer.name must be a str, not 3"):
        layer.name = 3

    assert layer.name == "activation"


@pytest.mark.parametrize("value", [True, 1.0, "1", None])
def test_axis_is_an_int(network, x, value):
    iterator = network.add_loop().add_iterator(x)
    with pytest.raises(TypeError, match=r"IIteratorLayer.axis must be an int, not"):
        iterator.axis = value


def test_numpy_int_is_an_axis(network, x):
    iterator = network.add_loop().add_iterator(x)
    iterator.axis = np.int32(1)

    assert type(iterator.axis) is int


@pytest.mark.parametrize("value", ["yes", 2, None, 0.0])
def test_flag_is_a_bool(network, x, value):
    iterator = network.add_loop().add_iterator(x)
    with pytest.raises(TypeError, match=r"IIteratorLayer.reverse must be a bool, not"):
        iterator.reverse = value


def test_attributes_are_checked_when_the_layer_is_made():
    with pytest.raises(TypeError, match=r"IUnaryLayer.op must be a member of UnaryOperation, not 3"):
        IUnaryLayer(op=3)


def test_refused_value_leaves_the_old_one(layer):
    layer.alpha = 0.5
    with pytest.raises(TypeError):
        layer.alpha = "much"

    assert layer.alpha == 0.5


def test_unknown_attribute_cannot_be_set(layer):
    with pytest.raises(AttributeError, match=r"IActivationLayer has no attribute 'axis' to set$"):
        layer.axis = 3


def test_misspelt_attribute_gets_the_right_name(layer):
    with pytest.raises(
        AttributeError, match=r"IActivationLayer has no attribute 'alhpa' to set; did you mean 'alpha'\?"
    ):
        layer.alhpa = 3


@pytest.mark.parametrize("name", ["inputs", "outputs", "index", "num_inputs", "types", "source_location"])
def test_wiring_is_no_attribute_to_set(layer, name):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}' to set"):
        setattr(layer, name, None)


def test_type_of_a_layer_that_has_no_such_attribute_cannot_be_set(network, x):
    layer = network.add_elementwise(x, x, ElementWiseOperation.SUM)
    with pytest.raises(AttributeError):
        layer.type = LayerType.SELECT

    assert layer.type is LayerType.ELEMENTWISE


@pytest.mark.parametrize("name", ["loop", "kind"])
def test_what_binds_a_layer_to_its_loop_is_fixed(network, x, name):
    output = network.add_loop().add_loop_output(x, LoopOutput.LAST_VALUE)
    with pytest.raises(AttributeError, match=f"'{name}' of ILoopOutputLayer is fixed when the layer is added"):
        setattr(output, name, getattr(output, name))


def test_kind_of_a_trip_limit_is_fixed(network, x):
    limit = network.add_loop().add_trip_limit(x, TripLimit.COUNT)
    with pytest.raises(AttributeError, match="'kind' of ITripLimitLayer is fixed"):
        limit.kind = TripLimit.WHILE


def test_downcast_is_legal(network, layer):
    found = network.get_layer(0)
    found.__class__ = IActivationLayer

    assert found == layer
    assert found.alpha == 0.0


def test_setting_an_attribute_changes_the_types_that_depend_on_it(network, x):
    iterator = network.add_loop().add_iterator(x)
    y = network.add_activation(iterator.get_output(0), ActivationType.RELU).get_output(0)
    assert y.shape == (3,)

    iterator.axis = 1

    assert y.shape == (2,)


def test_layer_is_printed_with_its_attributes(layer):
    layer.name, layer.alpha = "leak", 0.25

    assert repr(layer) == ("<IActivationLayer 'leak' type=<ActivationType.LEAKY_RELU: 3>, alpha=0.25, beta=0.0>")


def test_layer_in_no_network_can_be_printed():
    assert "alpha=0.5" in repr(IActivationLayer(type=ActivationType.ELU, alpha=0.5))


# ---------------------------------------------------------------------------- wiring


def test_layer_has_its_inputs_in_order(network, x):
    y = network.add_input("y", DataType.FLOAT, (2, 3))
    layer = network.add_elementwise(x, y, ElementWiseOperation.SUB)

    assert (layer.num_inputs, layer.get_input(0), layer.get_input(1)) == (2, x, y)


@pytest.mark.parametrize("index", [-1, 1, 100])
def test_there_is_no_input_out_of_range(layer, index):
    assert layer.get_input(index) is None


@pytest.mark.parametrize("index", [-1, 1, 100])
def test_there_is_no_output_out_of_range(layer, index):
    assert layer.get_output(index) is None


def test_trip_limit_has_no_output(network, x):
    limit = network.add_loop().add_trip_limit(x, TripLimit.COUNT)

    assert (limit.num_outputs, limit.get_output(0)) == (0, None)


def test_output_type_is_that_of_the_output(layer):
    assert layer.get_output_type(0) is DataType.FLOAT


def test_input_can_be_a_tensor_made_later(network, x, layer):
    later = network.add_activation(x, ActivationType.TANH).get_output(0)
    layer.set_input(0, later)

    assert layer.get_input(0) is later
    assert layer.get_output(0).shape == (2, 3)


@pytest.mark.parametrize("index", [-1, 1, 2])
def test_input_that_a_layer_does_not_have_cannot_be_set(layer, x, index):
    with pytest.raises(
        IndexError, match=rf"IActivationLayer '\(Unnamed Layer\* 0\) \[Activation\]' has no input {index}"
    ):
        layer.set_input(index, x)


def test_recurrence_gets_its_second_input(network, x):
    recurrence = network.add_loop().add_recurrence(x)
    assert recurrence.num_inputs == 1

    recurrence.set_input(1, x)

    assert (recurrence.num_inputs, recurrence.get_input(1)) == (2, x)


def test_recurrence_has_no_third_input(network, x):
    recurrence = network.add_loop().add_recurrence(x)
    with pytest.raises(IndexError):
        recurrence.set_input(2, x)

    assert recurrence.num_inputs == 1


def test_number_of_an_input_is_an_int(layer, x):
    with pytest.raises(TypeError):
        layer.set_input("0", x)


@pytest.mark.parametrize("given", [None, "x", 3])
def test_input_is_a_tensor(layer, given):
    with pytest.raises(TypeError, match=f"tensor must be an ITensor, not {type(given).__name__}"):
        layer.set_input(0, given)


def test_layer_in_place_of_a_tensor_gets_the_way_to_its_output(network, layer):
    with pytest.raises(
        TypeError, match=r"input must be an ITensor, not IActivationLayer: give its output, layer.get_output\(0\)"
    ):
        network.add_activation(layer, ActivationType.RELU)


def test_output_that_a_layer_lacks_is_said_to_be_none(network, layer):
    with pytest.raises(TypeError, match="get_output\\(i\\) of a layer without an output i is None"):
        network.add_activation(layer.get_output(1), ActivationType.RELU)


def test_tensor_of_another_network_cannot_be_set(layer):
    foreign = INetworkDefinition().add_input("foreign", DataType.FLOAT, ())
    with pytest.raises(NetworkError, match="NL103: tensor 'foreign' belongs to another network"):
        layer.set_input(0, foreign)

    assert layer.get_input(0).name == "x"


def test_layer_cannot_be_added_to_a_tensor_of_another_network(network, x):
    foreign = INetworkDefinition().add_input("foreign", DataType.FLOAT, (2, 3))
    with pytest.raises(NetworkError, match="tensor 'foreign' belongs to another network"):
        network.add_elementwise(x, foreign, ElementWiseOperation.SUM)

    assert len(network) == 0
    assert not x.uses
    assert not foreign.uses


# ---------------------------------------------------------------------------- place


def test_place_is_the_line_of_the_call(network, x):
    layer = network.add_activation(x, ActivationType.RELU); line = inspect.currentframe().f_lineno  # noqa: E702  # fmt: skip

    assert (layer.source_location.file, layer.source_location.line) == (__file__, line)


def test_place_of_a_boundary_layer_is_the_line_of_the_call(network, x):
    layer = network.add_loop().add_recurrence(x); line = inspect.currentframe().f_lineno  # noqa: E702  # fmt: skip

    assert (layer.source_location.file, layer.source_location.line) == (__file__, line)


def test_place_of_a_loop_is_the_line_of_the_call(network):
    loop = network.add_loop(); line = inspect.currentframe().f_lineno  # noqa: E702  # fmt: skip

    assert (loop.source_location.file, loop.source_location.line) == (__file__, line)


def test_finding_tells_the_place_and_the_layer(network, layer):
    layer.name, layer.alpha = "leak", math.inf
    with pytest.raises(NetworkError) as caught:
        _ = layer.get_output(0).shape
    (found,) = caught.value.findings

    assert (found.code, found.at) == ("NL401", layer)
    assert found.where == f"{layer.source_location}, IActivationLayer 'leak'"
    assert found.what == "alpha is inf, but must be finite"
    assert found.why == "the function is not defined for it"


# ---------------------------------------------------------------------------- kinds


@pytest.mark.parametrize("kind", [ILayer, Operation])
def test_abstract_kinds_cannot_be_made(kind):
    with pytest.raises(TypeError, match="abstract"):
        kind()


def test_operation_without_a_lowering_cannot_be_made():
    class Unfinished(Operation):
        def infer(self, x):
            return x

        def evaluate(self, x):
            return x

    with pytest.raises(TypeError, match="lower"):
        Unfinished()


def test_kind_knows_its_number():
    assert IElementWiseLayer.LAYER_TYPE is IElementWiseLayer(op=ElementWiseOperation.SUM).type is LayerType.ELEMENTWISE


def test_names_of_a_layer_are_those_of_tensorrt():
    recorded = json.loads((Path(__file__).parents[2] / "data" / "tensorrt_surface.json").read_text())["classes"]
    network = INetworkDefinition()
    x = network.add_input("x", DataType.FLOAT, (1, 2, 4, 4))
    loop = network.add_loop()
    made = [
        network.add_activation(x, ActivationType.RELU),
        network.add_convolution_nd(x, 2, (1, 1), np.ones(4, np.float32)),
        network.add_fill((2,), FillOperation.LINSPACE),
        network.add_resize(x),
        network.add_shuffle(x),
        network.add_topk(x, TopKOperation.MAX, 1, 8),
        loop.add_loop_output(x, LoopOutput.LAST_VALUE),
        loop.add_recurrence(x),
        network.add_moe(x, x, x),
    ]

    for layer in made:
        ours = {name for name in dir(layer) if not name.startswith("_")}
        theirs = {
            name
            for cls in type(layer).__mro__
            for kind in ("methods", "properties")
            for name in recorded.get(cls.__name__, {}).get(kind, ())
            if not name.startswith("_")
        }

        assert theirs <= ours
        assert ours - theirs <= OF_TENSORRT_10 | OWN_ATTRIBUTES.get(type(layer).__name__, set())
        assert all(hasattr(layer, name) for name in ours)


OF_TENSORRT_10 = {
    *("precision", "precision_is_set", "reset_precision"),
    *("set_output_type", "output_type_is_set", "reset_output_type"),
}
OWN_ATTRIBUTES = {
    "IRecurrenceLayer": {"keeps_shape"},
    "IResizeLayer": {"antialias", "extrapolation_value", "roi"},
    "ITopKLayer": {"total_order"},
}


# ---------------------------------------------------------------------------- what a type checker finds


SCRIPT = """import netloop as trt

network = trt.INetworkDefinition()
x = network.add_input("x", trt.float32, (3,))
layer = network.add_softmax(x)
layer.axes = 1
layer.axsi = 1
layer.name = "probabilities"
fill = network.add_fill((3,), trt.FillOperation.LINSPACE)
fill.alfa = 2.0
network.nmae = "n"
x.dtpye = trt.float16
trt.ElementWiseOperation.ADD
trt.compile(network)(x=1)
"""


@pytest.mark.slow
def test_type_checker_finds_misspelt_attributes(tmp_path):
    pytest.importorskip("pyright")
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson", "script.py"]
    environment = {**os.environ, "PYTHONPATH": str(Path(netloop.__file__).parents[1])}

    made = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    if not made.stdout.startswith("{"):
        pytest.skip("pyright cannot run here: it gets Node.js from the network")
    found = json.loads(made.stdout)["generalDiagnostics"]
    lines = SCRIPT.splitlines()
    assert [lines[value["range"]["start"]["line"]] for value in found if value["severity"] == "error"] == [
        "layer.axsi = 1",
        "fill.alfa = 2.0",
        'network.nmae = "n"',
        "x.dtpye = trt.float16",
        "trt.ElementWiseOperation.ADD",
    ]


def test_no_value_for_an_attribute_leaves_the_input_that_stands_for_it():
    network = INetworkDefinition()
    x, size = network.add_input("x", DataType.FLOAT, (2,)), network.add_input("size", DataType.INT32, (1,))
    for layer, name, empty in ((network.add_shuffle(x), "reshape_dims", None), (network.add_resize(x), "shape", ())):
        layer.set_input(1, size)
        setattr(layer, name, empty)
        assert layer.get_input(1) is size
        setattr(layer, name, (1,))
        assert layer.get_input(1) is None
