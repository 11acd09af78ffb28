"""Models as networks and engines."""

import numpy as np
import pytest

import netloop as trt
from netloop.tools.cli import models as module


def test_engine_of_a_plan_is_the_one_that_was_built(models, run):
    trt.compile(trt.plan.load("model.plan"), passes=["carry_layout"], max_trips=7).save("built.plan")
    network = module.load(models / "built.plan")
    engine = module.engine(models / "built.plan", network)

    assert (engine.passes, engine.max_trips) == ({"carry_layout"}, 7)
    assert run("serve built.plan --triton models --sizes 1").status == 0
    served = trt.load("models/built/1/model.plan")
    assert (served.passes, served.max_trips) == ({"carry_layout"}, 7)


@pytest.mark.parametrize("tuning", [{}, {"tune": {"x": np.float32([[1, 2, 3]])}}])
@pytest.mark.parametrize("no_tf32", [False, True])
def test_tuned_engine_of_a_plan_has_the_options_of_its_build(models, tuning, no_tf32):
    options = {"passes": ["carry_layout"], "max_trips": 7, "donate": ["x"], "interruptible": True}
    trt.compile(trt.plan.load("model.plan"), **options).save("built.plan")

    engine = module.engine(models / "built.plan", module.load(models / "built.plan"), no_tf32, **tuning)

    assert (engine.passes, engine.max_trips, engine.donated) == ({"carry_layout"}, 7, {"x"})
    assert engine.interruptible
    assert engine.build_options.tf32 is not no_tf32


def test_plan_without_tf32_stays_without_it(models):
    trt.compile(trt.plan.load("model.plan"), tf32=False).save("built.plan")
    tuning = {"tune": {"x": np.float32([[1, 2, 3]])}}

    for options in ({}, tuning):
        engine = module.engine(models / "built.plan", module.load(models / "built.plan"), **options)
        assert not engine.build_options.tf32


def test_passes_of_a_plan_are_those_that_are_inspected(models, run):
    trt.compile(trt.plan.load("model.plan"), passes=[]).save("plain.plan")

    assert "no pass changed anything" in run("inspect plain.plan --passes").out
    assert "what passes changed:" in run("inspect model.plan --passes").out


def test_engine_of_another_model_is_compiled(models):
    assert module.engine(models / "model.py", module.load(models / "model.py")).max_trips is None
