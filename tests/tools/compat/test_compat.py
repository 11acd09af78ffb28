"""Scripts, notebooks and tests of TensorRT code, run unchanged without a GPU."""

import ctypes
import importlib
import importlib.metadata
import importlib.util
import json
import multiprocessing
import runpy
import subprocess
import sys
from multiprocessing import spawn
from pathlib import Path
from types import ModuleType

import pytest
from _pytest.assertion.rewrite import AssertionRewriter

import netloop
from netloop.compat import stand_ins
from netloop.tools import compat
from netloop.tools.compat.command import main
from tests.support import fake_cuda
from tests.support.examples import mostly_slow

ROOT = Path(__file__).parents[3]
pytest_plugins = ["netloop.compat.fixtures"]

SCRIPT = """
import sys
import numpy as np
import tensorrt as trt
from cuda.bindings import runtime as cudart

def checked(returned):
    status, *results = returned
    assert status == cudart.cudaError_t.cudaSuccess, cudart.cudaGetErrorString(status)
    return results[0] if results else None

logger = trt.Logger(trt.Logger.WARNING)
builder = trt.Builder(logger)
network = builder.create_network()
x = network.add_input("x", trt.float32, (3,))
y = network.add_unary(x, trt.UnaryOperation.NEG).get_output(0)
y.name = "y"
network.mark_output(y)
plan = builder.build_serialized_network(network, builder.create_builder_config())
engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
context = engine.create_execution_context()
host = np.array([1, 2, 3], np.float32)
stream = checked(cudart.cudaStreamCreate())
addresses = {name: checked(cudart.cudaMalloc(host.nbytes)) for name in ("x", "y")}
for name, address in addresses.items():
    context.set_tensor_address(name, address)
kinds = cudart.cudaMemcpyKind
checked(cudart.cudaMemcpyAsync(addresses["x"], host.ctypes.data, host.nbytes, kinds.cudaMemcpyHostToDevice, stream))
context.execute_async_v3(stream)
checked(cudart.cudaMemcpyAsync(host.ctypes.data, addresses["y"], host.nbytes, kinds.cudaMemcpyDeviceToHost, stream))
checked(cudart.cudaStreamSynchronize(stream))
print(host, trt.__version__, *sys.argv[1:])
"""


def ran(*arguments, cwd=ROOT):
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=100)


def test_script_runs_unchanged(tmp_path):
    (tmp_path / "helper.py").write_text("")
    (tmp_path / "script.py").write_text("import helper\n" + SCRIPT)
    found = ran("-m", "netloop.compat", tmp_path / "script.py", "--option", "1")

    assert found.stdout == f"[-1. -2. -3.] {netloop.tensorrt.__version__} --option 1\n", found.stderr
    assert found.returncode == 0


OF_PROCESSES = """
import multiprocessing, sys
import tensorrt as trt
from cuda import cudart

def work(number):
    return trt.__version__, cudart.cudaSetDevice(0)[0].name, number

if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
        print(*pool.map(work, [5])[0])
"""


@pytest.mark.parametrize(
    "method", mostly_slow(1, sorted({*multiprocessing.get_all_start_methods()} - {"fork"}, reverse=True))
)
def test_processes_of_a_script_have_the_stand_ins_of_its_version(method, tmp_path):
    (tmp_path / "script.py").write_text(OF_PROCESSES)
    result = ran("-m", "netloop.compat", "--tensorrt", "8", tmp_path / "script.py", method)

    assert result.stdout == "8.6.1 cudaSuccess 5\n", result.stderr


def test_processes_know_nothing_of_stand_ins_outside_of_their_context():
    with stand_ins():
        assert "netloop" in spawn.get_preparation_data("name")
    assert "netloop" not in spawn.get_preparation_data("name")


def test_script_runs_unchanged_on_a_gpu(monkeypatch, capsys, tmp_path):
    cuda = fake_cuda.install(monkeypatch)
    monkeypatch.setattr(compat, "has_gpu", lambda: True)
    bindings = ModuleType("cuda.bindings")
    bindings.runtime = cuda
    for name, module in {"cuda": ModuleType("cuda"), "cuda.bindings": bindings}.items():
        monkeypatch.setitem(sys.modules, name, module)
    (tmp_path / "script.py").write_text(SCRIPT)
    with stand_ins():
        monkeypatch.setattr(sys, "argv", ["script.py"])
        runpy.run_path(str(tmp_path / "script.py"), run_name="__main__")

    assert capsys.readouterr().out == f"[-1. -2. -3.] {netloop.tensorrt.__version__}\n"
    assert len(cuda.gpu.views) == 1


@pytest.mark.slow
def test_notebook_runs_unchanged(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": ["# A loop"]},
        {"cell_type": "code", "source": ["%pip install tensorrt\n", "import tensorrt as trt\n"]},
        {"cell_type": "code", "source": ["!nvidia-smi\n", "print(trt.volume((2, 3)), __name__)"]},
    ]
    (tmp_path / "notebook.ipynb").write_text(json.dumps({"cells": cells}))
    found = ran("-m", "netloop.compat", tmp_path / "notebook.ipynb")

    assert (found.stdout, found.stderr) == ("6 __main__\n", "")


def test_module_runs_with_its_arguments(tmp_path):
    (tmp_path / "tool.py").write_text("import sys, tensorrt\nprint(tensorrt.Builder.__name__, sys.argv[1:])")
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.argv[1:] = ['-m', 'tool', 'x']; "
    found = ran("-c", code + "from netloop.compat.__main__ import main; main(sys.argv[1:])", cwd=tmp_path)

    assert found.stdout == "Builder ['x']\n", found.stderr


@pytest.mark.parametrize(("arguments", "says"), [([], "usage: "), (["none.py"], "there is no file 'none.py'")])
def test_nothing_to_run(arguments, says, capsys):
    assert main(arguments) == 2
    assert says in capsys.readouterr().err


def test_error_of_a_script_is_its_own(tmp_path):
    (tmp_path / "script.py").write_text("import tensorrt\nraise SystemExit(3)")

    assert ran("-m", "netloop.compat", tmp_path / "script.py").returncode == 3


@pytest.mark.parametrize("options", [[], ["--tensorrt", "8"]])
def test_traceback_begins_in_the_script(tmp_path, options):
    script = tmp_path / "script.py"
    script.write_text("import tensorrt\ndef fail():\n    raise KeyError('own')\nfail()")
    shown = ran("-m", "netloop.compat", *options, script).stderr

    lines = [line.strip() for line in shown.splitlines() if line.strip().startswith("File")]
    assert [line.rpartition(", line ")[2] for line in lines] == ["4, in <module>", "3, in fail"]
    assert str(script) in lines[0]


@pytest.mark.parametrize(
    "name",
    ["tensorrt", "cuda.bindings.runtime", "cuda.cudart", "pycuda.driver", "pycuda.autoinit", "pycuda.autoprimaryctx"],
)
def test_stand_ins_are_there_in_their_context_only(name):
    real, before = ctypes.CDLL, sys.modules.get(name)  # PyTorch for CUDA, if it is there, imports cuda.bindings
    with stand_ins():
        assert importlib.import_module(name) is not before
        assert ctypes.CDLL is not real
        assert ctypes.cdll.LoadLibrary("libcudart.so").cudaSetDevice(0) == 0
    assert ctypes.CDLL is real
    assert ctypes.cdll.LoadLibrary(None).strlen(b"abc") == 3
    assert sys.modules.get(name) is before


def test_stand_ins_of_cuda_are_there_only_without_a_gpu(monkeypatch):
    before = {name: sys.modules.get(name) for name in ("cuda.bindings.runtime", "pycuda.driver")}
    monkeypatch.setattr(compat, "has_gpu", lambda: True)
    with stand_ins():
        assert sys.modules["tensorrt"] is netloop.tensorrt
        assert {name: sys.modules.get(name) for name in before} == before
        with pytest.raises(OSError, match=r"libcudart\.so\.of_none"):
            ctypes.CDLL("libcudart.so.of_none")
        # netloop is TensorRT there too
        assert ctypes.CDLL("libnvinfer_plugin.so").initLibNvInferPlugins(None, b"")


def test_memory_that_was_freed_or_is_too_small_is_an_error():
    network = netloop.INetworkDefinition()
    network.mark_output(network.add_identity(network.add_input("x", netloop.float32, (3,))).get_output(0))
    context = netloop.compile(network).create_execution_context()
    with stand_ins():
        from cuda.bindings import runtime as cudart

        x, y, small = (cudart.cudaMalloc(size)[1] for size in (12, 12, 8))
        cudart.cudaFree(y)

        ran = [context.execute_v2(places) for places in ([x, y], [y, x], [small, x], [x, small], [x, x])]
        cudart.cudaFree(x)
    assert ran == [False, False, False, False, True]


def test_fixture(tensorrt_without_gpu):
    import tensorrt

    assert tensorrt is tensorrt_without_gpu
    assert tensorrt.Builder is netloop.Builder


def test_fixture_has_no_names_of_older_versions(tensorrt_without_gpu):
    assert not hasattr(tensorrt_without_gpu.Builder, "build_engine")


def test_plugin_serves_a_suite_of_tests_of_its_version(tmp_path):
    (tmp_path / "conftest.py").write_text("import tensorrt\n")  # which is imported before pytest is configured
    (tmp_path / "test_own.py").write_text(
        "import tensorrt\n\ndef test_own():\n    assert tensorrt.__version__ == '8.6.1'\n"
    )
    options = ["-p", "netloop.compat.pytest_plugin", "--tensorrt", "8", "-p", "no:cacheprovider"]
    found = ran("-m", "pytest", "-q", *options, tmp_path)

    assert found.returncode == 0, found.stdout


# ---------------------------------------------------------------------------- older versions

OLDER = """
import sys
import tensorrt as trt
engine = trt.ICudaEngine
print(trt.__version__, hasattr(engine, "num_bindings"), *sys.argv[1:])
def never(engine):
    engine.num_bindings
"""


@pytest.mark.parametrize(
    ("options", "says", "warns"),
    [
        ([], "8.6.1 True", True),
        (["--tensorrt", "7"], "7.2.3.4 True", False),
        (["--tensorrt=10"], "10.16.1.11 False", False),
    ],
)
def test_script_runs_as_for_its_version(monkeypatch, capsys, tmp_path, options, says, warns):
    (tmp_path / "script.py").write_text(OLDER)
    with stand_ins():  # which is undone
        monkeypatch.setattr(sys, "argv", [])
        monkeypatch.setattr(compat.torch_device, "install", lambda: None)
        assert main([*options, str(tmp_path / "script.py"), "--tensorrt", "x"]) == 0

    found = capsys.readouterr()
    assert found.out == f"{says} --tensorrt x\n"
    assert found.err == warns * (
        "netloop.compat: script.py runs as for TensorRT 8, because of num_bindings; --tensorrt says otherwise\n"
    )


@pytest.mark.parametrize("arguments", [["--tensorrt", "12", "x.py"], ["--tensorrt"], ["--tensorrt=eight", "x.py"]])
def test_version_that_there_is_not_is_refused(arguments, capsys):
    assert main(arguments) == 2
    assert "--tensorrt is the major version of TensorRT, one of (7, 8, 9, 10, 11)" in capsys.readouterr().err


def test_help_is_printed(capsys):
    assert main(["--help"]) == 0
    assert "VERSION is the major version of TensorRT" in capsys.readouterr().out


# ---------------------------------------------------------------------------- what tools ask of packages


@pytest.mark.parametrize("name", ["tensorrt", "cuda", "cuda.bindings", "pycuda", "cuda.bindings.runtime"])
def test_packages_have_specs(name):
    with stand_ins(tensorrt=8):
        assert importlib.util.find_spec(name) is not None


def test_packages_have_versions_in_their_context_only():
    with stand_ins(tensorrt=10):
        assert importlib.metadata.version("tensorrt").startswith("10.16")
        assert importlib.metadata.version("tensorrt_bindings").startswith("10.16")
        assert importlib.metadata.version("cuda-python").startswith("13.")
        assert {"tensorrt", "pytest"} <= {package.name for package in importlib.metadata.distributions()}
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("tensorrt")


def test_libraries_of_tensorrt_are_a_package_and_plugins_have_no_modules():
    with stand_ins():
        assert importlib.import_module("tensorrt_libs").__version__ == netloop.tensorrt.__version__
        assert importlib.util.find_spec("tensorrt.plugin._lib") is None


def test_fixture_may_be_imported_before_pytest_knows_of_it():
    assert AssertionRewriter.is_rewrite_disabled(importlib.import_module("netloop.compat.fixtures").__doc__ or "")


def test_plugins_of_python_can_be_mentioned():
    with stand_ins():
        import tensorrt.plugin as trtp

    annotation = trtp.TensorDesc | None
    assert annotation is not None
    with pytest.raises(netloop.NetloopError, match=r"NL421: netloop has no tensorrt.plugin.register"):
        trtp.register("own::plugin")
