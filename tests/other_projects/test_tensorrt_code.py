"""Suites of other projects pass on netloop, except for the tests that the page ``docs/tensorrt-code.md`` explains.

They run where the variable ``NETLOOP_CODE_SOURCES`` names a folder with folders of sources.
"""

import ctypes
import os
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from netloop.process.stream_captures import CAPTURES
from netloop.tools.compat import torch_device, torch_streams
from netloop.tools.compat.status import cudaError_t
from tests.other_projects import faked_device, faked_torch, logs, nvidia_samples, page, tensorrt_code
from tests.other_projects.reasons import REASONS, reason
from tests.other_projects.suites import FAKED, SUITES, LoggedSuite, ScriptSuite, TestSuite

NAMED = os.environ.get("NETLOOP_CODE_SOURCES")
SCRIPT = "import tensorrt as trt\nprint(trt.Builder(trt.Logger()).max_batch_size)\n"
TESTS = """
import pytest
import tensorrt

def test_names():
    assert tensorrt.__version__.startswith("11")

@pytest.mark.parametrize("flag", [True, False])
def test_flag(flag):
    assert flag

@pytest.mark.skip
def test_device():
    pass
"""

DEVICE_TEST = """
import ctypes

import numpy as np
import tensorrt as trt
from cuda.bindings import runtime as cudart

def test_memory_of_the_device():
    builder = trt.Builder(trt.Logger())
    network = builder.create_network()
    x = network.add_input("x", trt.float32, (3,))
    y = network.add_unary(x, trt.UnaryOperation.NEG).get_output(0)
    network.mark_output(y)
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    engine = trt.Runtime(trt.Logger()).deserialize_cuda_engine(plan)
    context = engine.create_execution_context()
    stream, pinned = cudart.cudaStreamCreate()[1], cudart.cudaMallocHost(12)[1]
    numbers = np.frombuffer((ctypes.c_float * 3).from_address(int(pinned)), np.float32)
    numbers[:] = [1, 2, 3]
    for name in (x.name, y.name):
        context.set_tensor_address(name, cudart.cudaMalloc(12)[1])
    there, back = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice, cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost
    cudart.cudaMemcpyAsync(context.get_tensor_address(x.name), numbers.ctypes.data, 12, there, stream)
    assert context.execute_async_v3(stream)
    cudart.cudaMemcpyAsync(numbers.ctypes.data, context.get_tensor_address(y.name), 12, back, stream)
    assert numbers.tolist() == [1, 2, 3]
    ctypes.cdll.LoadLibrary("libcudart.so").cudaStreamSynchronize(stream)
    assert numbers.tolist() == [-1, -2, -3]
"""


ON_A_GPU = "faked "
"""The beginning of names of suites for the tests that fail only on a machine that seems to have a GPU."""


def failures(name):
    if name.startswith(ON_A_GPU):
        return page.fails_on_a_gpu(name.removeprefix(ON_A_GPU))
    failed = tensorrt_code.recorded()[name]["failed"]
    assert isinstance(failed, list)
    return failed


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_only_what_the_page_explains_fails(suite):
    sources = tensorrt_code.sources_of(suite, [Path(NAMED)]) if NAMED else None
    if sources is None or suite.missing():
        pytest.skip(f"NETLOOP_CODE_SOURCES has no sources of {suite.source}, or packages are missing")

    assert not tensorrt_code.compared(suite, tensorrt_code.run(suite, sources))


def test_page_has_the_recorded_outcomes():
    assert page.PAGE.read_text(encoding="utf-8") == page.page()


def test_page_explains_each_failure():
    recorded = tensorrt_code.recorded()
    names = [*recorded, *(ON_A_GPU + name for name in tensorrt_code.recorded(FAKED))]

    assert set(recorded) == {suite.name for suite in SUITES}
    assert not [(name, test) for name in names for test in failures(name) if reason(name, test) is None]


@pytest.mark.parametrize("name", REASONS)
def test_each_reason_is_that_of_a_test_that_fails(name):
    unused = [pattern for pattern in REASONS[name] if not any(re.fullmatch(pattern, test) for test in failures(name))]

    assert not unused


def test_page_of_runs_without_a_gpu_names_the_samples():
    text = (page.ROOT / "docs" / "without-a-gpu.md").read_text(encoding="utf-8")

    assert not [name for name in nvidia_samples.ALL if f"`{name.partition(',')[0]}`" not in text]


@pytest.fixture
def suite(tmp_path, monkeypatch):
    """A suite with two tests that pass, of which one is new, one that fails and one that is skipped."""
    (tmp_path / "project" / "tests").mkdir(parents=True)
    (tmp_path / "project" / "tests" / "test_names.py").write_text(TESTS)
    monkeypatch.setattr(tensorrt_code, "RECORD", tmp_path / "record.json")
    made = TestSuite("made", "Made", "nobody/made", "tests", files=["tests/test_*.py"])
    monkeypatch.setattr(tensorrt_code, "SUITES", [made])
    return made


@pytest.mark.slow
def test_command_runs_the_suites_in_folders_and_tells_what_changed(suite, tmp_path, capsys):
    name = str(tmp_path)
    assert tensorrt_code.main([name, "--record"]) == 0
    assert tensorrt_code.recorded()["made"] == {
        "passed": 2,
        "skipped": 1,
        "failed": ["test_names.py::test_flag[False]"],
    }
    text = tensorrt_code.RECORD.read_text()
    tensorrt_code.RECORD.write_text(text.replace("test_flag[False]", "test_names"))
    capsys.readouterr()
    assert tensorrt_code.main([name, "--", "-k", "flag or names"]) == 1

    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == ["  fails now: test_names.py::test_flag[False]", "  passes now: test_names.py::test_names"]


@pytest.mark.slow
def test_file_that_cannot_be_imported_fails(suite, tmp_path):
    (tmp_path / "project" / "tests" / "test_names.py").write_text("import no_such_package")

    assert tensorrt_code.run(suite, tmp_path / "project") == {"test_names.py": "failed"}


@pytest.mark.slow
def test_file_whose_tests_cannot_be_set_up_fails(suite, tmp_path):
    (tmp_path / "project" / "tests" / "conftest.py").write_text("import pytest; pytest.fail()")

    assert tensorrt_code.run(suite, tmp_path / "project") == {"tests/test_names.py": "failed"}


@pytest.mark.slow
def test_scripts_run_as_for_their_version(tmp_path):
    (tmp_path / "scripts" / "one").mkdir(parents=True)
    (tmp_path / "scripts" / "one" / "main.py").write_text(SCRIPT)
    outcomes = {
        version: tensorrt_code.run(
            ScriptSuite("made", "Made", "nobody/made", "scripts", folder="scripts", tensorrt=version), tmp_path
        )
        for version in (8, 11)
    }

    assert outcomes == {8: {"one/main.py": "passed"}, 11: {"one/main.py": "failed"}}


LOG = """
[07/07/2026-06:30:30] [TRT] [W] a message of 3 words
============================== Start [case_sum,(),{}]

================ Public members of <tensorrt.ILoop object at 0x734f> (instance)
 1 Non-callable attributions: ['name']
Output->DataType.FLOAT, (2,), (Unnamed Layer* 4) [LoopOutput]_output
[1.0004 -2.e+00]
============================== End   [case_sum]
============================== Start [case_more,(3,),{}]
[nan inf]
============================== End   [case_more]
"""


def test_cases_agree_with_logs_in_words_and_three_digits():
    cases = logs.cases(LOG)
    text = "Output->DataType.FLOAT, (2,), (Unnamed Layer* 4) [LoopOutput]_output\n[1. -2.]"

    assert [*cases] == ["case_sum", "case_more(3,),{}"]
    assert logs.agree(text, cases["case_sum"])
    assert logs.agree("[nan inf]", cases["case_more(3,),{}"])
    assert not logs.agree(text.replace("1.", "1.1"), cases["case_sum"])
    assert not logs.agree(text.replace("FLOAT", "HALF"), cases["case_sum"])
    assert not logs.agree(text + " 3", cases["case_sum"])


@pytest.mark.slow
def test_script_passes_by_the_cases_that_agree_with_its_log(tmp_path):
    (tmp_path / "layers" / "one").mkdir(parents=True)
    (tmp_path / "layers" / "one" / "main.py").write_text(f"print({LOG!r}.replace('nan', '0'))")
    (tmp_path / "layers" / "one" / "log-main.py.log").write_text(LOG)
    logged = LoggedSuite("made", "Made", "nobody/made", "layers", folders=["layers/*"])

    assert tensorrt_code.run(logged, tmp_path) == {"one::case_sum": "passed", "one::case_more(3,),{}": "failed"}


def test_changes_are_those_of_tests_that_failed_before_or_fail_now():
    outcomes = {"a": "failed", "b": "passed", "c": "failed", "d": "skipped"}

    assert tensorrt_code.changes(outcomes, ["a", "b", "gone"]) == (["c"], ["b"])
    assert tensorrt_code.summary(outcomes) == {"passed": 1, "skipped": 1, "failed": ["a", "c"]}


def test_sources_are_folders_or_in_them(tmp_path):
    (tmp_path / "project" / "tests").mkdir(parents=True)
    suite = TestSuite("made", "Made", "nobody/made", "tests")

    assert tensorrt_code.sources_of(suite, [tmp_path]) == tmp_path / "project"
    assert tensorrt_code.sources_of(suite, [tmp_path / "none", tmp_path / "project"]) == tmp_path / "project"
    assert tensorrt_code.sources_of(suite, [tmp_path / "none"]) is None


def test_command_skips_suites_without_sources(tmp_path, capsys):
    assert tensorrt_code.main([str(tmp_path)]) == 0
    assert "skipped, no " in capsys.readouterr().out


def test_faked_runtime_has_the_statuses_of_cudas_package_and_copies_arrays():
    runtime = faked_device.Runtime()
    x, y = np.arange(3, dtype=np.float32), np.ones(3, np.float32)
    status, address = runtime.cudaMalloc(x.nbytes)
    kinds = runtime.cudaMemcpyKind

    assert status is cudaError_t.cudaSuccess is runtime.cudaError_t.cudaSuccess
    assert runtime.cudaMemcpy(address, x, x.nbytes, kinds.cudaMemcpyHostToDevice) == (cudaError_t.cudaSuccess,)
    runtime.cudaMemset(address, 0, 4)
    runtime.cudaMemcpy(y, address, y.nbytes, int(kinds.cudaMemcpyDeviceToHost))
    np.testing.assert_array_equal(y, [0, 1, 2])
    assert runtime.cudaMemcpyAsync(address, x, 4, 1, 77)[0] is cudaError_t.cudaErrorInvalidResourceHandle
    assert runtime.cudaFree(0) == runtime.cudaFree(address) == (cudaError_t.cudaSuccess,)
    assert runtime.cudaFree(x.ctypes.data) == (cudaError_t.cudaErrorInvalidValue,)
    assert runtime.cudaGetDevice() == (cudaError_t.cudaSuccess, 0)
    with pytest.raises(AttributeError, match="the fake runtime has no cudaStreamBeginCapture"):
        runtime.cudaStreamBeginCapture(0)


def test_faked_runtime_reads_and_writes_only_pinned_memory_later():
    runtime, kinds = faked_device.Runtime(), faked_device.Runtime.cudaMemcpyKind
    address, stream, pageable = runtime.cudaMalloc(4)[1], runtime.cudaStreamCreate()[1], np.int32([1])
    pinned = np.frombuffer((ctypes.c_int32 * 1).from_address(int(runtime.cudaMallocHost(4)[1])), np.int32)

    runtime.cudaMemcpyAsync(address, pageable, 4, kinds.cudaMemcpyHostToDevice, stream)
    pageable[:] = 2
    runtime.cudaMemcpyAsync(pinned, address, 4, kinds.cudaMemcpyDeviceToHost, stream)
    assert pinned == [0]
    runtime.cudaMemcpyAsync(pageable, address, 4, kinds.cudaMemcpyDeviceToHost, stream)

    assert pageable == pinned == [1]


def test_default_stream_of_a_faked_device_waits_for_streams_that_block():
    runtime, done = faked_device.Runtime(), []
    blocking, other = runtime.cudaStreamCreate()[1], runtime.cudaStreamCreateWithFlags(faked_device.NON_BLOCKING)[1]
    for stream in (other, blocking, 0):
        runtime.enqueue(stream, lambda stream=stream: done.append(stream))

    runtime.cudaStreamSynchronize(0)
    assert done == [blocking, 0]
    runtime.cudaStreamSynchronize(other)
    runtime.enqueue(0, lambda: done.append(1))
    runtime.cudaStreamSynchronize(blocking)
    assert done == [blocking, 0, other, 1]


def test_graph_of_a_faked_device_runs_on_the_present_stream(monkeypatch):
    torch = SimpleNamespace(cuda=SimpleNamespace(current_stream=lambda: SimpleNamespace(cuda_stream=5)))
    monkeypatch.setattr(torch_device, "ON_HOST", [torch])
    monkeypatch.setattr(torch_device, "install", lambda: None)
    faked_torch.install(monkeypatch, faked_device.Runtime())
    graph, streams = torch_streams.HostGraph(), []
    graph.begin(torch_streams.HostStream())
    CAPTURES[graph._stream].append(lambda stream: streams.append(stream) or True)
    graph.end()
    graph.replay()

    assert streams == [5]


@pytest.mark.slow
def test_files_of_a_suite_may_share_a_process(suite, tmp_path):
    (tmp_path / "project" / "tests" / "test_more.py").write_text("def test_more(): pass")
    together = replace(suite, is_together=True)

    assert tensorrt_code.run(together, tmp_path / "project") == {
        **tensorrt_code.run(suite, tmp_path / "project"),
        "test_more.py::test_more": "passed",
    }


@pytest.mark.slow
def test_files_that_a_suite_leaves_out_do_not_run(suite, tmp_path):
    (tmp_path / "project" / "tests" / "test_more.py").write_text("def test_more(): pass")
    shorter = replace(suite, without=["test_names.py"])

    assert tensorrt_code.run(shorter, tmp_path / "project") == {"test_more.py::test_more": "passed"}


@pytest.mark.slow
def test_outcomes_on_a_faked_device_have_a_record_of_their_own(suite, tmp_path, monkeypatch):
    (tmp_path / "project" / "tests" / "test_names.py").write_text(DEVICE_TEST)
    monkeypatch.setattr(tensorrt_code, "FAKED_RECORD", tmp_path / "faked.json")
    tensorrt_code.main([str(tmp_path), "--record", "--faked-device"])

    assert tensorrt_code.recorded() == {}
    assert tensorrt_code.recorded(FAKED) == {"made": {"passed": 1, "skipped": 0, "failed": []}}
