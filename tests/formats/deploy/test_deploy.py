"""Networks as StableHLO, by their suffix, and what all forms refuse."""

import sys

import jax
import numpy as np
import pytest

import netloop as trt
from netloop.formats.deploy import TARGETS
from netloop.tools.cli.convert import DEPLOYED
from tests.formats.deploy.examples import EXAMPLES, same


@pytest.mark.parametrize("example", EXAMPLES)
def test_program_gives_the_outputs_of_the_engine(example, tmp_path):
    network, inputs, outputs = example()
    trt.export(network, tmp_path / "a.stablehlo", platforms=["cpu", "cuda"])
    loaded = jax.export.deserialize(bytearray((tmp_path / "a.stablehlo").read_bytes()))

    assert loaded.platforms == ("cpu", "cuda")
    with jax.enable_x64(True):
        same({name: np.asarray(value) for name, value in loaded.call(inputs).items()}, outputs)


def test_suffix_that_no_form_has(network, tmp_path):
    with pytest.raises(ValueError, match=r"a\.pt' ends in none of .\.stablehlo., "):
        trt.export(network, tmp_path / "a.pt")


@pytest.mark.parametrize(
    ("suffix", "package", "install"),
    [("tflite", "tensorflow", "tensorflow"), ("savedmodel", "tensorflow", "tensorflow"),
     ("vmfb", "iree", "iree-base-compiler")],
)  # fmt: skip
def test_missing_package_is_named(suffix, package, install, network, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr("netloop.formats.deploy.find_spec", lambda name: None)

    with pytest.raises(ModuleNotFoundError, match=f"pip install {install}$"):
        trt.export(network, tmp_path / f"a.{suffix}")


def test_command_line_has_every_form():
    assert {*DEPLOYED} == {*TARGETS}
