"""Every workload of the benchmarks, at a small size: all variants give the same results."""

from functools import cache

import pytest

import netloop as trt
from benchmarks.__main__ import ready
from benchmarks.ablation import Ablation
from benchmarks.gpu_systems import JaxOnGpu, OnnxRuntimeOnGpu, TorchCompiled, TorchOnGpu
from benchmarks.runner import OURS, difference
from benchmarks.systems import SYSTEMS, InJax, OnnxRuntime
from benchmarks.workloads import WORKLOADS, by_importance
from benchmarks.workloads.build import Build, Calls, Load
from benchmarks.workloads.char_rnn import Generate, Steps
from benchmarks.workloads.conditional import Cheap, Dear
from benchmarks.workloads.decoder import Decoder
from benchmarks.workloads.imported import Imported, Written
from benchmarks.workloads.models import Exported
from benchmarks.workloads.nested import Nested
from benchmarks.workloads.rnn import Gru, Lstm
from benchmarks.workloads.running_sum import RunningSum
from benchmarks.workloads.search import Search
from benchmarks.workloads.selective_scan import SelectiveScan
from benchmarks.workloads.tiny import Collatz, EightFloats, Newton

SMALL = [
    Imported(size=8, length=5),
    Written(width=4, length=5),
    Lstm(hidden=8, length=32),
    Lstm(hidden=8, batch=2, layers=2, length=5),
    Lstm(hidden=8, bidirectional=True, length=5),
    Gru(hidden=8, batch=16, length=5),
    Generate(hidden=8, length=6),
    Steps(hidden=8, length=6),
    Newton(trips=20, stacked=True),
    EightFloats(trips=20),
    Collatz(trips=50),
    RunningSum(20, 8),
    Nested(6),
    Search(4, 50, 8, 16),
    Cheap(40),
    Dear(40, 8),
    SelectiveScan(2, 4, 3, 10),
    Decoder(16, 2, 2, 40, 24),
]
PARTS = [Build, Calls, Load]
MODELS = [workload for workload in WORKLOADS if isinstance(workload, Exported)]
NOT_READ = {("Nested", "openvino scan"), ("Decoder", "openvino growing loop")}
"""Models that OpenVINO does not read: a Scan in a Scan, and states of a Loop that grow."""


QUICK = [InJax, OnnxRuntime]
LONG = [pytest.param(system, marks=pytest.mark.slow) for system in SYSTEMS if system not in QUICK]


def solve(system, workload, variant):
    return system.results(system.make(workload, variant)())


@cache
def expected(workload):
    return solve(InJax(), workload, OURS)


@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
@pytest.mark.parametrize("system", QUICK + LONG, ids=lambda value: value.package)
@pytest.mark.parametrize("workload", SMALL, ids=lambda value: value.name)
def test_results_are_those_of_netloop(workload, system):
    pytest.importorskip(system.package)
    found = system()

    for variant in found.variants(workload):
        if variant != OURS and (type(workload).__name__, variant) not in NOT_READ:
            found_difference = difference(solve(found, workload, variant), expected(workload), workload.tolerance)
            assert found_difference is None, variant


@pytest.mark.parametrize("workload", SMALL, ids=lambda value: value.name)
def test_experts_for_gpus_agree(workload):
    if "expert for GPUs" not in JaxOnGpu().variants(workload):
        assert workload.gpu_expert() is None
        return
    solved = solve(JaxOnGpu(), workload, "expert for GPUs")

    assert difference(solved, expected(workload), workload.tolerance) is None


@pytest.mark.parametrize("workload", [RunningSum(20, 8), Steps(hidden=8, length=6)], ids=lambda value: value.name)
def test_onnxruntime_computes_with_arrays_on_the_device(workload, monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    system = OnnxRuntimeOnGpu()

    for variant in system.variants(workload):
        assert difference(solve(system, workload, variant), expected(workload), workload.tolerance) is None


def test_onnxruntime_without_cuda_says_so(monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cuda,cpu")
    with pytest.raises(RuntimeError, match="has no CUDAExecutionProvider; onnxruntime-gpu has"):
        OnnxRuntimeOnGpu().variants(RunningSum(20, 8))["onnxruntime op"]()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [TorchOnGpu, TorchCompiled])
@pytest.mark.parametrize("workload", [RunningSum(20, 8), Lstm(hidden=8, length=5)], ids=lambda value: value.name)
def test_torch_computes_on_the_device(workload, kind, monkeypatch):
    pytest.importorskip(kind.package)
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")

    assert difference(solve(kind(), workload, kind.variant), expected(workload), workload.tolerance) is None


def test_each_workload_on_a_gpu_has_its_place_in_the_order():
    names = [workload.name for workload in WORKLOADS if not workload.name.startswith("B")]

    assert sorted(names) == sorted(workload.name for workload in by_importance())
    assert by_importance()[0].name == "W1 LSTM 512 batch 1"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:NL749")
@pytest.mark.parametrize("workload", MODELS, ids=lambda value: value.name)
def test_exported_models_agree(workload):
    if workload.missing:
        pytest.skip(workload.missing)
    variants = {OnnxRuntime(): "onnxruntime model"} | ({InJax(): "expert"} if workload.in_jax else {})

    for system, variant in variants.items():
        assert difference(solve(system, workload, variant), expected(workload), workload.tolerance) is None, variant


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:NL749")
@pytest.mark.parametrize("workload", MODELS, ids=lambda value: value.name)
def test_exported_models_measure_each_pass_that_changes_them(workload):
    if workload.missing:
        pytest.skip(workload.missing)
    engine = trt.compile(workload.network())
    engine(workload.inputs())

    assert {note.partition(":")[0] for note in engine.notes} == set(workload.passes)


@pytest.mark.parametrize("kind", [lambda value: value, Ablation], ids=["compared", "ablated"])
def test_model_that_was_not_made_is_left_out(kind, capsys):
    workload = kind(Exported(0, "nothing", "nothing"))

    assert ready([workload]) == []
    assert f"{workload.name} is left out: python -m benchmarks.exported makes its model" in capsys.readouterr().err


def test_input_products_in_chunks_change_nothing():
    workload = Lstm(hidden=128, batch=16, length=160)

    assert difference(solve(InJax(), workload, "expert"), expected(workload), workload.tolerance) is None


@pytest.mark.parametrize("workload", [Build(100), Build(depth=2)], ids=lambda value: value.name)
def test_parts_of_a_build_have_no_output_but_the_number_of_findings(workload):
    variants = InJax().variants(workload)

    assert {variant: solve(InJax(), workload, variant) for variant in variants} == {
        variant: {"findings": 0} if variant == "check" else {} for variant in variants
    }


def test_engine_and_bare_program_give_the_same():
    workload = Calls(2)

    assert difference(solve(InJax(), workload, "bare"), expected(workload), workload.tolerance) is None


def test_small_ones_are_of_all_kinds():
    assert {type(workload) for workload in WORKLOADS} == {type(imported) for imported in SMALL} | {*PARTS, Exported}


def test_names_are_different():
    names = [workload.name for workload in WORKLOADS]

    assert len(set(names)) == len(names)


def test_goal_of_a_model_is_the_floor_of_its_ratio_to_the_best_peer():
    assert Exported(0, "nothing", "nothing", goal=2).floors == {"peer": 2}
    assert Exported(0, "nothing", "nothing").floors == {}


def test_workloads_measure_passes_that_exist():
    assert {name for workload in WORKLOADS for name in workload.passes} <= set(trt.PASSES)


def test_passes_change_no_result():
    ablation = Ablation(Generate(hidden=8, length=6))
    variants = InJax().variants(ablation)

    assert list(variants) == [OURS, *(f"without {pass_}" for pass_ in Generate.passes), "without any"]
    assert difference(solve(InJax(), ablation, "without any"), expected(ablation.workload), ablation.tolerance) is None
