"""Comparison, timing and reports of benchmark results."""

import time
from itertools import count

import numpy as np
import pytest

from benchmarks import table
from benchmarks.runner import Plan, Result, Runner, Timing, difference
from benchmarks.systems import SYSTEMS, InJax
from benchmarks.worker import Bench, WorkerError
from benchmarks.workload import Workload
from benchmarks.workloads.running_sum import RunningSum


def timing(milliseconds):
    return Timing.of([milliseconds * 1e-3] * 3)


def result(**floors):
    timings = {
        "netloop": timing(2),
        "expert": timing(1),
        "torch": timing(4),
        "openvino op": timing(5),
        "numba": timing(1),
    }
    return Result("W0 nothing", 1, floors, timings=timings)


def test_timing_has_the_median_and_the_quartiles_in_milliseconds():
    assert Timing.of([0.001, 0.002, 0.003, 0.004, 0.005]) == Timing(3, 2, 4, 5)


def test_best_peer_is_another_system_and_not_the_limit():
    assert result().best_peer() == "torch"


def test_ratio_is_of_the_medians():
    assert result().ratio("torch") == 0.5


def test_ratio_to_what_was_not_timed_is_unknown():
    assert result().ratio("onnxruntime op") is None


@pytest.mark.parametrize(
    ("found", "what"),
    [
        ({"y": np.ones(2)}, None),
        ({"y": np.array([1, 1.00001])}, None),
        ({"y": np.array([1, 1.1])}, "'y' is off by 0.1"),
        ({"y": np.array([1, np.nan])}, "'y' is off by nan"),
        ({"y": np.ones(3)}, "'y' has shape (3,) instead of (2,)"),
        ({"z": np.ones(2)}, "there is no 'y'"),
    ],
)
def test_difference_is_reported(found, what):
    assert difference(found, {"y": np.ones(2)}, 1e-4) == what


def test_summary_has_each_ratio_with_its_floor():
    row = table.summary(result(expert=1.05, peer=0.9, numba=3.0))

    assert row == ["W0 nothing", "1", "2", "**2.00**", "1.05", "0.50", "0.9", "torch; 3 of numba: 2.00"]


def test_results_come_back_from_a_file(tmp_path):
    one = result(expert=1.05)
    one.failures["torch"] = "no"
    table.save([one], tmp_path / "results.json")

    assert table.load(tmp_path / "results.json") == [one]


def test_newer_results_take_the_places_of_older_ones():
    old, new = result(), result(peer=1)
    other = Result("W1 other", 1, {})

    assert table.joined([old, other], [new], ["W1 other", "W0 nothing"]) == [other, new]


def test_what_failed_is_in_the_table_with_its_reason():
    one = Result("W0 nothing", 1, {}, failures={"torch": "RuntimeError: a | b\nmore"})

    assert list(table.detail(one)) == [["W0 nothing", "1", "torch", "-", "RuntimeError: a / b", "0", "-"]]


def test_summary_has_what_netloop_takes_beyond_a_variant():
    one = result()
    one.beyond = {"": 3.0, "expert": 0.5, "bare": 1.0}

    assert table.summary(one)[-1] == "torch; 3 ms: 2; 0.5 ms beyond expert: **1**; 1 ms beyond bare: -"


def test_effect_of_a_pass_is_the_time_without_it_by_the_time_with_all():
    timings = {"netloop": timing(2), "without sharing": timing(3), "without any": timing(8)}
    one = Result("W0 nothing: passes", 1, {}, timings=timings)

    assert list(table.effects(one)) == [
        ["W0 nothing", "1", "sharing", "3", "2", "1.50"],
        ["W0 nothing", "1", "all of them", "8", "2", "4.00"],
    ]


def test_page_has_passes_apart_from_workloads():
    one, other = result(), Result("W0 nothing: passes", 1, {}, timings={"netloop": timing(2), "without any": timing(8)})

    text = table.page([one, other])

    assert text.index("| W0 nothing | 1 | 2 |") < text.index("| all of them |") < text.index("| openvino op |")


def test_page_keeps_the_results_of_other_machines(monkeypatch):
    pages = [""]
    for name, ms in [("one, 2 cores", 2), ("other, 4 cores", 7), ("one, 2 cores", 3)]:
        monkeypatch.setattr(table, "machine", lambda name=name: name)
        one = Result("W0 nothing", 2, {}, timings={"netloop": timing(ms)})
        pages.append(table.page([one], pages[-1]))

    first, second = pages[-1].split("\n## ")[1:]
    assert first.startswith("one, 2 cores\n")
    assert second.startswith("other, 4 cores\n")
    assert "| W0 nothing | 2 | 3 |" in first
    assert "| W0 nothing | 2 | 2 |" not in first
    assert f"\n## {second}" == pages[2][pages[2].index("\n## other") :]


class Wrong(Workload):
    """A workload with three variants: the sum, an error, and a wrong result."""

    name = "W0 wrong"

    def inputs(self):
        return {"x": np.ones(2, np.float32)}

    def parts(self):
        def fail():
            raise ValueError("no")

        return {
            "right": lambda: lambda inputs: {"y": inputs["x"]},
            "failing": fail,
            "wrong": lambda: lambda inputs: {"y": inputs["x"] + 1},
        }


class Slowing(Workload):
    """A workload whose first calls take longer, as those of a network do that compiles in one of them."""

    name = "W0 slowing"
    first_calls = 3

    def inputs(self):
        return {"x": np.ones(2, np.float32)}

    def parts(self):
        calls = count(1)

        def call(inputs):
            time.sleep(0.05 if next(calls) <= 3 else 0)
            return inputs

        return {"slow at first": lambda: call}


def test_time_of_a_variant_is_that_after_its_first_calls():
    _, seconds = Bench(InJax()).prepare(Slowing(), "slow at first")

    assert seconds < 0.05


def test_variant_that_differs_is_timed_where_products_are_rounded(monkeypatch):
    class Here:
        """A worker in this process."""

        alive = True

        def __init__(self, system, limit):
            self.bench = Bench(system())

        def ask(self, method, *arguments):
            try:
                return getattr(self.bench, method)(*arguments)
            except Exception as error:
                raise WorkerError(f"{type(error).__name__}: {error}") from error

    monkeypatch.setattr("benchmarks.runner.Worker", Here)
    found = Runner(Plan(threads=1, repetitions=3, seconds=0.1, places=1, times_what_differs=True)).run(Wrong())

    assert [*found.timings] == ["right", "wrong"]
    assert found.failures == {"failing": "ValueError: no", "wrong": "differs from right: 'y' is off by 1"}


def test_file_of_results_is_the_old_one_where_the_new_one_cannot_be_written(tmp_path, monkeypatch):
    table.save([result()], tmp_path / "results.json")
    monkeypatch.setattr("os.replace", None)
    with pytest.raises(TypeError):
        table.save([result(), result(peer=1)], tmp_path / "results.json")

    assert table.load(tmp_path / "results.json") == [result()]


@pytest.mark.slow
def test_processes_time_variants_that_agree_and_report_the_others():
    runner = Runner(Plan(threads=1, repetitions=6))
    try:
        found = runner.run(Wrong())
    finally:
        runner.close()

    assert {name: other.samples for name, other in found.timings.items()} == {"right": 6}
    assert found.failures == {"failing": "ValueError: no", "wrong": "differs from right: 'y' is off by 1"}


def test_file_of_something_else_is_refused(tmp_path):
    path = tmp_path / "results.json"
    path.write_text('[{"name": 1}]')

    with pytest.raises(SystemExit, match="no results of benchmarks"):
        table.load(path)


def test_systems_are_left_alone_that_have_nothing_to_solve():
    assert [system.package for system in SYSTEMS if system.solves(Wrong())] == ["jax"]
    assert [system for system in SYSTEMS if not system.solves(RunningSum())] == []
