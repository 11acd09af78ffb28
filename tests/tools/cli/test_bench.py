"""``netloop bench``: tables and files of times."""

import json
import re

import pytest

from netloop.compiler.trial import Trial
from netloop.compiler.tuning import Tuned
from netloop.tools.peers import in_onnxruntime

FEW = "--duration 0 --warmUp 0 --inputs inputs.npz"


def test_table_has_the_percentiles(models, run):
    done = run(f"bench model.py {FEW} --iterations 7 --percentile 50,99.5")

    loop, head, titles, row = done.out.splitlines()
    assert (done.status, done.err, loop) == (0, "", "loop 'steps': 4 iterations")
    assert head == "7 calls; times in ms"
    assert titles.split() == ["median", "mean", "min", "max", "50%", "99.5%", "per", "second"]
    name, *numbers = row.split()
    median, mean, least, most, half, high, rate = map(float, numbers)
    assert name == "netloop"
    assert least <= median == half <= high <= most
    assert rate == pytest.approx(1000 / mean, rel=1e-2)


def test_other_runtimes_have_rows_and_ratios(models, run):
    pytest.importorskip("openvino")
    done = run(f"bench model.onnx {FEW} --iterations 3 --against onnxruntime,openvino")

    assert [line.split()[0] for line in done.out.splitlines()[3:6]] == ["netloop", "onnxruntime", "openvino"]
    assert [line.partition(":")[0] for line in done.out.splitlines()[6:]] == [
        "netloop / onnxruntime",
        "netloop / openvino",
    ]


def test_files_have_the_keys_of_trtexec(models, run):
    run(f"bench model.py {FEW} --iterations 4 --against onnxruntime --exportTimes t.json --exportProfile p.json")

    times = json.loads((models / "t.json").read_text())
    count, whole, *layers = json.loads((models / "p.json").read_text())
    assert [value["system"] for value in times] == ["netloop"] * 4 + ["onnxruntime"] * 4
    assert all(value["endComputeMs"] - value["startComputeMs"] == pytest.approx(value["computeMs"]) for value in times)
    assert count["count"] == 4
    assert count["loops"] == [{"name": "steps", "inside": [], "iterations": 4}]
    assert set(count["compilationMs"]) == {"passes", "load", "trace", "compile"}
    assert whole["timeMs"] == pytest.approx(sum(value["computeMs"] for value in times[:4]))
    assert set(whole) == {"name", "timeMs", "averageMs", "medianMs", "percentage"}
    assert sum(layer["percentage"] for layer in layers) == pytest.approx(100)
    assert all(set(layer) == {"name", "averageMs", "percentage"} for layer in layers)


def test_times_of_layers_are_printed(models, run):
    done = run(f"bench model.py {FEW} --iterations 1 --dumpProfile")

    head, *rows = done.out.splitlines()[4:]
    assert head.split() == ["ms", "%", "layer"]
    assert sum(float(row.split()[1]) for row in rows) == pytest.approx(100, abs=1)


@pytest.mark.parametrize("model", ["model.onnx", "model.py"])
def test_rate_of_several_callers(models, run, model):
    done = run(f"bench {model} {FEW} --iterations 1 --callers 3")

    assert re.fullmatch(r"3 callers: \S+ calls per second; median \S+ ms, 99% \S+ ms", done.out.splitlines()[-1])


def test_engine_is_saved_and_loaded(models, run):
    assert run(f"bench --onnx=model.onnx {FEW} --iterations 1 --saveEngine=saved.plan").status == 0
    assert run(f"bench --loadEngine=saved.plan {FEW} --iterations 1").status == 0


@pytest.mark.parametrize(
    "arguments", ["--percentile 101", "--percentile x", "--iterations -1", "--callers 0", "--against reference"]
)
def test_argument_that_is_refused(models, run, arguments):
    done = run(f"bench model.py {arguments}")

    assert done.status == 2
    assert f"error: argument {arguments.split()[0]}" in done.err


def test_runtime_that_fails_is_left_out(models, run, monkeypatch):
    def fail(self, inputs):
        raise RuntimeError("out of paper")

    monkeypatch.setattr(in_onnxruntime.OnnxRuntimePeer, "_run", fail)
    done = run(f"bench model.py {FEW} --against onnxruntime")

    assert done.status == 1
    assert done.err.startswith("NL613: onnxruntime fails: out of paper\n")
    assert [line.split()[0] for line in done.out.splitlines()[3:]] == ["netloop"]


def test_tuning_prints_what_it_timed_and_times_nothing_again(models, run, monkeypatch):
    trial = Trial("gate_fusion", "off", 0.001, 0.002, True)

    def search(self):
        known = self.decisions.known(["gate_fusion"])
        self.decisions.remember({"gate_fusion": "off"}, 0.001)
        return Tuned(self.make({}), {}, [] if known else [trial], True)

    monkeypatch.setattr("netloop.compiler.tuning.search.Search.run", search)
    first, second = (run(f"bench model.py {FEW} --tune --timingCacheFile times") for _ in range(2))

    assert first.out.splitlines()[0] == "timed gate_fusion off: 1 ms, before 2 ms, chosen"
    assert "timed" not in second.out
    assert (models / "times").is_file()


@pytest.mark.parametrize("model", ["--onnx=model.onnx", "--onnx model.onnx", "--loadEngine=model.plan"])
def test_model_is_an_argument_as_trtexec_has_it(models, run, model):
    done = run(f"bench {FEW} --iterations 1 {model}")

    assert (done.status, done.err) == (0, "")


def test_model_is_given_once(models, run):
    assert "argument --onnx/--loadEngine: not allowed with argument MODEL" in run("bench model.py --onnx a.onnx").err
    assert "one of the arguments MODEL --onnx/--loadEngine is required" in run("bench").err
