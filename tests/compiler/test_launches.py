"""Launches are counted in the text of a program."""

import pytest

from netloop.compiler.launches import Launches, LoopLaunches, launch_sites
from tests.support.gpu_programs import COUNTED, OPEN


def test_launches_are_those_of_each_place():
    parts = [(place.kind, place.name, place.inside, dict(place.kernels)) for place in launch_sites(OPEN)]

    assert parts == [
        ("entry", "main.1", "", {"graph": 1}),
        ("graph", "command_buffer", "main.1", {"copy": 2}),
        ("body", "body.1", "main.1", {"fusion": 1, "custom-call": 1}),
        ("condition", "condition.1", "body.1", {"fusion": 1}),
        ("branch", "branch.1", "main.1", {}),
        ("branch", "branch.2", "main.1", {"sort": 1}),
    ]


@pytest.mark.parametrize(("text", "launches", "iterations"), [(OPEN, 3, None), (COUNTED, 2, 9)])
def test_iteration_launches_its_body_and_the_condition_of_a_loop_that_is_not_counted(text, launches, iterations):
    assert Launches.of(text).loops == (LoopLaunches("body.1", launches, iterations),)


@pytest.mark.parametrize(("text", "number"), [(OPEN, None), (COUNTED, 1 + 9 * 2 + 1)])
def test_run_launches_the_bodies_of_counted_loops_as_often_as_they_run(text, number):
    launches = Launches.of(text)

    assert launches.total == number
    assert launches.entry == 1


def test_loop_of_a_branch_is_not_part_of_the_total():
    text = (
        COUNTED.replace("ENTRY %main.1", "%rare")
        + """
ENTRY %main.2 (x: f32[4], b: pred[]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %b = pred[] parameter(1)
  %one.1 = f32[4]{0} fusion(%x), kind=kLoop, calls=%fused_add
  ROOT %cond.2 = f32[4]{0} conditional(%b, %one.1, %one.1), branch_computations={%branch.1, %rare}
}
"""
    )

    assert Launches.of(text).total == 1


def test_launches_of_several_programs_are_added():
    counted, ended_by_the_run = Launches.of(COUNTED), Launches.of(OPEN)

    assert Launches.joined([]) is None
    assert Launches.joined([counted, counted]) == Launches(40, 2, counted.loops * 2)
    assert Launches.joined([counted, ended_by_the_run]) == Launches(None, 2, counted.loops + ended_by_the_run.loops)
