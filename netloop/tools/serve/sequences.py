"""Steps of many sequences at once, each with a state of its own on the device."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, takewhile
from typing import Any, NamedTuple

import numpy as np

from netloop.api.engine import ICudaEngine
from netloop.api.step_states import Shapes, require_type
from netloop.api.tuning import CacheFile, Tune, tuning_of
from netloop.compiler.execution.engines import Engine
from netloop.compiler.execution.lowered_network import LoweredNetwork
from netloop.compiler.recipe import Recipe
from netloop.compiler.tuning import SECONDS, Candidates, Tuning, fastest
from netloop.model.call_inputs import array_named
from netloop.model.graph.attributes import check_bool, check_instance
from netloop.model.network import INetworkDefinition
from netloop.process.forked import require_jax
from netloop.tools.serve.answer import Outputs
from netloop.tools.serve.errors import not_run, overloaded, unknown_sequence
from netloop.tools.serve.service import CLOCK, BatchService, Clock, Errors, Request, answer_all, limit
from netloop.tools.serve.step import StepProgram
from netloop.values.checked_attributes import whole
from netloop.values.diagnostics import ExecutionError, Finding, NetworkError, reason
from netloop.values.types import Array, TensorType


class Step(NamedTuple):
    """A step of a sequence.

    Attributes:
        key: the correlation id of the sequence, of any hashable type.
        inputs: an array for each input that is no state, by name.
        start: whether it is the first step, before which the state is the initial one.
        end: whether it is the last step, after which there is no state.
    """

    key: Hashable
    inputs: Mapping[str, Any]
    start: bool = False
    end: bool = False


@dataclass(eq=False)
class Live:
    """A sequence that has a state.

    Attributes:
        key: its correlation id.
        slot: the place of its state.
        used: the time of its latest step.
        restarts: whether the next step begins it, even if it does not say so.
        ended: whether its last step is in the queue.
        lost: whether a failure of the device has taken its state.
        pending: the number of its steps in the queue, and in the call in progress.
    """

    key: Hashable
    slot: int
    used: float
    restarts: bool = True
    ended: bool = False
    lost: bool = False
    pending: int = 0


@dataclass(eq=False, kw_only=True)
class StepRequest(Request):
    """A step in the queue.

    Attributes:
        sequence: its sequence.
        start: whether it begins it.
        number: its place in the order of arrival.
    """

    sequence: Live
    start: bool
    number: int


class Sequences(BatchService[StepRequest], Engine):
    """Steps of many sequences, run as batched calls; the state of each stays on the device between its steps.

    ``sequences.step(7, {"x": x}, start=True)`` begins sequence 7 and returns the outputs of its first step; steps of
    other sequences that wait at the same time are in the same call. All methods may be called from any thread. The
    steps of a sequence run in the order in which they arrive, and never two in one call.

    A step that fails, or is not run in time, leaves the state as it was; the steps of its sequence that are in the
    queue behind it fail with ``NotRun``, up to the next with ``start``. A last step removes its sequence in any case.

    Args:
        network: the network of one step, or its engine. Open lengths are 1, unless ``shapes`` says otherwise: a first
            axis for the batch is the one row of a sequence.
        states: for each input that is a state, the output that is its next value: ``{"h0": "h0n"}``.
        slots: the largest number of sequences with a state; a start of one more raises Overloaded.
        shapes: the shapes of inputs in one step of one sequence, by name.
        initial: the states before the first step, by the name of the input; zeros for those that are not given.
        sizes: the numbers of steps in a call for which programs are compiled; other numbers are padded to the next of
            them. By default powers of four, up to 256 and to ``slots``.
        queue: the largest number of steps that wait; one more raises Overloaded.
        timeout: the seconds after which a step is not run any more; None or infinity for no limit.
        idle: the seconds after its latest step in which a sequence loses its state; None or infinity for never.
        delay: the seconds that a call waits for more steps after the first.
        clock: returns the time in seconds.
        tune: whether the forms of passes whose gain depends on the processor are timed here, and the fastest chosen, in
            place of those of the engine; or the inputs of a typical step to time them with, by name. True makes up the
            inputs. What is timed is a call of the largest of the sizes.
        timing_cache: a timing cache, or the path of its file: forms that it has are not timed again, and those that are
            timed are added.
        tuning_seconds: the seconds after which no further form is timed; infinity for no limit.

    Raises:
        TypeError, ValueError: an argument is not of its range, or names no input or output.
        NetworkError: the network is invalid, its shapes are data-dependent, or states do not fit their next values.
        InputError: an initial state does not fit; or inputs for tuning cannot be made up, or do not fit.
        ExecutionError: a step with the inputs for tuning fails.
        FileFormatError: the timing cache is not one, or is damaged.
    """

    def __init__(
        self,
        network: INetworkDefinition | ICudaEngine,
        states: Mapping[str, str],
        *,
        slots: int = 1024,
        shapes: Shapes | None = None,
        initial: Mapping[str, Any] | None = None,
        sizes: Iterable[int] | None = None,
        queue: int = 4096,
        timeout: float | None = None,
        idle: float | None = None,
        delay: float = 0.0,
        clock: Clock = CLOCK,
        tune: Tune = False,
        timing_cache: CacheFile = None,
        tuning_seconds: float = SECONDS,
    ) -> None:
        super().__init__(queue, timeout, delay, clock)
        self.slots, self._idle, self._shapes = whole(1)("slots", slots), limit("idle", idle), dict(shapes or {})
        self._sizes = _sizes(sizes, self.slots)
        engine = _engine(network)
        with tuning_of(tune, timing_cache, tuning_seconds) as tuning:
            program = self._step_program(engine, states)
            self._use(program if tuning is None else self._tuned(program, tuning))
        self._first = self._initial(initial or {})
        self._states = self._program.empty_states()
        self._free = [*reversed(range(self.slots))]
        self._live: dict[Hashable, Live] = {}
        self._numbers = count()
        self._begin()

    def _step_program(
        self, engine: ICudaEngine, states: Mapping[str, str], recipe: Recipe | None = None
    ) -> StepProgram:
        """The program of a step, with states of all slots, and of one more for padding."""
        return StepProgram(engine, states, self._shapes, self._sizes[-1], self.slots + 1, recipe)

    def _tuned(self, program: StepProgram, tuning: Tuning) -> StepProgram:
        """The program with the fastest forms for calls of the largest size."""
        rules = replace(program.engine.build_options.with_forms({}).recipe, precision=program.engine.recipe.precision)
        make = partial(self._step_program, program.engine, program.states)
        what_counts = rules.max_trips, sorted(rules.passes), sorted(program.states), self._sizes[-1], self.slots
        best = fastest(Candidates(make, program.network, rules, what_counts, program.made_up), tuning)
        best.refitted()  # timing has copied the weights of the engine
        return best

    def _use(self, program: StepProgram) -> None:
        self._program, self.network, self.recipe, self.trials = program, program.network, program.recipe, program.trials

    def _initial(self, initial: Mapping[str, Any]) -> dict[str, Array]:
        unknown = [name for name in initial if name not in self._program.state_types]
        if unknown:
            raise ValueError(f"there is no state {unknown[0]!r} to give an initial value")
        first = {name: np.zeros(of.shape, of.dtype) for name, of in self._program.state_types.items()}
        for name, value in initial.items():
            first[name] = np.array(array_named(name, value))
            require_type(name, first[name], self._program.state_types[name])
        return first

    # ------------------------------------------------------------------ callers

    def step(
        self,
        key: Hashable,
        inputs: Mapping[str, Any],
        *,
        start: bool = False,
        end: bool = False,
        timeout: float | None = None,
    ) -> Outputs:
        """Run a step of a sequence; return its outputs that are no states, by name, as numpy arrays.

        Args:
            key: the correlation id of the sequence.
            inputs: an array for each input that is no state, by name.
            start: whether the sequence begins, or begins anew.
            end: whether it ends with this step.
            timeout: the seconds to wait, if fewer than those of the service.

        Raises:
            InputError: inputs are missing, unknown, or of another element type or shape.
            ExecutionError: the computation of this sequence failed.
            ServeError: the step was refused (Overloaded, Closed), has no sequence (UnknownSequence), was not run
                (NotRun), or has no result in time (TimedOut); a step that is running then runs to its end.
        """
        return self._wait(self.submit(key, inputs, start=start, end=end, timeout=timeout), timeout)

    def submit(
        self,
        key: Hashable,
        inputs: Mapping[str, Any],
        *,
        start: bool = False,
        end: bool = False,
        timeout: float | None = None,
    ) -> Future[Outputs]:
        """Put a step into the queue; return the future of its outputs. Arguments and errors are those of ``step``."""
        return self._submit(Step(key, inputs, start, end), timeout)

    def step_all(self, steps: Iterable[Step]) -> list[Outputs | Exception]:
        """Run steps of several sequences; return the outputs, or the error, of each."""
        return self._all([partial(self._submit, step, None) for step in steps])

    def _submit(self, step: Step, timeout: float | None) -> Future[Outputs]:
        step = step._replace(start=check_bool("start", step.start), end=check_bool("end", step.end))
        arrays = self._program.checked(step.inputs)
        withdrawn: Errors[StepRequest] = []
        try:
            with self._entered():
                now, deadline = self._deadline(timeout)
                sequence = self._sequence(step, now)
                withdrawn += self._withdrawn(sequence)
                start = step.start or sequence.restarts
                request = StepRequest(arrays, now, deadline, sequence=sequence, start=start, number=next(self._numbers))
                (future,) = self._put([request])
                self._enter(sequence, now, step.end)
                return future
        finally:
            answer_all(withdrawn)

    def _enter(self, sequence: Live, now: float, ends: bool) -> None:
        """Note that a step of a sequence is in the queue."""
        # to the end, as sequences are in the order of their latest steps
        self._live.pop(sequence.key, None)
        self._live[sequence.key] = sequence
        sequence.restarts, sequence.used = False, now
        sequence.pending += 1
        if sequence.slot == NO_SLOT:
            sequence.slot = self._free.pop()
        if ends:
            # the same id may begin anew from now on, in another slot
            sequence.ended = True
            del self._live[sequence.key]

    def _withdrawn(self, sequence: Live) -> Errors[StepRequest]:
        """Remove the cancelled steps of a sequence from the queue: who sends a step after them knows of them."""
        errors: Errors[StepRequest] = []
        while sequence.pending:
            cancelled = (
                request for request in self._queue if request.sequence is sequence and request.future.cancelled()
            )
            request = next(cancelled, None)
            if request is None:
                break
            self._queue.remove(request)
            errors += self._drop(request, "cancelled")
        return errors

    def _sequence(self, step: Step, now: float) -> Live:
        """The sequence of a step, or a new one, which has no slot yet."""
        self._expire(now)
        live = self._live.get(step.key)
        if live is not None:
            return live
        if not step.start:
            raise unknown_sequence(step.key)
        if not self._free:
            self._recorder.add("refused")
            what = f"all {self.slots} slots have a sequence"
            raise overloaded(what, "start the sequence later, end others, or give the service more slots")
        return Live(step.key, NO_SLOT, now)

    def _expire(self, now: float) -> None:
        """Remove the sequences that were idle for too long."""
        idle = self._idle
        if idle is None:
            return
        # in the order of their latest steps, so that this looks at few of many
        for tensor in [*takewhile(lambda tensor: now - tensor.used > idle, self._live.values())]:
            if not tensor.pending:
                del self._live[tensor.key]
                self._free.append(tensor.slot)

    # ------------------------------------------------------------------ programs

    def input_types(self) -> dict[str, TensorType]:
        """The types of the inputs of a step that are no states, by name."""
        return dict(self._program.inputs)

    def output_types(self) -> dict[str, TensorType]:
        """The types of the outputs of a step that are no states, by name."""
        return dict(self._program.output_types)

    @property
    def latest(self) -> LoweredNetwork:
        return self._program.latest

    def profile(self, inputs: Mapping[str, Any]) -> dict[str, float]:
        """The duration of each phase for the inputs of a step, in seconds, in the order of the phases.

        ``passes``, ``load``, ``trace`` and ``compile`` were measured when the programs of all sizes so far were made.
        ``call`` is now that of as many first steps as the largest size, on states that no sequence has.

        Raises:
            InputError: inputs are missing, unknown, or of another element type or shape.
            ExecutionError: the computation failed.
        """
        require_jax()
        return self._program.profile(self._program.checked(inputs))

    def compile(self) -> None:
        """Compile the programs of all sizes, which are otherwise compiled when they are first needed."""
        for size in self._sizes:
            self._program.compile(size)

    def reload(self, engine: ICudaEngine | INetworkDefinition | None = None) -> None:
        """Use a refitted or another engine from the next call on; sequences keep their states.

        Programs are compiled here, while calls go on with the old ones; an engine whose constants alone were refitted
        needs none.

        Args:
            engine: the engine; None for the same one with the weights that it has now.

        Raises:
            ValueError, NetworkError: its inputs, states or outputs are of other names or types; the old one stays.
        """
        require_jax()
        old = self._program
        program = old if engine is None or engine is old.engine else None
        if program is not None and program.refitted():
            return
        recipe = None if program is None else old.recipe
        new = self._step_program(_engine(engine or old.engine), old.states, recipe)
        for what in ("inputs", "state_types", "output_types"):
            if getattr(new, what) != getattr(old, what):
                fix = "make a new service for it"
                which = what.replace("_", " ")
                raise NetworkError(Finding("NL646", f"{which} of the new engine are others", "", reason("NL646"), fix))
        for size in old.sizes:
            new.compile(size)
        self._use(new)

    # ------------------------------------------------------------------ the thread

    def _most(self) -> int:
        return self._sizes[-1]

    def _sequence_count(self) -> int:
        self._expire(self._clock())
        return self.slots - len(self._free)

    def _admission(self) -> Callable[[StepRequest], bool]:
        taken: set[Live] = set()

        def joins(request: StepRequest) -> bool:
            if request.sequence in taken:
                return False
            taken.add(request.sequence)
            return True

        return joins

    def _run(self, batch: list[StepRequest]) -> Sequence[Outputs | Exception]:
        count = len(batch)
        size = next(size for size in self._sizes if size >= count)
        # padding repeats the first row, which takes no more iterations than the row itself
        rows = [*batch, *[batch[0]] * (size - count)]
        read = np.array([row.sequence.slot for row in rows], np.int32)
        write = np.where(np.arange(size) < count, read, self.slots).astype(np.int32)
        starts = np.array([row.start for row in rows])
        program = self._program
        inputs = {name: np.stack([row.inputs[name] for row in rows]) for name in program.inputs}
        try:
            outcome = program(self._states, self._first, read, write, starts, inputs)
        except BaseException:
            self._restore()
            raise
        self._states = outcome.states
        return [
            ExecutionError(program.finding(int(flag)))
            if flag
            else {name: of[row] for name, of in outcome.outputs.items()}
            for row, flag in enumerate(outcome.flags[:count].tolist())
        ]

    def _restore(self) -> None:
        """After a failure of the device, which may have taken the memory of the states: all sequences end then."""
        if not any(state.is_deleted() for state in self._states.values()):
            return
        self._states = self._program.empty_states()
        with self._changed:
            for tensor in [*self._live.values()]:
                tensor.ended = tensor.lost = True
                if not tensor.pending:
                    self._free.append(tensor.slot)
            self._live.clear()
            for request in self._queue:
                request.sequence.ended = request.sequence.lost = True

    def _dependents(self, request: StepRequest) -> list[StepRequest]:
        """The steps behind one that is not run, up to the next start."""
        if request.sequence.lost:
            return [request for request in self._queue if request.sequence.lost]
        lost: list[StepRequest] = []
        for other in self._queue:
            if other.sequence is request.sequence and other.number > request.number:
                if other.start:
                    return lost
                lost.append(other)
        request.sequence.restarts |= request.start
        return lost

    def _left(self, request: StepRequest) -> None:
        sequence = request.sequence
        sequence.pending -= 1
        if sequence.ended and not sequence.pending:
            self._free.append(sequence.slot)

    def _not_run(self, request: StepRequest) -> Exception:
        return not_run(request.sequence.key)


NO_SLOT = -1
MOST_ROWS = 256


def _engine(model: INetworkDefinition | ICudaEngine) -> ICudaEngine:
    if isinstance(model, ICudaEngine):
        return model
    return ICudaEngine(check_instance("network", model, INetworkDefinition))


def _sizes(numbers: Iterable[int] | None, slots: int) -> tuple[int, ...]:
    """The sizes of batches, in order."""
    if numbers is None:
        most = min(slots, MOST_ROWS)
        numbers = [number for number in (1, 4, 16, 64) if number < most] + [most]
    sizes = tuple(sorted({whole(1)("a batch size", number) for number in numbers}))
    if not sizes:
        raise ValueError("batch sizes are positive integers, such as (1, 8, 64)")
    return sizes
