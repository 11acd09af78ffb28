"""Passes change how a network is computed, and not what."""

import json
import re
from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from netloop.compiler.passes import PASSES
from netloop.compiler.passes.rewriter import Rewriter
from tests.project import passes
from tests.support.cells import (
    attention,
    by_number,
    embedded,
    gru,
    heads,
    kept,
    lstm,
    noisy,
    read_once_more,
    remembered,
    selective,
    written,
)
from tests.support.devices import on_cpu
from tests.support.pass_checks import REWRITES, assert_close, improved, inputs_of, wiring

pytestmark = pytest.mark.usefixtures("low_thresholds")


NETWORKS = {
    "lstm": lstm,
    "lstm of a batch": lambda: lstm(batch=3),
    "lstm of a larger batch": lambda: lstm(batch=8),
    "gru of a larger batch": lambda: gru(batch=9),
    "gru": gru,
    "gru whose input is read last": lambda: gru(inputs=2),
    "heads": heads,
    "at a counter": by_number,
    "at a counter, with a COUNT below 0": lambda: by_number(trips=-1),
    "read once more": read_once_more,
    "read once more without an iteration": lambda: read_once_more(trips=-1),
    "written": written,
    "written in part": lambda: written(rows=4),
    "written from the second row on": lambda: written(rows=4, start=1),
    "written from the last row on": lambda: written(start=-1),
    "written and read": lambda: written(reads=True),
    "kept": kept,
    "noisy": noisy,
    "attention": attention,
    "selective": selective,
    "selective by einsum": lambda: selective(by_einsum=True),
    "selective without an iteration": lambda: selective(trips=0),
    "remembered": remembered,
    "embedded": embedded,
    "one embedded row": lambda: embedded(None),
    "no iterations": lambda: lstm(trips=0),
    "one iteration": lambda: gru(trips=1),
}
each_network = pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS)


@cache
def meaning(make):
    """The inputs of a network and its outputs by the reference."""
    network = make()
    inputs = inputs_of(network)
    return inputs, trt.evaluate(network, inputs)


@each_network
def test_reference_stays_the_same(make):
    """And each pass says whether it changed the network."""
    inputs, meant = meaning(make)

    for name in REWRITES:
        network = make()
        rewriter = Rewriter(network, network.types)
        before = wiring(rewriter.network)
        try:
            is_changed = PASSES[name].rewrite(rewriter)
            assert is_changed == (wiring(rewriter.network) != before)
            if is_changed:
                assert_close(trt.evaluate(improved(make(), [name]).network, inputs), meant)
        except Exception as error:
            error.add_note(f"by the pass {name}")
            raise


@each_network
def test_reference_stays_the_same_by_all_passes_together(make):
    inputs, meant = meaning(make)

    assert_close(trt.evaluate(improved(make(), REWRITES).network, inputs), meant)


def has_effect(name, network):
    """Whether an engine with a pass may differ from one without passes: most leave most networks as they are."""
    return name not in REWRITES or PASSES[name].rewrite(Rewriter(network, network.types))


@each_network
def test_engine_gives_what_the_reference_gives(make):
    network = make()
    inputs, meant = meaning(make)

    for names in ([], None):
        assert_close(trt.compile(network, passes=names)(inputs), meant)


@pytest.mark.slow
@each_network
def test_engine_with_one_pass_gives_what_the_reference_gives(make):
    network = make()
    inputs, meant = meaning(make)

    for name in PASSES:
        if has_effect(name, network):
            try:
                assert_close(trt.compile(network, passes=[name])(inputs), meant)
            except Exception as error:
                error.add_note(f"by the pass {name}")
                raise


# ---------------------------------------------------------------------------- the choice of passes


@pytest.mark.parametrize("name", PASSES)
def test_pass_comes_after_those_that_it_must_follow(name):
    order = list(PASSES)

    assert all(order.index(word) < order.index(name) for word in PASSES[name].after)


def test_page_has_a_section_for_each_pass():
    assert passes.PAGE.read_text(encoding="utf-8") == passes.page(), "python -m tests.project.passes"


def test_each_pass_has_a_measured_gain():
    measured = passes.NOTES.read_text(encoding="utf-8")

    assert re.findall(r"^\| `(\w+)` \| [\d.; ]+ \| ", measured, re.MULTILINE) == list(PASSES)


def test_identifiers_of_forms_stay_as_plans_and_timing_caches_have_them():
    forms = {form for pass_ in PASSES.values() for form in pass_.alternatives}

    assert forms >= {
        "off",
        "gates_apart",
        "right_operands",
        *(f"up_to_{size}m" for size in (1, 4)),
        *("chunks_512k", "chunks_8m"),
        *(f"unroll_{factor}" for factor in (2, 4, 8, 16, 32)),
    }


def test_unknown_pass_is_refused_with_the_nearest_name():
    with pytest.raises(ValueError, match="there is no pass 'horizontal_fusio'; did you mean 'horizontal_fusion'"):
        trt.compile(lstm(), passes=["horizontal_fusio"])


def test_level_of_the_builder_chooses_passes():
    builder = trt.Builder(trt.Logger())
    config = builder.create_builder_config()
    config.builder_optimization_level = 0
    plan = builder.build_serialized_network(lstm(), config)

    assert trt.Runtime(trt.Logger()).deserialize_cuda_engine(plan).passes == frozenset()
    assert trt.compile(lstm()).passes == frozenset(PASSES)


def test_pass_for_cpus_is_used_on_cpus_only(monkeypatch):
    def used():
        return {note.by for note in trt.compile(lstm()).notes}

    monkeypatch.setattr("jax.default_backend", lambda: "cpu")
    assert {"matmul_partitioning", "horizontal_fusion"} < used()
    monkeypatch.setattr("jax.default_backend", lambda: "tpu")
    assert "matmul_partitioning" not in used()


def test_inspector_reports_what_passes_did():
    engine = trt.compile(lstm())
    report = json.loads(engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON))

    assert [f"{value['Name']}: {value['Done']}" for value in report["Passes"]] == list(map(str, engine.notes))
    assert {value["Name"] for value in report["Passes"]} == {
        "horizontal_fusion",
        *(["matmul_partitioning"] if on_cpu() else []),
        "gate_fusion",
        "weight_folding",
        "loop_fission",
    }
    assert all(value["Rule"] for value in report["Passes"])
    assert len(report["Loops"][0]["BatchedLayers"]) == 1


def test_profile_has_every_phase():
    network = lstm()
    phases = trt.compile(network).profile(inputs_of(network))

    assert list(phases) == ["passes", "load", "trace", "compile", "call"]
    assert all(phase > 0 for phase in phases.values())


def test_donated_input_is_consumed_and_the_result_is_the_same():
    network = kept()
    x = jnp.asarray(inputs_of(network)["x"])
    wanted = np.asarray(trt.compile(network)({"x": x})["a"])
    got = trt.compile(network, donate=["x"])({"x": x})["a"]

    assert x.is_deleted()
    assert np.asarray(got).tolist() == wanted.tolist()


@pytest.mark.parametrize(("donate", "error"), [(["y"], ValueError), ("x", TypeError), ([1], TypeError)])
def test_only_inputs_can_be_donated(donate, error):
    with pytest.raises(error, match="donate"):
        trt.compile(kept(), donate=donate)
