"""Models as networks and engines."""

import netloop as trt
from netloop.tools.cli import models as module


def test_engine_of_a_plan_is_the_one_that_was_built(models, run):
    trt.compile(trt.plan.load("model.plan"), passes=["carry_layout"], max_trips=7).save("built.plan")
    network = module.load(models / "built.plan")
    engine = module.engine(models / "built.plan", network)

    assert (engine.passes, engine.max_trips) == ({"carry_layout"}, 7)
    assert run("serve built.plan --write served --sizes 1").status == 0
    served = trt.load("served/model.plan")
    assert (served.passes, served.max_trips) == ({"carry_layout"}, 7)


def test_passes_of_a_plan_are_those_that_are_inspected(models, run):
    trt.compile(trt.plan.load("model.plan"), passes=[]).save("plain.plan")

    assert "no pass changed anything" in run("inspect plain.plan --passes").out
    assert "what passes changed:" in run("inspect model.plan --passes").out


def test_engine_of_another_model_is_compiled(models):
    assert module.engine(models / "model.py", module.load(models / "model.py")).max_trips is None
