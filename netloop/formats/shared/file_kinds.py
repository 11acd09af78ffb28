"""Advice on a file of another kind than the importer expects, by its first bytes."""

# fmt: off
KINDS = (
    (0, b"version https://git-lfs", "this is a pointer of Git LFS: 'git lfs pull' fetches the file"),
    (0, b"<!DOCTYPE html",          "this is a web page: download the file itself"),
    (0, b"<html",                   "this is a web page: download the file itself"),
    (0, b"<?xml",                   "netloop.openvino.load reads OpenVINO models"),
    (0, b"<net",                    "netloop.openvino.load reads OpenVINO models"),
    (0, b"PK\x03\x04",              "this is an archive: unpack it, export a checkpoint of PyTorch as ONNX, or load a "
                                    "plan with netloop.plan.load"),
    (4, b"ORTM",                    "this is onnxruntime's own format: load the .onnx file that it was made from"),
    (4, b"TFL3",                    "this is a model of TensorFlow Lite: convert it with tf2onnx"),
    (0, b"\x08",                    "netloop.onnx.load reads ONNX models"),
)
# fmt: on
"""The offset and the bytes that mark a kind of file, and the advice."""

AGAIN = "download the file again, or save the model again"


def advice_on(data: bytes) -> str:
    """Advice on bytes that are not of the expected kind."""
    return next((fix for start, mark, fix in KINDS if data[start : start + len(mark)] == mark), AGAIN)
