"""Weights in files of safetensors."""

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import netloop as trt
from netloop.tools.cli import main
from tests.support.networks import constant, mark

W, B = np.float32([[1, 2], [3, 4]]), np.float32([10, 20])


@pytest.fixture
def product(network):
    x = network.add_input("x", trt.float32, (1, 2))
    w, b = constant(network, W), constant(network, B.reshape(1, 2))
    w.producer.name, b.producer.name = "layer.weight", "layer.bias"
    none = trt.MatrixOperation.NONE
    y = network.add_matrix_multiply(x, none, w, none).get_output(0)
    return mark(network, y=network.add_elementwise(y, b, trt.ElementWiseOperation.SUM).get_output(0))


@pytest.mark.parametrize(
    "array",
    [
        W,
        np.float32(3),
        np.zeros((0, 3), np.int64),
        W.astype(ml_dtypes.bfloat16),
        W.T > 2,
        np.arange(6, dtype=np.int8)[::2],
    ],
    ids=lambda array: f"{array.dtype.name}{array.shape}",
)
def test_arrays_are_saved_and_loaded(array, tmp_path):
    trt.safetensors.save(tmp_path / "a.safetensors", {"a": array})

    loaded = trt.safetensors.load(tmp_path / "a.safetensors")["a"]
    assert (loaded.dtype, loaded.shape) == (array.dtype, array.shape)
    assert np.array_equal(loaded, array)
    assert np.array_equal(load_file(tmp_path / "a.safetensors")["a"].astype(np.float32), array.astype(np.float32))


def test_weights_of_to_jax_are_written(product, tmp_path):
    function, weights = trt.to_jax(product)
    trt.safetensors.save(tmp_path / "w.safetensors", weights)

    loaded = trt.safetensors.load(tmp_path / "w.safetensors")
    assert np.array_equal(function(loaded, {"x": np.ones((1, 2), np.float32)})["y"], [[14, 26]])


def test_network_takes_the_weights_of_a_file(product, tmp_path):
    save_file({"layer.weight": 2 * W, "unused": B}, tmp_path / "w.safetensors")

    assert trt.safetensors.set_weights(product, tmp_path / "w.safetensors") == ["unused"]
    assert trt.evaluate(product, {"x": np.ones((1, 2), np.float32)})["y"].tolist() == [[18, 32]]


@pytest.mark.parametrize(
    ("arrays", "what"),
    [
        ({"layer.weight": W[:1]}, "'layer.weight' is float32[1,2] in the file, and float32[2,2] in the network"),
        ({"layer.bias": np.ones((1, 2))}, "'layer.bias' is float64[1,2] in the file, and float32[1,2] in the network"),
        ({"weight": W}, "the network has none of the 1 names of the file, such as 'weight'"),
    ],
)
def test_weights_that_do_not_fit_are_refused(product, tmp_path, arrays, what):
    save_file(arrays, tmp_path / "w.safetensors")

    with pytest.raises(trt.FileFormatError) as caught:
        trt.safetensors.set_weights(product, tmp_path / "w.safetensors")
    assert [(finding.code, finding.what) for finding in caught.value.findings] == [("NL718", what)]
    assert np.array_equal(trt.safetensors.weights_of(product)["layer.weight"], W)


@pytest.mark.parametrize("data", [b"", b"abc", bytes(100), b"\xff" * 64])
def test_damaged_file_is_refused(tmp_path, data):
    (tmp_path / "w.safetensors").write_bytes(data)

    with pytest.raises(trt.FileFormatError, match="NL718"):
        trt.safetensors.load(tmp_path / "w.safetensors")


def test_commands_read_and_write_weights(product, tmp_path, capsys):
    trt.plan.save(product, tmp_path / "m.plan")
    weights = str(tmp_path / "w.safetensors")

    assert main(["convert", str(tmp_path / "m.plan"), weights]) == 0
    save_file({name: 2 * array for name, array in load_file(weights).items()}, weights)
    capsys.readouterr()
    assert main(["run", str(tmp_path / "m.plan"), "--weights", weights, "--inputs", "x=[[1,1]]"]) == 0
    assert "= 28.0, 52.0" in capsys.readouterr().out


def test_peers_run_the_weights_of_the_file(product, tmp_path, capsys):
    trt.onnx.save(product, tmp_path / "m.onnx")
    model, weights = str(tmp_path / "m.onnx"), str(tmp_path / "w.safetensors")
    names = trt.safetensors.weights_of(trt.onnx.load(model))
    save_file({name: 2 * array for name, array in names.items()}, weights)

    assert main(["run", model, "--weights", weights, "--inputs", "x=[[1,1]]", "--compare", "onnxruntime"]) == 0
    assert "agrees" in capsys.readouterr().out


@pytest.mark.parametrize("array", [np.array(["a"]), np.ones(2, ml_dtypes.int4), np.ones(2, np.complex64)])
def test_element_type_that_files_lack_is_refused(array, tmp_path):
    with pytest.raises(ValueError, match="'a' is "):
        trt.safetensors.save(tmp_path / "a.safetensors", {"b": W, "a": array})
    assert not (tmp_path / "a.safetensors").exists()
