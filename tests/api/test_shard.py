"""Engines of a mesh are tuned as others."""

import jax
import numpy as np
import pytest

import netloop as trt
from netloop.compiler.passes import OFF
from tests.api.test_tuning import FORMS, Watch
from tests.support.cells import lstm
from tests.support.pass_checks import inputs_of


@pytest.fixture(autouse=True)
def watch(monkeypatch):
    monkeypatch.setattr("netloop.compiler.tuning.candidates.Stopwatch", Watch)
    Watch.compared = 0


def mesh():
    return jax.make_mesh((1,), ("rows",))


def rows(network, count):
    return {name: np.repeat(np.asarray(array)[None], count, 0) for name, array in inputs_of(network).items()}


def test_entries_are_of_one_number_of_rows_and_of_one_mesh(tmp_path):
    network, path = lstm(), tmp_path / "times"
    trt.shard(network, mesh(), tune=rows(network, 2), timing_cache=path)
    timed = Watch.compared
    again = trt.shard(network, mesh(), tune=rows(network, 2), timing_cache=path, tuning_seconds=0)
    other_rows = trt.shard(network, mesh(), tune=rows(network, 3), timing_cache=path, tuning_seconds=0)
    other_mesh = jax.make_mesh((1, 1), ("rows", "columns"))
    other = trt.shard(network, other_mesh, tune=rows(network, 2), timing_cache=path, tuning_seconds=0)

    assert Watch.compared == timed > 0
    assert [engine.forms for engine in (again, other_rows, other)] == [FORMS, {}, {}]


def test_passes_that_stay_out_are_not_timed(tmp_path):
    network = lstm()
    engine = trt.shard(network, mesh(), passes=["gate_fusion"], tune=rows(network, 2))

    assert {trial.by for trial in engine.trials} == {"gate_fusion", "all"}
    assert (engine.forms, engine.passes) == ({"gate_fusion": OFF}, set())


def test_inputs_that_do_not_fit_are_refused():
    with pytest.raises(trt.InputError, match="missing"):
        trt.shard(lstm(), mesh(), tune={})


def test_processes_do_not_choose_for_themselves(monkeypatch):
    devices = mesh()
    monkeypatch.setattr(jax, "process_index", lambda: 1)

    with pytest.raises(ValueError, match="this process"):
        trt.shard(lstm(), devices, tune=rows(lstm(), 2))
