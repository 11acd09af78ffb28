"""Files of another kind than the importer expects."""

import numpy as np
import onnx
import pytest

import netloop
from netloop import ModelError
from tests.support.onnx_models import model

NEG = "g (float[2] x) => (float[2] y) { y = Neg (x) }"


def fix_of(load, data):
    with pytest.raises(ModelError) as caught:
        load(data)
    (found,) = caught.value.findings
    return found.fix


@pytest.mark.parametrize(
    ("data", "fix"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "git lfs pull"),
        (b"<!DOCTYPE html><html><body>404</body></html>", "web page"),
        (b'<?xml version="1.0"?><net name="a" version="11"></net>', "netloop.openvino.load"),
        (b"PK\x03\x04\x14\x00", "archive"),
        (b"\x1c\x00\x00\x00ORTM" + bytes(40), "onnxruntime's own format"),
        (b"\x1c\x00\x00\x00TFL3" + bytes(40), "tf2onnx"),
        (model(NEG).SerializeToString()[:-3], "download the file again"),
        (b"", "download the file again"),
    ],
)
def test_bytes_that_are_no_onnx_model_say_what_to_do(data, fix):
    assert fix in fix_of(netloop.onnx.load, data)


def test_onnx_model_given_to_the_importer_of_openvino_says_what_to_do():
    assert "netloop.onnx.load" in fix_of(netloop.openvino.load, model(NEG).SerializeToString())


def test_damaged_document_is_to_be_saved_again():
    assert "openvino.save_model" in fix_of(netloop.openvino.load, b'<?xml version="1.0"?><net name="a" version="11">')


@pytest.mark.parametrize("load", [netloop.onnx.load, netloop.openvino.load])
def test_missing_file_says_what_to_do(load, tmp_path):
    assert fix_of(load, tmp_path / "missing.onnx") == "give the path of the file, from the working directory or /"


def test_missing_file_of_a_tensor_says_what_to_do(tmp_path):
    made = model("g (float[2] x) => (float[2] y) { y = Add (x, w) }")
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.float32([1, 2]), "w"))
    onnx.save(made, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "w.bin").unlink()

    assert fix_of(netloop.onnx.load, tmp_path / "m.onnx").startswith("keep the files of the model in one folder")
