"""The search for the fastest forms of the passes of a network."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from netloop.compiler.execution.engines import Engine
from netloop.compiler.passes import OFF, PASSES, RULE, Forms, Note
from netloop.compiler.trial import Trial
from netloop.compiler.tuning.entries import Decisions
from netloop.compiler.tuning.measurement import TimedPair

E = TypeVar("E", bound=Engine)


def with_alternatives(passes: Collection[str]) -> list[str]:
    """Return the names among ``passes`` that have forms to choose from, in the order in which they are applied."""
    return [name for name, pass_ in PASSES.items() if pass_.alternatives and name in passes]


TOGETHER = "all"
"""The name in a trial of all forms together, which are compared with the rules once more."""


def _done(engine: Engine) -> list[Note]:
    """The changes that passes made in an engine; two engines with equal changes have equal programs."""
    return [note for note in engine.notes if note.by in PASSES]


@dataclass(frozen=True)
class Tuned(Generic[E]):
    """The result of a search.

    Attributes:
        engine: the fastest engine.
        forms: its forms; passes that follow their rule are left out.
        trials: the forms that were timed, in order.
        is_complete: whether every form was timed or known; not if the time was over.
    """

    engine: E
    forms: Forms
    trials: Sequence[Trial]
    is_complete: bool


@dataclass
class Search(Generic[E]):
    """A greedy search: one pass after the other, in the order in which they are applied, keeps its fastest form.

    Attributes:
        make: compiles the engine of some forms.
        compare: times a candidate against an engine.
        decisions: what is known, and where what is found is remembered.
        passes: the names of the passes in use.
        budget: the seconds after which nothing new is timed.
        only_off: whether each pass is only timed against not being applied, and not in its other forms.
        step: called with each form before it is timed; what it raises ends the search.
        clock: the clock of the budget, in seconds.
    """

    make: Callable[[Forms], E]
    compare: Callable[[E, E], TimedPair]
    decisions: Decisions
    passes: Collection[str]
    budget: float
    only_off: bool = False
    step: Callable[[str], None] = lambda what: None
    clock: Callable[[], float] = time.monotonic
    _trials: list[Trial] = field(default_factory=list[Trial])

    def run(self) -> Tuned[E]:
        """Find the fastest forms; nothing is timed if all of them are known."""
        began = self.clock()
        names = with_alternatives(self.passes)
        known = self.decisions.known(names)
        forms = {name: form for name, form in known.items() if form != RULE}
        best = self.make(forms)
        opened = [name for name in names if name not in known]
        if not opened:
            return Tuned(best, forms, [], True)
        decided, ends = dict[str, str](), began + self.budget
        for name in opened:
            if self.clock() >= ends:
                break
            best, form, is_whole = self._best_form(name, best, forms, ends)
            forms |= {} if form == RULE else {name: form}
            if is_whole:
                decided[name] = form
        if forms:
            best, forms, decided = self._confirmed(best, forms, decided)
        self.decisions.remember(decided, self._fastest())
        return Tuned(best, forms, self._trials, decided.keys() >= {*opened})

    def _best_form(self, name: str, best: E, forms: Forms, ends: float) -> tuple[E, str, bool]:
        """The fastest engine and form of a pass, and whether all forms were timed.

        A pass that did nothing has nothing to time, nor has a form that does the same.
        """
        chosen = RULE
        for form in PASSES[name].alternatives if any(note.by == name for note in best.notes) else ():
            if self.only_off and form != OFF:
                continue
            if self.clock() >= ends:
                return best, chosen, False
            self.step(f"{name} {form}")
            candidate = self._candidate(name, form, best, {**forms, name: form})
            if candidate is not None:
                best, chosen = candidate, form
        return best, chosen, True

    def _candidate(self, name: str, form: str, best: E, forms: Forms) -> E | None:
        """The engine of some forms, if it is faster than the best."""
        try:
            candidate = self.make(forms)
            if _done(candidate) == _done(best):
                return None
            pair = self.compare(candidate, best)
        except Exception as error:
            # whatever XLA refuses or a call cannot do: the form that works stays
            self._trials.append(Trial(name, form, None, None, False, str(error)))
            return None
        self._trials.append(Trial(name, form, pair.seconds, pair.before, pair.is_faster))
        return candidate if pair.is_faster else None

    def _confirmed(self, best: E, forms: dict[str, str], decided: dict[str, str]) -> tuple[E, Forms, dict[str, str]]:
        """The best engine if one more comparison confirms that it beats the rules, otherwise the rules' engine.

        Among many comparisons some find a gain by chance.
        """
        rule = self.make({})
        pair = self.compare(best, rule)
        text = ", ".join(f"{name} {form}" for name, form in forms.items())
        self._trials.append(Trial(TOGETHER, text, pair.seconds, pair.before, pair.is_faster))
        return (best, forms, decided) if pair.is_faster else (rule, {}, dict.fromkeys([*decided, *forms], RULE))

    def _fastest(self) -> float:
        """The seconds of a call with what is in use now; 0 if nothing was timed."""
        timed = [trial for trial in self._trials if trial.seconds is not None]
        in_use = [trial.seconds if trial.chosen else trial.before for trial in timed[-1:]]
        return in_use[0] or 0.0 if in_use else 0.0
