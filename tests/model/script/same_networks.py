"""Equality of networks: their plans, without source lines."""

import runpy
import warnings
from pathlib import Path
from typing import Any

import onnx
from onnx.backend.test.loader import load_model_tests

import netloop as trt
from netloop.model import script
from netloop.model.plan import npy_arrays
from netloop.model.plan.network_json import NetworkWriter

IGNORED = {"place", "files", "arrays", "is_inner", "is_converted"}
"""Source lines; arrays, which are compared where they are used; and the marks of casts that a ``dtype`` added."""


def contents(network: trt.INetworkDefinition) -> Any:
    """What a plan has of a network, with the elements of arrays in place of their numbers."""
    writer = NetworkWriter(network)
    document = writer.document()
    elements = [(dtype, bytes(npy_arrays.elements(array, dtype))) for dtype, array in writer.arrays]
    for layer, written in zip(network.layers, document["layers"], strict=True):
        for name, value in written["attributes"].items():
            if hasattr(getattr(layer, name), "tobytes"):
                written["attributes"][name] = elements[value]
        if written["kind"] == "IAttentionInputLayer":  # which has no object of its own in TensorRT
            written.update(name="", outputs=len(written["outputs"]), metadata="")
    return _without(document)


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without(element) for name, element in value.items() if name not in IGNORED}
    return [_without(element) for element in value] if isinstance(value, list) else value


def built(path: Path) -> trt.INetworkDefinition:
    """The network that a script builds."""
    return runpy.run_path(str(path))["build"]()


def assert_round_trip(network: trt.INetworkDefinition, folder: Path, module: script.Module = "netloop") -> str:
    """Check that the script of a network builds an equal one; return the script."""
    path = folder / "model.py"
    script.save(network, path, module)
    text = path.read_text(encoding="utf-8")
    if module == "netloop":
        assert contents(built(path)) == contents(network)
    path.with_suffix(".npz").unlink(missing_ok=True)
    return text


def is_valid(network: trt.INetworkDefinition) -> bool:
    """Whether a network has no errors."""
    return not any(finding.severity is trt.Severity.ERROR for finding in trt.check(network))


def onnx_models() -> dict[str, Any]:
    """The models of ONNX's tests of operators, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's, while the package makes its data
        return {
            test.name: test.model or onnx.load(Path(test.model_dir, "model.onnx"))
            for test in load_model_tests(kind="node")
        }
