"""Scripts, notebooks and tests of TensorRT code, run unchanged without a GPU."""

import ctypes
import importlib
import json
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import netloop
from netloop.compat import stand_ins
from netloop.tools import compat
from netloop.tools.compat.command import main
from tests.support import fake_cuda

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


@pytest.mark.parametrize(
    "name", ["tensorrt", "cuda.bindings.runtime", "cuda.cudart", "pycuda.driver", "pycuda.autoinit"]
)
def test_stand_ins_are_there_in_their_context_only(name):
    real, before = ctypes.CDLL, sys.modules.get(name)  # PyTorch for CUDA, if it is there, imports cuda.bindings
    with stand_ins():
        assert importlib.import_module(name) is not before
        assert ctypes.CDLL is not real
    assert ctypes.CDLL is real
    assert sys.modules.get(name) is before


def test_stand_ins_of_cuda_are_there_only_without_a_gpu(monkeypatch):
    real, before = ctypes.CDLL, {name: sys.modules.get(name) for name in ("cuda.bindings.runtime", "pycuda.driver")}
    monkeypatch.setattr(compat, "has_gpu", lambda: True)
    with stand_ins():
        assert sys.modules["tensorrt"] is netloop.tensorrt
        assert ctypes.CDLL is real
        assert {name: sys.modules.get(name) for name in before} == before


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


def test_plugin_serves_a_suite_of_tests(tmp_path):
    (tmp_path / "test_own.py").write_text(
        "import tensorrt\n\ndef test_own():\n    assert tensorrt.volume((2, 3)) == 6\n"
    )
    found = ran("-m", "pytest", "-q", "-p", "netloop.compat.pytest_plugin", "-p", "no:cacheprovider", tmp_path)

    assert found.returncode == 0, found.stdout
