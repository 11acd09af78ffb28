"""``netloop run``: outputs, comparisons and statuses."""

import sys
from importlib import import_module

import numpy as np
import pytest

from netloop.model.layers.pointwise import IActivationLayer
from netloop.tools.cli import models as models_module
from netloop.tools.peers import in_reference
from tests.support.cli_models import expected
from tests.support.rounding_devices import pretend


@pytest.fixture
def wrong_tanh(monkeypatch):
    """Engines compute tanh with an error of 1 %."""
    right = IActivationLayer.lower
    monkeypatch.setattr(IActivationLayer, "lower", lambda self, *arrays: 1.01 * right(self, *arrays))


@pytest.mark.parametrize("name", ["model.py", "model.onnx", "model.xml", "model.plan"])
def test_model_of_every_format_runs(models, run, name):
    done = run(f"run {name} --inputs inputs.npz --output outputs.npz")

    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("y: float32[1,3] = 0.0, 0.895")
    x = np.load("inputs.npz")["x"]
    np.testing.assert_allclose(np.load("outputs.npz")["y"], expected(x), rtol=1e-6)


@pytest.mark.parametrize("name", ["model.py", "model.onnx", "model.xml"])
def test_runtimes_agree(models, run, name):
    pytest.importorskip("openvino")
    done = run(f"run {name} --inputs inputs.npz --compare onnxruntime,openvino,reference")

    assert done.status == 0
    assert done.out.count("  y: agrees, largest difference") == 3
    assert [line for line in done.out.splitlines() if line.startswith("netloop and")] == [
        "netloop and onnxruntime:",
        "netloop and openvino:",
        "netloop and reference:",
    ]


def test_difference_is_told_and_is_the_status(models, run, wrong_tanh):
    done = run("run model.py --inputs inputs.npz --compare onnxruntime,reference")

    assert done.status == 1
    assert done.out.count("  y: differs, 2 of 3 elements, largest difference 0.0187, relative 0.01; ") == 2


def test_tolerances_decide(models, run, wrong_tanh):
    assert run("run model.py --inputs inputs.npz --compare reference --rtol 0.02").status == 0
    assert run("run model.py --inputs inputs.npz --compare reference --rtol 0 --atol 0.01").status == 1
    assert run("run model.py --inputs inputs.npz --compare reference --rtol 0 --atol 0.02").status == 0


def test_runtime_that_fails_is_a_difference(models, run, monkeypatch):
    def fail(self, inputs):
        raise RuntimeError("out of\npaper")

    monkeypatch.setattr(in_reference.ReferencePeer, "_run", fail)
    done = run("run model.py --inputs inputs.npz --compare reference")

    assert done.status == 1
    assert done.err.startswith("NL613: reference fails: out of paper\n  because another runtime refused")


def test_package_that_is_missing_is_told_before_the_model_runs(models, run, monkeypatch):
    monkeypatch.setattr(import_module("netloop.tools.peers"), "find_spec", lambda name: None)
    done = run("run model.py --inputs inputs.npz --compare openvino")

    assert (done.status, done.out) == (2, "")
    assert done.err == "a comparison with openvino needs its package: pip install openvino\n"


PRODUCT = """
import numpy as np
import netloop as trt

def build():
    network, none = trt.INetworkDefinition(), trt.MatrixOperation.NONE
    x = network.add_input("x", trt.float32, (1, 64))
    weights = network.add_constant((64, 64), np.linspace(-1, 1, 4096, dtype=np.float32)).get_output(0)
    y = network.add_matrix_multiply(x, none, weights, none).get_output(0)
    y.name = "y"
    network.mark_output(y)
    return network
"""


@pytest.mark.usefixtures("default_precision")
@pytest.mark.parametrize(
    "command", ["run product.py --compare reference", "debug product.py", "debug product.py --against onnxruntime"]
)
def test_precision_of_the_device_is_told_and_can_be_that_of_float32(tmp_path, run, monkeypatch, command):
    if "onnxruntime" in command:
        pytest.importorskip("onnxruntime")
    pretend(monkeypatch, "tensorfloat32")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "product.py").write_text(PRODUCT)
    done, exact = run(command), run(f"{command} --noTF32 --rtol 1e-6 --atol 1e-5")

    assert (done.status, exact.status) == (0, 0)
    assert "float32 products" in done.out
    assert "of tensorfloat32" in done.out
    assert "tensorfloat32" not in exact.out
    assert run(f"{command} --rtol 1e-6 --atol 1e-5").status == 1


@pytest.mark.parametrize(
    "command",
    ["bench product.py --iterations 1 --duration 0 --warmUp 0", "inspect product.py --passes", "report product.py",
     "serve product.py --triton models --sizes 1"],
)  # fmt: skip
def test_every_command_that_runs_a_model_can_do_without_tf32(tmp_path, run, monkeypatch, command):
    compiled, flags = models_module.compiled, []
    monkeypatch.setattr(
        models_module,
        "compiled",
        lambda *given, **options: (flags.append(options["tf32"]), compiled(*given, **options))[1],
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "product.py").write_text(PRODUCT.replace("(1, 64)", "(-1, 64)"))
    done = run(f"{command} --noTF32")

    assert (done.status, flags) == (0, [False]), done.err


# ---------------------------------------------------------------------------- random inputs


def test_random_inputs_depend_on_the_seed_alone(models, run):
    first, same, other = (run(f"run model.py --shapes x:2x3 --seed {seed}").out for seed in (1, 1, 2))

    assert first == same != other
    assert first.startswith("y: float32[2,3] = ")


def test_open_lengths_are_one_and_it_says_so(models, run):
    done = run("run model.py")

    assert done.out.startswith("y: float32[1,3]")
    assert done.err == "note: the model leaves lengths open, and they are 1: --shapes x:1x3\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--shapes z:3", "--shapes has 'z', which is no input; the model has 'x'\n"),
        ("--shapes x:3", "input 'x' is float32[-1,3], and --shapes has 3 for it\n"),
        ("--shapes x:2x4", "input 'x' is float32[-1,3], and --shapes has 2x4 for it\n"),
        ("--shapes x:scalar", "input 'x' is float32[-1,3], and --shapes has scalar for it\n"),
        ("--inputs inputs.npz --shapes x:2x3", "--shapes are for random inputs, and --inputs has arrays with shapes\n"),
        ("--inputs nowhere.npz", "[Errno 2] No such file or directory: 'nowhere.npz'\n"),
        ("--inputs model.plan", "'model.plan' is neither an .npz nor an .npy file\n"),
        ("--inputs inputs.npz --output no/where.npz", "[Errno 2] No such file or directory"),
    ],
)
def test_arguments_that_do_not_fit_are_one_line(models, run, arguments, says):
    done = run(f"run model.py {arguments}")

    assert done.status == 2
    assert done.err.startswith(says)
    assert done.err.count("\n") == 1


def test_unknown_name_in_a_file_has_a_finding(models, run):
    np.savez("other.npz", X=np.zeros((1, 3), np.float32))
    done = run("run model.py --inputs other.npz")

    assert done.status == 2
    assert "NL602" in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are others there")
def test_unreadable_model_is_one_line(models, run, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", "model.py")

    monkeypatch.setattr("runpy.run_path", refuse)
    done = run("run model.py")

    assert done.status == 2
    assert done.err.endswith("importing it raised PermissionError\n")
