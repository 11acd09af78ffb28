"""Many requests of a network with a loop, in slots that are refilled as requests end."""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np

from netloop.api.engine import ICudaEngine
from netloop.api.slot_requests import RequestState, Rows, SlotRequest
from netloop.api.tuning import CacheFile, Tune, tuning_of
from netloop.compiler.execution.engines import Engine
from netloop.compiler.execution.lowered_network import LoweredNetwork
from netloop.compiler.execution.slot_programs import FOR_ONE_ROW, SlotPrograms
from netloop.compiler.execution.slots import Slots
from netloop.compiler.jax_settings import pinned_settings
from netloop.compiler.passes import chosen
from netloop.compiler.placement import Placement
from netloop.compiler.product_precision import precision_of
from netloop.compiler.recipe import Recipe
from netloop.compiler.tuning import SECONDS, Candidates, fastest
from netloop.model.network import INetworkDefinition
from netloop.process.forked import FORK, require_jax
from netloop.values.checked_attributes import none_or, whole
from netloop.values.devices import Device
from netloop.values.diagnostics import ExecutionError, InputError
from netloop.values.foreign_arrays import is_borrowed
from netloop.values.types import Array
from netloop.values.unpicklable import Unpicklable


class SlotEngine(Unpicklable, Engine):
    """An engine that runs many requests of a network together, each from its own beginning to its own end.

    The network is that of one request. What comes before its loop is the prefill of a request, each iteration of the
    loop is made for the requests in all slots at once, and what follows the loop is the end of a request; then its
    slot is free for the next one. Rows of stacked outputs that are outputs of the network stream as they are made.
    The names are those of JetStream's engine API: prefill, insert, generate; here they are derived from the network.

    A call of the device makes ``trips`` iterations. More of them cost fewer calls, and a request that ends within them
    keeps its slot until the call returns.

    Requests of different shapes, or of different values that decide shapes, have programs of their own and share the
    number of slots. One thread at a time makes iterations; the others wait.

    Args:
        network: the network of one request, of which the engine keeps a copy; or an engine of it, whose passes, forms
            of passes, ``max_trips`` and precision of products hold unless others are given.
        slots: the largest number of requests that run together.
        loop: the name of the loop; None for the only loop outside of other loops and of conditionals, or for the only
            one of these that stacks an output of the network.
        max_trips: the largest number of iterations of a loop; None for any number.
        passes: the names of the optimization passes, of ``netloop.PASSES``; None for all but those for single rows.
        tf32: whether products and convolutions of float32 may be rounded, as for ``netloop.compile``; None for what
            holds for an engine, and True for a network.
        device: the device that the slots are on, as for ``netloop.compile``; None for that of an engine, and for JAX's
            default one.
        tune: whether the forms of passes whose gain depends on the processor are timed here, and the fastest chosen, in
            place of rules or of those of an engine; or the inputs of a typical request to time them with, by name. True
            makes up the inputs. What is timed is a run of as many requests as there are slots.
        timing_cache: a timing cache, or the path of its file: forms that it has are not timed again, and those that are
            timed are added.
        tuning_seconds: the seconds after which no further form is timed; infinity for no limit.

    Attributes:
        network: the copy of the network.
        recipe: the decisions by which its programs are made.
        slots: the largest number of requests that run together.
        made: the number of iterations that requests have made.
        offered: the number of iterations that they could have made, in all slots.

    Raises:
        NetworkError: the network is invalid; no loop of it can run in slots (NL623); it needs the host (NL501, NL503).
        ValueError: it has no loop of the name, or a number is not positive.
        InputError: there is no such device; or inputs for tuning cannot be made up, or the given ones do not fit.
        ExecutionError: a request with the inputs for tuning fails.
        FileFormatError: the timing cache is not one, or is damaged.
    """

    UNPICKLABLE = "cannot be pickled or copied, because its requests are those of one process; pickle the network"

    def __init__(
        self,
        network: INetworkDefinition | ICudaEngine,
        *,
        slots: int = 32,
        trips: int = 1,
        loop: str | None = None,
        max_trips: int | None = None,
        passes: Iterable[str] | None = None,
        tf32: bool | None = None,
        device: Device | None = None,
        tune: Tune = False,
        timing_cache: CacheFile = None,
        tuning_seconds: float = SECONDS,
    ) -> None:
        self.slots, self.trips = whole(1)("slots", slots), whole(1)("trips", trips)
        served = network.network if isinstance(network, ICudaEngine) else network
        with tuning_of(tune, timing_cache, tuning_seconds) as tuning:
            recipe = _recipe(network, max_trips, passes, none_or(bool)("tf32", tf32), tuning is not None)
            recipe = replace(recipe, placement=_placement(network, device))
            make = partial(SlotPrograms, served, slots=self.slots, trips=self.trips, loop=loop)
            if tuning is None:
                self._programs = make(recipe)
            else:
                what_counts = recipe.max_trips, sorted(recipe.passes), self.slots, self.trips, loop
                self._programs = fastest(Candidates(make, served, recipe, what_counts), tuning)
        core = self._programs
        self.network, self.recipe, self.trials = core.network, core.recipe, core.trials
        self.made = self.offered = 0
        self._lock = threading.RLock()
        self._free = list(range(self.slots))[::-1]
        self._waiting: deque[SlotRequest] = deque()
        self._running: dict[int, SlotRequest] = {}
        self._unreported: deque[SlotRequest] = deque()

    def __repr__(self) -> str:
        return f"<SlotEngine, {len(self._running)} of {self.slots} slots, {len(self._waiting)} requests waiting>"

    @property
    def program_count(self) -> int:
        """The number of programs: one for each combination of shapes, and of values that decide shapes."""
        return len(self._programs)

    @property
    def latest(self) -> LoweredNetwork | None:
        return self._programs.latest

    def profile(self, inputs: Mapping[str, Any]) -> dict[str, float]:
        """The duration of each phase for some inputs, in seconds, in the order of the phases.

        ``passes``, ``load``, ``trace`` and ``compile`` were measured when the functions of the slots were made.
        ``call`` is now that of as many requests as there are slots, all with these inputs, from their beginning to
        their end; other requests wait meanwhile.

        Raises:
            InputError, NetworkError, ExecutionError: as a request does.
        """
        require_jax()
        with self._lock:
            return self._programs.profile(inputs)

    @property
    def streamed(self) -> list[str]:
        """The names of the outputs whose rows stream, in the latest program; empty before the first request."""
        return self._programs.streamed

    def submit(
        self, inputs: Mapping[str, Any], on_row: Callable[[SlotRequest, Rows], Any] | None = None
    ) -> SlotRequest:
        """Hand in a request; it begins in the first step in which a slot is free.

        Args:
            inputs: an array for each input, by name, as for a call of an engine; they are copied.
            on_row: called with the request and the rows of each iteration, by output name, within ``step``.
                An exception that it raises leaves the step; the state of all requests is recorded before.

        Raises:
            InputError: an input is missing, unknown, or of another element type or shape.
        """
        require_jax()
        request = SlotRequest(self, self._copies(inputs), on_row)
        with self._lock:
            self._waiting.append(request)
        return request

    def _copies(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs of a request, which its caller may change before it begins."""
        copies = dict[str, Any]()
        for name, array in self._programs.taken(inputs).items():
            if isinstance(array, np.ndarray):
                copies[name] = np.array(array)
            elif is_borrowed(array, inputs[name]):
                with self.settings():
                    # a copy is made when the device comes to it, and the caller may write to the array before
                    copies[name] = jax.block_until_ready(self.recipe.placement.copied(array))
            else:
                copies[name] = array
        return copies

    def run(self, requests: Iterable[Mapping[str, Any]]) -> Iterator[SlotRequest]:
        """Run requests, and yield each as it ends; one that failed, or whose inputs are refused, has its ``error``.

        Args:
            requests: the inputs of each; they are taken from the iterable as slots become free.
        """
        source, mine = iter(requests), list[SlotRequest]()
        try:
            while True:
                mine += self._submitted(source, self.slots - len(mine))
                if not mine:
                    return
                if not any(request.is_over for request in mine):
                    self.step()
                over = [request for request in mine if request.is_over]
                mine = [request for request in mine if not request.is_over]
                yield from over
        finally:
            for request in mine:
                request.cancel()

    def _submitted(self, source: Iterator[Mapping[str, Any]], most: int) -> list[SlotRequest]:
        requests: list[SlotRequest] = []
        while len(requests) < most and (inputs := next(source, None)) is not None:
            try:
                requests.append(self.submit(inputs))
            except InputError as error:
                requests.append(SlotRequest(self, inputs, None))
                requests[-1].fail(error)
        return requests

    def step(self) -> list[SlotRequest]:
        """Let waiting requests into free slots, make some iterations of all slots, and end the requests that are over.

        Returns:
            The requests that ended, failed ones among them.

        Raises:
            Exception: what ``on_row`` raised.
            ExecutionError: the process was forked from one that had used JAX.
        """
        require_jax()  # in a fork, a thread of the parent may hold the lock forever
        with self._lock:
            self._leave_ended()
            with self.settings():
                over = self._fill()
                for group in dict.fromkeys(
                    request.group for request in self._running.values() if request.group is not None
                ):
                    over += self._generate(group)
            self._report()
            return over

    def _report(self) -> None:
        """Call back for the rows of all requests; those that an exception keeps back are reported in the next step."""
        while self._unreported:
            request = self._unreported.popleft()
            try:
                request.report()
            except BaseException:
                self._unreported.appendleft(request)
                raise

    def _fill(self) -> list[SlotRequest]:
        """Let waiting requests begin; return those that are over with it."""
        over: list[SlotRequest] = []
        while self._waiting and self._free:
            request, others = self._waiting.popleft(), [*self._running.values()]
            with _failing([request]):
                self._begin(request)
            over += [other for other in (*others, request) if other.is_over]
        return over

    def _begin(self, request: SlotRequest) -> None:
        with pinned_settings():
            group, arrays = self._programs.find(request.inputs)
            prefix = group.prefill(arrays)
            if not bool(prefix.live):
                request.group = group
                self._end(request, *group.finish_at_once(prefix))
                return
        slot = self._free.pop()
        self._running[slot] = request
        request.begin(group, slot)
        # a call that fails has given the slots of all requests of the program away
        with _failing([other for other in self._running.values() if other.group is group]), pinned_settings():
            group.insert(prefix, slot)
        self._leave_ended()

    def _generate(self, group: Slots) -> list[SlotRequest]:
        """Make iterations of the requests of one program; return those that are over."""
        running = {slot: request for slot, request in self._running.items() if request.group is group}
        generated = _generated(group, list(running.values()))
        if generated is None:
            group.clear()
            self._leave_ended()
            return list(running.values())
        rows, array, live = generated
        self.made += sum(int(array[:, slot].sum()) for slot in running)
        self.offered += self.slots * self.trips
        for slot, request in running.items():
            request.receive(_rows(rows, slot, int(array[:, slot].sum())))
            self._unreported.append(request)
        over = [slot for slot in running if not live[slot]]
        for slot in over:
            self._finish(group, slot)
        if len(over) == len(running):
            group.clear()
        return [running[slot] for slot in over]

    def _finish(self, group: Slots, slot: int) -> None:
        request = self._running[slot]
        with _failing([request]), pinned_settings():
            self._end(request, *group.finish(slot))
        self._leave(slot)

    def _end(self, request: SlotRequest, outputs: dict[str, Array], failure: Any) -> None:
        if failure is not None:
            request.fail(ExecutionError(failure))
        else:
            request.end(outputs, [tensor.name for tensor in self.network.outputs])

    def _leave_ended(self) -> None:
        """Free the slots of requests that have ended, also those of a step that was interrupted."""
        for slot in [slot for slot, request in self._running.items() if request.is_over]:
            self._leave(slot)

    def _leave(self, slot: int) -> None:
        del self._running[slot]
        self._free.append(slot)

    def cancel(self, request: SlotRequest) -> None:
        """Give a request up, and its slot to another one; nothing happens if it is over, or of the parent of a fork."""
        if FORK.lost_jax:
            return
        with self._lock:
            if request.is_over:
                return
            if request.slot is None:
                self._waiting.remove(request)
            else:
                self._leave(request.slot)
            request.fail(CancelledError("the request was cancelled"), RequestState.CANCELLED)


def _recipe(
    given: INetworkDefinition | ICudaEngine,
    max_trips: int | None,
    passes: Iterable[str] | None,
    tf32: bool | None,
    by_rules: bool,
) -> Recipe:
    """The recipe of a network; that of an engine, if no other options are given, without its forms for rules."""
    if not isinstance(given, ICudaEngine):
        names = chosen(passes) - (FOR_ONE_ROW if passes is None else frozenset())
        return Recipe(names, max_trips=max_trips, precision=precision_of(tf32 is not False))
    most = given.max_trips if max_trips is None else max_trips
    precision = given.recipe.precision if tf32 is None else precision_of(tf32)
    if passes is not None:
        return Recipe(chosen(passes), max_trips=most, precision=precision)
    recipe = Recipe(given.build_options.passes) if by_rules else given.recipe
    return replace(recipe, passes=recipe.passes - FOR_ONE_ROW, max_trips=most, precision=precision)


def _placement(given: INetworkDefinition | ICudaEngine, device: Device | None) -> Placement:
    """The device of the slots: that of an engine, if no other is given."""
    if device is None and isinstance(given, ICudaEngine):
        return given.recipe.placement
    return Placement.of(device)


@contextmanager
def _failing(requests: list[SlotRequest]) -> Generator[None]:
    """A context in which an exception is the failure of some requests.

    Raises:
        BaseException: what is no Exception, such as KeyboardInterrupt; the requests are over then too, as they could
            not be ended later.
    """
    try:
        yield
    except Exception as error:
        for request in requests:
            request.fail(error)
    except BaseException as error:
        for request in requests:
            request.fail(
                CancelledError(f"the request was interrupted by {type(error).__name__}"), RequestState.CANCELLED
            )
        raise


def _generated(group: Slots, requests: list[SlotRequest]) -> tuple[dict[str, Array], Array, Array] | None:
    """The result of ``group.generate``; None if it fails, and all its requests with it."""
    with _failing(requests), pinned_settings():
        return group.generate()
    return None


def _rows(rows: dict[str, Array], slot: int, count: int) -> list[Rows]:
    """The rows of a slot, iteration by iteration."""
    return [{name: row[trip, slot, ...].copy() for name, row in rows.items()} for trip in range(count)]
