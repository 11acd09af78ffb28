"""Scripts build the networks that they were written from: with equal plans, whatever is in them."""

import ast
import json
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import netloop as trt
import netloop.onnx
from netloop import script
from tests.model.script.same_networks import assert_round_trip, built, contents, is_valid, onnx_models
from tests.support import networks
from tests.support.examples import many, mostly_slow
from tests.support.layer_specs import CALLS, Tensors
from tests.support.plugin_examples import Plugin, circular_pad
from tests.support.random_networks import random_network

ROOT = Path(__file__).parents[3]
PARTS = 24
"""The parts of ONNX's models, of which one is fast."""
SAMPLES = ["conditional_in_loop", "counting_loop", "lstm", "nested_loops", "newton_sqrt", "running_sum"]
SURFACE = json.loads((ROOT / "tests" / "data" / "tensorrt_surface.json").read_text())
OF_TENSORRT = {
    *(name for enum, members in SURFACE["enums"].items() for name in (enum, *members)),
    *(name for cls, parts in SURFACE["classes"].items() for name in (cls, *parts["methods"], *parts["properties"])),
}


def layer_of(method: str) -> trt.INetworkDefinition:
    """A network of one layer, made by a method."""
    network = trt.INetworkDefinition()
    made = getattr(network, method)(**CALLS[method](Tensors(network)))
    if made.get_output(0) is not None:
        network.mark_output(made.get_output(0))
    return network


def foreign_names(text: str) -> set[str]:
    """The attributes in a script that TensorRT's objects do not have."""
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)]
    own = {
        attribute.attr
        for attribute in found
        if not (isinstance(attribute.value, ast.Name) and attribute.value.id in ("np", "atexit"))
    }
    return own - OF_TENSORRT - {"with_name", "ctypes", "data", "clear"}


@pytest.mark.parametrize("name", networks.EXAMPLES)
def test_example(name, tmp_path):
    make, inputs, outputs = networks.EXAMPLES[name]
    path = tmp_path / "model.py"
    script.save(make(), path)

    assert contents(built(path)) == contents(make())
    networks.assert_outputs(trt.evaluate(built(path), inputs), outputs)


@pytest.mark.parametrize("name", SAMPLES)
def test_sample(name, tmp_path):
    assert_round_trip(runpy.run_path(str(ROOT / "samples" / f"{name}.py"))["build"](), tmp_path)


def test_nothing_is_left_of_a_script_that_cannot_be_written(network, tmp_path):
    network.mark_output(networks.constant(network, np.zeros(100), np.float32))
    with pytest.raises(OSError, match="No such file"):
        script.save(network, tmp_path / "none" / "model.py")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("method", sorted(CALLS))
def test_layer(method, tmp_path):
    network = layer_of(method)
    if method == "add_plugin_v3":
        with pytest.raises(trt.NetworkError, match=r"NL714.* has no name"):
            script.to_script(network)
    elif is_valid(network):
        assert_round_trip(network, tmp_path)
    else:
        with pytest.raises(trt.NetworkError):
            script.to_script(network)


@pytest.mark.parametrize("seed", mostly_slow(10, many(40)))
def test_random_network(seed, tmp_path):
    network = random_network(seed).network
    if is_valid(network) and not any(isinstance(layer, trt.IPluginV3Layer) for layer in network):
        assert_round_trip(network, tmp_path)


@pytest.mark.parametrize("part", mostly_slow(1, range(PARTS)))
def test_onnx_models(part, tmp_path):
    models = list(onnx_models().items())[part::PARTS]
    assert len(models) > 1200 // PARTS
    trips = 0
    for name, model in models:
        try:
            network = netloop.onnx.load(model)
        except trt.ModelError:
            continue
        text = assert_round_trip(network, tmp_path)
        assert "named(" in text, name
        trips += 1
    assert trips > 0.8 * len(models)


# ---------------------------------------------------------------------------- single properties


def test_weights_of_all_types(tmp_path):
    network = trt.INetworkDefinition()
    for dtype in trt.DataType.__members__.values():
        values = np.arange(9, dtype=np.int8) % 2
        constant = network.add_constant((9,), values.astype(netloop.values.types.numpy_type(dtype)))
        network.mark_output(constant.get_output(0))

    assert_round_trip(network, tmp_path)


def test_equal_weights_of_two_layers_are_stored_once(tmp_path):
    network, weights = trt.INetworkDefinition(), np.arange(100, dtype=np.float32)
    for _ in range(2):
        network.mark_output(network.add_constant((100,), weights).get_output(0))

    assert list(script.to_script(network)[1]) == ["constant_layer_weights"]
    assert_round_trip(network, tmp_path)


def test_marks(tmp_path):
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (2, -1))
    x.set_dimension_name(1, "batch")
    weights = np.ones((2, 1), np.float32)
    constant = network.add_constant((2, 1), weights)
    total = network.add_elementwise(x, constant.get_output(0), trt.ElementWiseOperation.SUM).get_output(0)
    total.allowed_formats = 1
    network.set_weights_name(weights, "ones")
    network.mark_weights_refittable("ones")
    network.mark_debug(total)
    network.mark_unfused_tensors_as_debug_tensors()
    network.mark_output_for_shapes(network.add_shape(x).get_output(0))
    network.mark_output(total)

    assert_round_trip(network, tmp_path)


@pytest.mark.parametrize(
    "name", ['"""', "\\", "a\nb", "import", "Ünï", "1st", "network", "float", "", "\x00", "{x}", "x" * 500]
)
def test_any_name(name, tmp_path):
    network = trt.INetworkDefinition()
    network.name = name
    x = network.add_input(name, trt.float32, (2,))
    layer = network.add_unary(x, trt.UnaryOperation.NEG)
    layer.name = layer.metadata = name
    layer.get_output(0).name = name
    network.mark_output(network.add_unary(layer.get_output(0), trt.UnaryOperation.NEG).get_output(0))

    assert_round_trip(network, tmp_path)


def test_layer_that_reads_a_later_one(tmp_path):
    network = networks.chain(3)
    last, first = network.get_layer(2), network.get_layer(0)
    network.mark_output(network.add_unary(last.get_output(0), trt.UnaryOperation.ABS).get_output(0))
    clip = network.add_slice(network.get_input(0), (0,), (1,), (1,))
    first.set_input(0, clip.get_output(0))
    rebuilt = tmp_path / "model.py"
    script.save(network, rebuilt)

    names = [type(layer).__name__ for layer in built(rebuilt)]
    assert sorted(names) == sorted(type(layer).__name__ for layer in network)
    assert names[0] == "ISliceLayer"


def test_input_whose_type_was_set(tmp_path):
    network = networks.chain(2)
    network.get_input(0).dtype = trt.int32
    path = tmp_path / "model.py"
    script.save(network, path)
    inputs = {network.get_input(0).name: np.full(network.get_input(0).shape, 2, np.int32)}

    networks.assert_outputs(trt.evaluate(built(path), inputs), trt.evaluate(network, inputs))


def test_plugin(tmp_path):
    network = trt.INetworkDefinition()
    pad = circular_pad(pads=[[1, 2], [3, 1]])
    x = network.add_input("x", trt.float32, (2, 3))
    network.mark_output(network.add_plugin_v3([x], [], pad).get_output(0))

    text = assert_round_trip(network, tmp_path)
    assert "plugin('circular_pad', '1', 'tests', [trt.PluginField(" in text


def test_plugin_without_a_creator(tmp_path):
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (2, 3))
    network.mark_output(network.add_plugin_v3([x], [], Plugin()).get_output(0))
    script.save(network, tmp_path / "model.py")

    with pytest.raises(LookupError, match="register the creator of the plugin 'Plugin', version '1', before build"):
        built(tmp_path / "model.py")


# ---------------------------------------------------------------------------- scripts for TensorRT


@pytest.mark.parametrize("name", networks.EXAMPLES)
def test_script_for_tensorrt_uses_its_api_only(name):
    try:
        text, _ = script.to_script(networks.EXAMPLES[name].make(), "tensorrt")
    except trt.NetworkError:
        assert any(
            finding.severity is trt.Severity.ERROR for finding in trt.check(networks.EXAMPLES[name].make(), "tensorrt")
        )
    else:
        assert "import tensorrt as trt" in text
        assert foreign_names(text) == set()


@pytest.mark.parametrize("method", sorted(CALLS))
def test_layer_for_tensorrt_uses_its_api_only(method):
    network = layer_of(method)
    try:
        text, _ = script.to_script(network, "tensorrt")
    except trt.NetworkError:
        assert (
            any(finding.severity is trt.Severity.ERROR for finding in trt.check(network, "tensorrt"))
            or "plugin" in method
        )
    else:
        assert foreign_names(text) == set()


def test_loop_of_a_model_for_tensorrt():
    model = netloop.onnx.to_model(networks.EXAMPLES["both limits, WHILE first"].make())
    network = netloop.onnx.load(model)
    text, _ = script.to_script(network, "tensorrt")

    assert ".add_loop()" in text
    assert "keeps_shape" in script.to_script(network)[0]
    assert foreign_names(text) == set()


def test_script_runs_under_the_name_of_tensorrt(tmp_path):
    network = networks.EXAMPLES["both limits, WHILE first"].make()
    script.save(network, tmp_path / "model.py", "tensorrt")
    alias = "import sys, runpy, netloop; sys.modules['tensorrt'] = netloop; "
    code = alias + "runpy.run_path(sys.argv[1], run_name='__main__')"
    ran = subprocess.run([sys.executable, "-c", code, tmp_path / "model.py"], cwd=ROOT, capture_output=True, text=True)

    assert (ran.stdout, ran.stderr) == (f"{network.num_layers} layers\n", "")


# ---------------------------------------------------------------------------- errors


def test_network_with_errors_is_refused():
    network = trt.INetworkDefinition()
    network.add_loop().add_recurrence(network.add_input("x", trt.float32, ()))
    network.mark_output(network.layers[0].get_output(0))

    with pytest.raises(trt.NetworkError, match="NL2"):
        script.to_script(network)


def test_module_is_one_of_two():
    with pytest.raises(ValueError, match="module must be 'netloop' or 'tensorrt', not 'torch'"):
        script.to_script(networks.chain(1), "torch")


def test_folder_that_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        script.save(networks.chain(1), tmp_path / "none" / "model.py")
