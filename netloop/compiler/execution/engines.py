"""The base of every kind of engine: its recipe, and what it reports of the program that it used last."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from netloop.compiler.jax_settings import pinned_settings
from netloop.compiler.launches import Launches
from netloop.compiler.lower.loop.strategy import LoopStrategy
from netloop.compiler.passes import Forms, Note
from netloop.compiler.recipe import Recipe
from netloop.compiler.trial import Trial, notes_of
from netloop.model.graph.layer import ILayer
from netloop.model.layers.loop import ILoop
from netloop.model.network import INetworkDefinition
from netloop.values.devices import JaxDevice


class LoopReport(Protocol):
    """The part of a program that says how its loops run."""

    loop_strategies: dict[ILoop, LoopStrategy]
    batched_layers: dict[ILoop, list[ILayer]]


class Report(Protocol):
    """The facts about a program that its engine reports.

    Attributes:
        program: how its loops run.
        loops: the loops of the network after the passes, in order.
        network: that network; None if the program runs on the host.
        notes: what the passes did.
        seconds: the duration of each phase in which it was made.
        scratch_size: the memory in bytes that it needs besides inputs, outputs and weights.
        launches: the launches of a call on a GPU; None on other devices.
    """

    @property
    def program(self) -> LoopReport: ...
    @property
    def loops(self) -> list[ILoop]: ...
    @property
    def network(self) -> INetworkDefinition | None: ...
    @property
    def notes(self) -> list[Note]: ...
    @property
    def seconds(self) -> dict[str, float]: ...
    @property
    def scratch_size(self) -> int: ...
    @property
    def launches(self) -> Launches | None: ...


class Engine:
    """An engine of any kind, as its recipe and the program that it used last describe it.

    Attributes:
        network: the network.
        recipe: the decisions by which its programs are made.
        trials: the forms of passes that tuning timed for it.
    """

    network: INetworkDefinition
    recipe: Recipe
    trials: Sequence[Trial] = ()

    @property
    def latest(self) -> Report | None:
        """The program that was used last; None if none is compiled."""
        raise NotImplementedError

    # ------------------------------------------------------------------ the recipe

    @property
    def max_trips(self) -> int | None:
        """The largest number of iterations of a loop, each time it is entered; None for any number."""
        return self.recipe.max_trips

    @property
    def device(self) -> JaxDevice:
        """The device that it computes on; of a mesh, the first one."""
        return self.recipe.placement.device

    def settings(self) -> pinned_settings:
        """The context in which it compiles, loads and calls: JAX's settings, with its device as the default one."""
        return self.recipe.placement.settings()

    @property
    def passes(self) -> frozenset[str]:
        """The names of the passes applied to its programs."""
        return self.recipe.passes

    @property
    def forms(self) -> Forms:
        """The forms of the passes that do not follow their rule, by name."""
        return self.recipe.forms

    @property
    def product_precision(self) -> str:
        """The type to which its device rounds the operands of float32 products and convolutions.

        ``tensorfloat32`` on NVIDIA's GPUs from Ampere on and ``bfloat16`` on TPUs, unless the engine was compiled with
        ``tf32=False`` or JAX was set to a higher precision; ``float32`` there and elsewhere, where nothing is rounded.
        """
        return self.recipe.product_type.name

    # ------------------------------------------------------------------ the latest program

    @property
    def notes(self) -> list[Note]:
        """The forms that tuning timed and chose, then the changes that the passes made for the latest program."""
        latest = self.latest
        return [*notes_of(self.forms, self.trials), *(latest.notes if latest else [])]

    @property
    def rewritten_network(self) -> INetworkDefinition | None:
        """The network after the passes, of which the latest program is made; None if none is compiled."""
        latest = self.latest
        return latest.network if latest else None

    @property
    def scratch_size(self) -> int:
        """The memory in bytes that the latest program needs in addition to inputs, outputs and weights.

        It is XLA's, of the device that the program is for: 0 for a program that keeps everything in registers and
        outputs, and before the first one, which an engine with open lengths compiles in its first call. Where steps run
        on the host, it is that of the largest compiled piece so far.
        """
        latest = self.latest
        return latest.scratch_size if latest else 0

    @property
    def launches(self) -> Launches | None:
        """The launches on a GPU of a call of the latest program, and of an iteration of each of its compiled loops.

        They are counted in XLA's optimized program: ``total``, ``entry`` and ``loops``. A launch costs the host 3 to
        5 us, so that they decide how long small layers in loops take. A SlotEngine has those of the beginning of a
        request, of a step and of its end together.

        None on other devices, whose programs launch nothing; before the first program; and where steps run on the host,
        which decides what is launched.
        """
        latest = self.latest
        return latest.launches if latest else None

    @property
    def loop_strategies(self) -> dict[str, LoopStrategy]:
        """The lowering strategy of each loop in the latest program and its reason, by the name of the loop.

        Loops that share a name are ``name#number``.
        """
        latest = self.latest
        return self._by_loop_name(latest.loops, latest.program.loop_strategies) if latest else {}

    @property
    def batched_layers(self) -> dict[str, list[ILayer]]:
        """The layers of each loop that the latest program computes for many iterations at once, by loop name."""
        latest = self.latest
        return self._by_loop_name(latest.loops, latest.program.batched_layers) if latest else {}

    def _by_loop_name(self, loops: Sequence[ILoop], values: Mapping[ILoop, Any]) -> dict[str, Any]:
        # names of the network as it was built, which users know; passes may have dropped some of its loops
        names = [loop.name for loop in self.network.loops]
        numbered = [(number, loop) for number, loop in enumerate(loops) if loop in values]
        return {
            loop.name if names.count(loop.name) == 1 else f"{loop.name}#{number}": values[loop]
            for number, loop in numbered
        }


class Tunable(Engine):
    """An engine of any kind, whose calls are timed; ``network`` and ``recipe`` do not change."""

    def prepare(self, inputs: Mapping[str, Any]) -> None:
        """Compile the programs for some inputs, without a call.

        Raises:
            InputError, NetworkError: as a call does.
        """
        raise NotImplementedError

    def run_to_end(self, inputs: Mapping[str, Any]) -> None:
        """Make a typical call, and wait until its results are there.

        Raises:
            InputError, NetworkError, ExecutionError: as a call does.
        """
        raise NotImplementedError

    def move_weights(self) -> None:
        """Copy the weights to other places of memory; calls are measured with several."""
        raise NotImplementedError

    @property
    def may_run_forever(self) -> bool:
        """Whether the number of iterations of a loop is not known before a call."""
        return any(strategy.trips is None for strategy in self.loop_strategies.values())

    def profile(self, inputs: Mapping[str, Any]) -> dict[str, float]:
        """The duration of each phase for some inputs, in seconds, in the order of the phases.

        ``passes``, ``load``, ``trace`` and ``compile`` were measured when the program was made; those of its parts add
        up. ``call`` is a call made now, until all outputs are available.

        Raises:
            InputError, NetworkError, ExecutionError: as a call does.
        """
        self.run_to_end(inputs)
        latest = self.latest
        # of the second call, as the first one may compile
        began = time.perf_counter()
        self.run_to_end(inputs)
        return {**(latest.seconds if latest else {}), "call": time.perf_counter() - began}
