"""Engines that are tuned: the recipe of an engine with the forms of passes that are fastest here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

from netloop.compiler.execution.engines import Tunable
from netloop.compiler.passes import RULE, Forms
from netloop.compiler.recipe import Recipe
from netloop.compiler.tuning.digest import digest_of
from netloop.compiler.tuning.entries import Decisions, Entries
from netloop.compiler.tuning.machine import this_machine
from netloop.compiler.tuning.measurement import Stopwatch
from netloop.compiler.tuning.sample_inputs import NoSamples, Samples, require_ending, sample_inputs
from netloop.compiler.tuning.search import Search, with_alternatives
from netloop.compiler.tuning.trip_inputs import LONGEST
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import Finding, InputError, NetworkError, reason

SECONDS = 60.0
"""The seconds after which tuning times nothing new, unless a script sets others."""

E = TypeVar("E", bound=Tunable)


class TimingCache(Protocol):
    """Where forms that were measured before are found, and new ones are added."""

    def measured_on(self, machine: str) -> Entries: ...


@dataclass(frozen=True)
class Tuning:
    """How an engine is tuned.

    Attributes:
        cache: where forms that were measured before are found, and new ones are added.
        measures: whether forms that the cache does not have are measured; if not, rules decide.
        only_off: whether a pass is measured against not being applied only, and not in its other forms.
        seconds: the seconds after which nothing new is timed.
        calls: the number of calls in a sample.
        inputs: the inputs of a typical call; None for made-up ones.
        samples: the shapes and values for inputs that are made up.
        requires_known: whether it is an error if the cache lacks a form.
        step: called with each form before it is timed; may raise.
    """

    cache: TimingCache
    measures: bool = False
    only_off: bool = False
    seconds: float = SECONDS
    calls: int = 1
    inputs: Mapping[str, Any] | None = None
    samples: Samples = field(default_factory=Samples)
    requires_known: bool = False
    step: Callable[[str], None] = lambda what: None


@dataclass(frozen=True)
class Candidates(Generic[E]):
    """The engines of a network that differ in their recipes, of any kind.

    Attributes:
        make: the engine of a recipe.
        network: the network.
        recipe: the recipe of the rules.
        options: what else their times depend on; its text is part of the entries of timing caches.
        sample: inputs that are made up; raises NoSamples.
    """

    make: Callable[[Recipe], E]
    network: INetworkDefinition
    recipe: Recipe
    options: object
    sample: Callable[[INetworkDefinition, Samples], Mapping[str, Any]] = sample_inputs


def fastest(candidates: Candidates[E], tuning: Tuning) -> E:
    """The fastest of some engines, with its ``trials``.

    Raises:
        InputError: inputs cannot be made up, or the given ones do not fit.
        NetworkError: the network is invalid, or the cache lacks a form and may not.
        ExecutionError: a call with the given inputs fails.
    """
    try:
        inputs = candidates.sample(candidates.network, tuning.samples) if tuning.inputs is None else tuning.inputs
        return _fastest(_Engines(candidates, inputs), tuning)
    except NoSamples as error:
        fix = "give the inputs of a typical call: tune=inputs"
        raise InputError(Finding("NL624", f"tuning has no inputs: {error}", "", reason("NL624"), fix)) from None


def _fastest(engines: _Engines[E], tuning: Tuning) -> E:
    of, inputs = engines.candidates, engines.inputs
    machine = this_machine(of.recipe.placement.device)
    decisions = Decisions(tuning.cache.measured_on(machine), machine, digest_of(of.network, inputs, _what_counts(of)))
    names = with_alternatives(of.recipe.passes)
    decided = decisions.known(names)
    if len(decided) < len(names):
        if tuning.requires_known:
            what = f"the timing cache has no forms of {', '.join(name for name in names if name not in decided)}"
            raise NetworkError(Finding("NL625", what, "", reason("NL625")))
        if not tuning.measures:
            return engines.of({name: form for name, form in decided.items() if form != RULE})
        engines.require_running(tuning.inputs is None)
    compare = Stopwatch(inputs, tuning.calls)
    search = Search(engines.of, compare, decisions, of.recipe.passes, tuning.seconds, tuning.only_off, tuning.step)
    result = search.run()
    result.engine.trials = tuple(result.trials)
    return result.engine


def _what_counts(candidates: Candidates[Any]) -> object:
    """The options that times depend on, with the type to which a device rounds the operands of products, if it does."""
    operands = candidates.recipe.product_type
    return (candidates.options, operands.name) if operands.is_rounded else candidates.options


class _Engines(Generic[E]):
    """The engines of a network in some forms, each with a program for some inputs.

    Attributes:
        candidates: how they are made.
        inputs: the inputs of a call.
    """

    def __init__(self, candidates: Candidates[E], inputs: Mapping[str, Any]) -> None:
        self.candidates, self.inputs = candidates, inputs
        self._of_rules: E | None = None  # which is compared more than once

    def of(self, forms: Forms) -> E:
        """The engine of some forms."""
        if not forms and self._of_rules is not None:
            return self._of_rules
        engine = self.candidates.make(self.candidates.recipe.with_forms(forms))
        engine.prepare(self.inputs)
        if not forms:
            self._of_rules = engine
        return engine

    def require_running(self, is_made_up: bool) -> None:
        """Check that a call succeeds, which made-up inputs may keep from ending."""
        engine, recipe = self.of({}), self.candidates.recipe
        if is_made_up:
            most = min(LONGEST, recipe.max_trips or LONGEST)
            limited = replace(recipe, max_trips=most)
            require_ending(engine, lambda: self.candidates.make(limited), self.inputs)
        else:
            engine.run_to_end(self.inputs)
