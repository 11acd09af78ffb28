"""The search keeps a form that is faster beyond the spread, one pass after the other, until its time is over."""

from dataclasses import dataclass

import pytest

from netloop.compiler.passes import OFF, PASSES, RULE, Note
from netloop.compiler.tuning import Decisions, Search, TimedPair

PAIR = ["gate_fusion", "weight_prepacking"]
APART, RIGHT = PASSES["gate_fusion"].alternatives[1], PASSES["weight_prepacking"].alternatives[1]


@dataclass
class Engine:
    """Stands for an engine: each pass that is not off has left a note."""

    forms: dict[str, str]
    names: list[str]

    @property
    def notes(self):
        forms = {name: self.forms.get(name, RULE) for name in self.names}
        return [Note(name, form) for name, form in forms.items() if form != OFF]


class Machine:
    """Stands for a machine, which says how long engines take and records what is compared."""

    def __init__(self, seconds, names=PAIR):
        self.seconds = seconds
        self.names = names
        self.made = []
        self.compared = []
        self.now = 0.0

    def make(self, forms):
        self.made.append(dict(forms))
        return Engine(dict(forms), self.names)

    def compare(self, candidate, incumbent):
        self.now += 1
        self.compared.append(candidate.forms)
        times = [self.seconds(value.forms) for value in (candidate, incumbent)]
        return TimedPair(*times, [times[0] / times[1]] * 7)

    def search(self, entries=None, budget=100.0, digest="network", machine="here", **settings):
        decisions = Decisions({} if entries is None else entries, machine, digest)
        found = Search(self.make, self.compare, decisions, PAIR, budget, clock=lambda: self.now, **settings)
        return found.run()


def product_of(factors):
    """The time of forms that act independently of each other."""

    def seconds(forms):
        whole = 1.0
        for value in forms.items():
            whole *= factors.get(value, 1.0)
        return whole

    return seconds


def test_fastest_form_of_each_pass_is_kept():
    machine = Machine(product_of({("gate_fusion", APART): 0.8, ("weight_prepacking", OFF): 0.5}))
    found = machine.search()

    assert found.forms == {"gate_fusion": APART, "weight_prepacking": OFF}
    assert found.engine.forms == found.forms
    assert found.is_complete


def test_passes_are_timed_one_after_the_other_on_top_of_what_was_chosen():
    machine = Machine(product_of({("gate_fusion", OFF): 0.5}))
    machine.search()
    off = {"gate_fusion": OFF}

    # the chosen forms are compared with the rules once more at the end
    assert machine.compared == [
        off,
        {"gate_fusion": APART},
        {**off, "weight_prepacking": OFF},
        {**off, "weight_prepacking": RIGHT},
        off,
    ]


def test_form_that_is_hardly_faster_is_not_chosen():
    found = Machine(product_of({("gate_fusion", OFF): 0.98})).search()

    assert found.forms == {}
    assert [trial.chosen for trial in found.trials] == [False] * 4


def test_gain_that_a_second_comparison_does_not_show_is_dropped():
    machine = Machine(product_of({("gate_fusion", OFF): 0.5}))
    compare = machine.compare

    def by_chance(candidate, incumbent):
        found = compare(candidate, incumbent)
        return found if len(machine.compared) < 5 else TimedPair(1.0, 1.0, [1.0] * 7)

    machine.compare = by_chance
    entries = {}
    found = machine.search(entries)

    assert found.forms == {}
    assert found.engine.forms == {}
    assert found.trials[-1].by == "all"
    assert machine.search(entries).forms == {}


def test_pass_that_did_nothing_is_not_timed():
    machine = Machine(product_of({}), names=["weight_prepacking"])
    machine.search()

    assert all("gate_fusion" not in value for value in machine.compared)


def test_form_that_does_the_same_is_not_timed():
    machine = Machine(product_of({}))
    make = machine.make
    machine.make = lambda forms: make({name: form for name, form in forms.items() if form != APART})
    machine.search()

    assert machine.compared == [{"gate_fusion": OFF}, {"weight_prepacking": OFF}, {"weight_prepacking": RIGHT}]


def test_only_off_leaves_out_other_forms():
    machine = Machine(product_of({}))
    machine.search(only_off=True)

    assert machine.compared == [{"gate_fusion": OFF}, {"weight_prepacking": OFF}]


def test_form_that_fails_is_not_chosen_and_tells_why():
    machine = Machine(product_of({("weight_prepacking", OFF): 0.5}))
    compare = machine.compare

    def failing(candidate, incumbent):
        if "gate_fusion" in candidate.forms:
            raise ValueError("no kernel")
        return compare(candidate, incumbent)

    machine.compare = failing
    found = machine.search()

    assert found.forms == {"weight_prepacking": OFF}
    assert [(trial.by, trial.failure) for trial in found.trials[:2]] == [("gate_fusion", "no kernel")] * 2
    assert str(found.trials[0]) == "gate_fusion off: failed: no kernel"


def test_known_forms_are_not_timed_again():
    seconds = product_of({("gate_fusion", OFF): 0.5})
    entries = {}
    Machine(seconds).search(entries)
    again = Machine(seconds)
    found = again.search(entries)

    assert (found.forms, found.trials, found.is_complete) == ({"gate_fusion": OFF}, [], True)
    assert again.compared == []
    assert again.made == [{"gate_fusion": OFF}]


@pytest.mark.parametrize("other", [{"machine": "there"}, {"digest": "another network"}])
def test_times_of_another_machine_or_network_are_not_used(other):
    entries = {}
    Machine(product_of({("gate_fusion", OFF): 0.5})).search(entries)
    elsewhere = Machine(product_of({}))

    assert elsewhere.search(entries, **other).forms == {}
    assert len(elsewhere.compared) == 4


def test_network_without_a_digest_is_not_remembered():
    entries = {}
    Machine(product_of({("gate_fusion", OFF): 0.5})).search(entries, digest=None)

    assert entries == {}


def test_search_that_ran_out_of_time_is_continued_by_the_next():
    seconds = product_of({("gate_fusion", OFF): 0.5, ("weight_prepacking", OFF): 0.5})
    entries = {}
    first, second = Machine(seconds), Machine(seconds)
    begun = first.search(entries, budget=2.0)
    ended = second.search(entries, budget=100.0)

    assert (begun.forms, begun.is_complete) == ({"gate_fusion": OFF}, False)
    assert (ended.forms, ended.is_complete) == ({"gate_fusion": OFF, "weight_prepacking": OFF}, True)
    assert all(value["gate_fusion"] == OFF for value in second.compared)


def test_budget_of_nothing_times_nothing():
    machine = Machine(product_of({("gate_fusion", OFF): 0.5}))
    found = machine.search(budget=0.0)

    assert (found.forms, machine.compared, found.is_complete) == ({}, [], False)


@pytest.mark.parametrize("reason", [KeyboardInterrupt, RuntimeError])
def test_what_a_step_raises_ends_the_search(reason):
    machine, entries = Machine(product_of({("gate_fusion", OFF): 0.5})), {}

    def step(what):
        if what.startswith("weight_prepacking"):
            raise reason

    with pytest.raises(reason):
        machine.search(entries, step=step)
    assert len(machine.compared) == 2
    assert entries == {}


def test_interrupt_while_timing_ends_the_search():
    machine = Machine(product_of({}))

    def interrupted(candidate, incumbent):
        raise KeyboardInterrupt

    machine.compare = interrupted
    with pytest.raises(KeyboardInterrupt):
        machine.search()


def test_remembered_time_is_that_of_a_call_with_the_chosen_forms():
    entries = {}
    Machine(product_of({("gate_fusion", OFF): 0.25})).search(entries)

    assert {entry.timingMSec for entry in entries.values()} == {250.0}
