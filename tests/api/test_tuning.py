"""A tuned engine has the forms that were fastest, tells what was timed, and remembers it."""

import json
import pickle

import numpy as np
import pytest

import netloop as trt
from netloop.compiler.passes import OFF
from netloop.compiler.tuning import TimedPair
from tests.support.builds import config_with_profile, doubling_network
from tests.support.cells import lstm
from tests.support.log import Log
from tests.support.networks import combine, mark
from tests.support.pass_checks import inputs_of

FORMS = {"gate_fusion": OFF}
"""The forms that are fastest on the machine of these tests."""


class Watch:
    """Stands for the stopwatch: engines without gate fusion take half the time."""

    compared = 0

    def __init__(self, inputs, calls):
        self.inputs = inputs

    def __call__(self, candidate, incumbent):
        Watch.compared += 1
        times = [0.001 if value.recipe.forms.get("gate_fusion") == OFF else 0.002 for value in (candidate, incumbent)]
        return TimedPair(*times, [times[0] / times[1]] * 7)


@pytest.fixture(autouse=True)
def watch(monkeypatch):
    monkeypatch.setattr("netloop.compiler.tuning.candidates.Stopwatch", Watch)
    Watch.compared = 0


def test_engine_has_the_fastest_forms_and_computes_the_same():
    network = lstm()
    engine, rule = trt.compile(network, tune=True), trt.compile(network)
    inputs = inputs_of(network)

    assert engine.forms == FORMS
    assert "gate_fusion" not in engine.passes
    for name, expected in rule(inputs).items():
        np.testing.assert_allclose(engine(inputs)[name], expected, rtol=1e-5, atol=1e-6)


def test_default_is_the_rule_and_times_nothing():
    engine = trt.compile(lstm())

    assert (engine.forms, engine.trials, Watch.compared) == ({}, (), 0)


def test_notes_and_inspector_tell_what_was_timed():
    engine = trt.compile(lstm(), tune=True)
    report = json.loads(engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON))
    (tactic,) = [value for value in report["Tactics"] if value["Name"] == "gate_fusion" and value["Chosen"]]

    assert "tuning: gate_fusion off: 1 ms, before 2 ms, chosen" in map(str, engine.notes)
    assert (tactic["Form"], tactic["Milliseconds"], tactic["MillisecondsBefore"]) == ("off", 1.0, 2.0)
    assert {value["Name"] for value in report["Passes"]} <= {*trt.PASSES}


def test_file_of_a_timing_cache_makes_the_second_build_time_nothing(tmp_path):
    path = tmp_path / "times"
    trt.compile(lstm(), tune=True, timing_cache=path)
    timed = Watch.compared
    again = [trt.compile(lstm(), timing_cache=path), trt.compile(lstm(), tune=True, timing_cache=str(path))]

    assert timed > 0
    assert Watch.compared == timed
    assert [engine.forms for engine in again] == [FORMS, FORMS]
    assert "tuning: gate_fusion off: measured before" in map(str, again[0].notes)


def test_cache_that_knows_nothing_leaves_the_rules():
    cache = trt.Builder(Log()).create_builder_config().create_timing_cache(b"")

    assert trt.compile(lstm(), timing_cache=cache).forms == {}
    assert (cache.queryKeys(), Watch.compared) == ([], 0)


def test_entry_that_a_script_edits_decides():
    cache = trt.Builder(Log()).create_builder_config().create_timing_cache(b"")
    trt.compile(lstm(), tune=True, timing_cache=cache)
    for key in cache.queryKeys():
        cache.update(key, trt.TimingCacheValue(0, 1.0))

    assert trt.compile(lstm(), timing_cache=cache).forms == {}


def test_file_of_another_kind_is_refused_and_kept(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"a model")

    with pytest.raises(trt.FileFormatError, match="NL717"):
        trt.compile(lstm(), tune=True, timing_cache=path)
    assert path.read_bytes() == b"a model"


def test_truncated_timing_cache_is_refused(tmp_path):
    path = tmp_path / "times"
    trt.compile(lstm(), tune=True, timing_cache=path)
    path.write_bytes(path.read_bytes()[:-9])

    with pytest.raises(trt.FileFormatError, match="is damaged"):
        trt.compile(lstm(), timing_cache=path)


def test_entries_that_others_add_meanwhile_are_kept(tmp_path, monkeypatch):
    path = tmp_path / "times"
    compare = Watch.__call__

    def meanwhile(self, candidate, incumbent):
        monkeypatch.setattr(Watch, "__call__", compare)
        trt.compile(lstm(trips=7), tune=True, timing_cache=path)
        return compare(self, candidate, incumbent)

    monkeypatch.setattr(Watch, "__call__", meanwhile)
    trt.compile(lstm(), tune=True, timing_cache=path)

    assert [trt.compile(lstm(trips=number), timing_cache=path).forms for number in (5, 7)] == [FORMS, FORMS]


@pytest.mark.parametrize(("name", "value"), [("tune", 3), ("timing_cache", 3), ("tuning_seconds", "1")])
def test_argument_of_the_wrong_type_is_refused(name, value):
    with pytest.raises(TypeError, match=name):
        trt.compile(lstm(), **{"tune": True, name: value})


@pytest.mark.parametrize("tune", [False, True])
@pytest.mark.parametrize("value", [-1, float("nan"), 1e10])
def test_seconds_for_tuning_are_checked_whether_it_tunes_or_not(tune, value):
    with pytest.raises(ValueError, match=r"tuning_seconds must be at least 0 and at most .* or inf for no limit"):
        trt.compile(lstm(), tune=tune, tuning_seconds=value)


def test_open_shapes_need_the_inputs_of_a_call():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (-1, 3))
    mark(network, y=combine(network, x, x))

    with pytest.raises(trt.InputError, match="NL624"):
        trt.compile(network, tune=True)
    engine = trt.compile(network, tune={"x": np.ones((2, 3), np.float32)})
    assert engine.program_count == 1


def test_given_inputs_that_do_not_fit_are_refused():
    with pytest.raises(trt.InputError, match="missing"):
        trt.compile(lstm(), tune={})


# ---------------------------------------------------------------------------- plans


def test_plan_has_the_forms():
    engine = trt.compile(lstm(), tune=True)
    again = pickle.loads(pickle.dumps(engine))

    assert again.forms == FORMS
    assert again.build_options == engine.build_options


def test_plan_of_another_machine_is_told_and_follows_the_rules(monkeypatch):
    plan = trt.compile(lstm(), tune=True).serialize()
    monkeypatch.setattr("netloop.api.build_options.this_machine", lambda device: "another")
    engine = trt.Runtime(log := Log()).deserialize_cuda_engine(plan)

    assert engine.forms == {}
    assert "gate_fusion" in engine.passes
    assert any("tuned on another machine" in str(note) for note in engine.notes)
    assert any("tuned on another machine" in said for _, said in log.lines)


def test_plan_of_an_engine_of_rules_is_as_before():
    assert b"tuned_on" not in bytes(trt.compile(lstm()).serialize())


# ---------------------------------------------------------------------------- builds


def built(level, flags=(), cache=None, network=None, log=None, **settings):
    builder = trt.Builder(log or Log())
    config = builder.create_builder_config()
    config.builder_optimization_level = level
    for flag in flags:
        config.set_flag(flag)
    if cache is not None:
        assert config.set_timing_cache(cache, ignore_mismatch=False)
    for name, value in settings.items():
        setattr(config, name, value)
    return builder.build_engine_with_config(network or lstm(), config)


def empty():
    return trt.Builder(Log()).create_builder_config().create_timing_cache(b"")


@pytest.mark.parametrize(("level", "forms"), [(0, {}), (2, {}), (3, {}), (4, FORMS), (5, FORMS)])
def test_levels_4_and_5_measure(level, forms):
    assert built(level).forms == forms
    assert bool(Watch.compared) == bool(forms)


def test_level_4_measures_fewer_forms_than_level_5():
    built(4)
    at_4 = Watch.compared
    built(5)

    assert 0 < at_4 < Watch.compared - at_4


def test_level_3_uses_what_the_cache_knows():
    built(5, cache=(cache := empty()))
    timed = Watch.compared

    assert built(3, cache=cache).forms == FORMS
    assert built(2, cache=cache).forms == {}
    assert built(3, [trt.BuilderFlag.DISABLE_TIMING_CACHE], cache).forms == {}
    assert Watch.compared == timed


def test_disabled_cache_is_not_filled():
    built(5, [trt.BuilderFlag.DISABLE_TIMING_CACHE], cache := empty())

    assert cache.queryKeys() == []


def test_miss_is_an_error_if_the_flag_says_so():
    log, flag = Log(), trt.BuilderFlag.ERROR_ON_TIMING_CACHE_MISS

    assert built(5, [flag], empty(), log=log) is None
    assert log.errors()[0].startswith("NL625")
    built(5, cache=(cache := empty()))
    timed = Watch.compared
    assert built(5, [flag], cache).forms == FORMS
    assert Watch.compared == timed


def test_trials_are_logged():
    built(5, log=(log := Log()))

    assert "tuning: gate_fusion off: 1 ms, before 2 ms, chosen" in log.infos()


def test_time_of_a_build_is_limited():
    assert built(5, tuning_seconds=0.0).forms == {}
    assert Watch.compared == 0


def test_open_shapes_are_those_of_the_profile():
    builder = trt.Builder(Log())
    config = config_with_profile(builder)
    config.builder_optimization_level = 5
    engine = builder.build_engine_with_config(doubling_network(builder), config)

    assert engine.program_count == 1
    assert engine({"x": np.ones((3, 3), np.float32)})["y"].shape == (3, 3)


def test_build_whose_inputs_cannot_be_made_up_follows_the_rules():
    builder = trt.Builder(log := Log())
    config = builder.create_builder_config()
    config.builder_optimization_level = 5
    engine = builder.build_engine_with_config(doubling_network(builder), config)

    assert engine.forms == {}
    assert any(said.startswith("rules decide") for _, said in log.lines)


class Monitor(trt.IProgressMonitor):
    """Cancels when a form of gate fusion is timed."""

    def __init__(self):
        super().__init__()
        self.phases = []

    def phase_start(self, phase_name, parent_phase, num_steps):
        self.phases.append((phase_name, parent_phase))

    def step_complete(self, phase_name, step):
        return phase_name != "Time gate_fusion off"


def test_progress_monitor_sees_each_form_and_may_cancel():
    monitor = Monitor()

    with pytest.raises(trt.Cancelled):
        trt.compile(lstm(), tune=True, progress=monitor)
    assert ("Time gate_fusion off", "Compile") in monitor.phases
    assert built(5, progress_monitor=Monitor()) is None


def test_interrupt_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    def interrupted(self, candidate, incumbent):
        raise KeyboardInterrupt

    monkeypatch.setattr(Watch, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        trt.compile(lstm(), tune=True, timing_cache=tmp_path / "times")
    assert list(tmp_path.iterdir()) == []
