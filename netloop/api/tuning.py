"""Engines that are tuned: which forms of passes an engine has, and the notes about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from netloop.api.build_options import BuildOptions
from netloop.api.timing_cache import ITimingCache
from netloop.compiler.execution.compiled_program import Watch
from netloop.compiler.execution.executable import Executable
from netloop.compiler.passes import PASSES, RULE, Forms, Note
from netloop.compiler.recipe import Recipe
from netloop.compiler.tuning import (
    LONGEST,
    Decisions,
    NoSamples,
    Samples,
    Search,
    Stopwatch,
    Trial,
    Tuned,
    digest_of,
    require_ending,
    sample_inputs,
    this_machine,
    with_alternatives,
)
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import Finding, InputError, NetworkError, reason

SECONDS = 60.0
"""The seconds after which tuning times nothing new, unless a script sets others."""
BY = "tuning"
"""The author of the notes of tuning."""


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

    cache: ITimingCache = field(default_factory=ITimingCache)
    measures: bool = False
    only_off: bool = False
    seconds: float = SECONDS
    calls: int = 1
    inputs: Mapping[str, Any] | None = None
    samples: Samples = field(default_factory=Samples)
    requires_known: bool = False
    step: Callable[[str], None] = lambda what: None


def tuned(
    make: Callable[[BuildOptions], Executable], network: INetworkDefinition, options: BuildOptions, tuning: Tuning
) -> Tuned[Any]:
    """Return the engine that ``make`` returns for the options with the fastest forms.

    Raises:
        InputError: inputs cannot be made up, or the given ones do not fit.
        NetworkError: the network is invalid, or the cache lacks a form and may not.
        ExecutionError: a call with the given inputs fails.
    """
    try:
        inputs = sample_inputs(network, tuning.samples) if tuning.inputs is None else tuning.inputs
        return _tuned(_Engines(make, options, inputs, {}), network, tuning)
    except NoSamples as error:
        fix = "give the inputs of a typical call: netloop.compile(network, tune=inputs)"
        raise InputError(Finding("NL624", f"tuning has no inputs: {error}", reason("NL624"), fix)) from None


def _tuned(engines: _Engines, network: INetworkDefinition, tuning: Tuning) -> Tuned[Any]:
    options, inputs = engines.options, engines.inputs
    what_counts = options.max_trips, options.interruptible, sorted(options.passes), sorted(options.donated)
    digest = digest_of(network, inputs, what_counts)
    decisions = Decisions(tuning.cache.measured_here(), this_machine(), digest)
    names = with_alternatives(options.passes)
    known = decisions.known(names)
    if len(known) < len(names):
        if tuning.requires_known:
            what = f"the timing cache has no forms of {', '.join(name for name in names if name not in known)}"
            raise NetworkError(Finding("NL625", what, reason("NL625")))
        if not tuning.measures:
            forms = {name: form for name, form in known.items() if form != RULE}
            return Tuned(engines.of(forms), forms, [], False)
        engines.require_running(tuning.inputs is None)
    compare = Stopwatch(inputs, tuning.calls)
    search = Search(engines.of, compare, decisions, options.passes, tuning.seconds, tuning.only_off, tuning.step)
    return search.run()


@dataclass(frozen=True)
class _Engines:
    """The engines of a network in some forms.

    Attributes:
        make: compiles one.
        options: its options, without forms.
        inputs: the inputs of a call.
        known: the engine of the rules, which is compared more than once.
    """

    make: Callable[[BuildOptions], Executable]
    options: BuildOptions
    inputs: Mapping[str, Any]
    known: dict[str, Executable]

    def of(self, forms: Forms) -> Any:
        """An engine with a program for the inputs."""
        if not forms and RULE in self.known:
            return self.known[RULE]
        executable = self.make(with_forms(self.options, forms))
        if not executable.program_count and not executable.absent:
            executable(self.inputs)  # the notes of passes are those of a program, and these shapes are open
        if not forms:
            self.known[RULE] = executable
        return executable

    def require_running(self, is_made_up: bool) -> None:
        """Check that a call succeeds, which made-up inputs may keep from ending."""
        engine = self.of({})
        if is_made_up:
            most = min(LONGEST, self.options.max_trips or LONGEST)
            require_ending(engine, lambda: self.make(replace(self.options, max_trips=most)), self.inputs)
        else:
            engine(self.inputs)


def with_forms(options: BuildOptions, forms: Forms) -> BuildOptions:
    """The options with the forms that tuning chose on this machine."""
    return replace(options, forms=tuple(sorted(forms.items())), tuned_on=this_machine() if forms else "")


def executable_of(network: INetworkDefinition, options: BuildOptions, watch: Watch | None = None) -> Executable:
    """The compiled network of a build; ``watch`` gives the context of each phase of a compilation made here."""
    recipe = Recipe.of(options.passes, forms_here(options), options.max_trips)
    return Executable(network, recipe, options.interruptible, options.absent, options.donated, watch)


def forms_here(options: BuildOptions) -> Forms:
    """The forms of a build that hold on this machine: none if it was tuned on another."""
    passes = {name: form for name, form in options.forms if name in PASSES and form in PASSES[name].alternatives}
    return passes if options.forms and options.tuned_on == this_machine() else {}


def notes_of(options: BuildOptions, trials: Sequence[Trial]) -> list[Note]:
    """Notes of the forms that were timed and chosen; of the rules, if the engine was tuned on another machine."""
    if options.forms and options.tuned_on != this_machine():
        return [Note(BY, f"rules decide, because the engine was tuned on another machine: {options.tuned_on}")]
    if trials:
        return [Note(BY, str(trial)) for trial in trials]
    return [Note(BY, f"{name} {form}: measured before") for name, form in options.forms]
