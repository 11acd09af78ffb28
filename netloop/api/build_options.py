"""The options of a build that an engine keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace

from netloop.api.enums import ProfilingVerbosity
from netloop.api.logger import ILogger
from netloop.api.profile import IOptimizationProfile
from netloop.compiler.passes import PASSES, Forms, chosen
from netloop.compiler.recipe import Recipe
from netloop.compiler.tuning import this_machine
from netloop.values.devices import JaxDevice


@dataclass(frozen=True)
class BuildOptions:
    """The options of a build that an engine keeps, and mostly its plan too.

    Attributes:
        logger: receives errors; None for no logging. Not in a plan.
        profiles: the optimization profiles.
        verbosity: how much an inspector reports about layers.
        max_trips: the largest number of iterations of a loop, each time it is entered; None for any number.
        interruptible: whether a long loop can be interrupted.
        marked_only: whether only weights marked as refittable can be replaced.
        absent: the indices of the constant layers whose weights were not in the plan.
        passes: the names of the passes applied to the engine's programs.
        donated: the names of the inputs whose memory a call may reuse.
        forms: the forms of passes that tuning chose instead of their rules, by name.
        tuned_on: the machine on which it did.
        tactic_sources: TensorRT's sources of kernels, one bit each; recorded without effect.
        tf32: whether products and convolutions of float32 may be rounded.
        device: the device that its caller chose; None for JAX's default one. Not in a plan.
    """

    logger: ILogger | None = None
    profiles: tuple[IOptimizationProfile, ...] = ()
    verbosity: ProfilingVerbosity = ProfilingVerbosity.LAYER_NAMES_ONLY
    max_trips: int | None = None
    interruptible: bool = False
    marked_only: bool = False
    absent: frozenset[int] = frozenset()
    passes: frozenset[str] = chosen(None)
    donated: frozenset[str] = frozenset()
    forms: tuple[tuple[str, str], ...] = ()
    tuned_on: str = ""
    tactic_sources: int = 0b11
    tf32: bool = True
    device: JaxDevice | None = None

    @property
    def is_tuned_elsewhere(self) -> bool:
        """Whether its forms are those of another machine, so that rules decide on this one."""
        return bool(self.forms) and self.tuned_on != this_machine(self.device)

    @property
    def recipe(self) -> Recipe:
        """The recipe of its programs on this machine."""
        forms = {name: form for name, form in self.forms if name in PASSES and form in PASSES[name].alternatives}
        forms = {} if self.is_tuned_elsewhere else forms
        return Recipe.of(self.passes, forms, self.max_trips, self.tf32, device=self.device)

    def with_forms(self, forms: Forms) -> BuildOptions:
        """The options with the forms that tuning chose on this machine."""
        return replace(self, forms=tuple(sorted(forms.items())), tuned_on=this_machine(self.device) if forms else "")
