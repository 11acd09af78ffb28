"""A network of one step, called again and again, whose states stay on the device."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from netloop.api.engine import ICudaEngine
from netloop.api.step_states import Shapes, fixed_type, require_names, require_pairs, require_type, require_weights
from netloop.compiler.execution.ready_call import ReadyCall
from netloop.model.call_inputs import check_values
from netloop.model.graph.attributes import check_instance
from netloop.model.graph.infer import TypeTable
from netloop.process.forked import require_jax
from netloop.values.devices import JaxDevice
from netloop.values.diagnostics import Finding, InputError, reason
from netloop.values.unpicklable import Unpicklable

Pick = Callable[[Sequence[Any]], Sequence[Any]]
"""Returns some elements of a sequence."""


class Stepper(Unpicklable):
    """A step of one sequence, made again and again: ``step({"x": x})`` returns its outputs, and keeps its states.

    A step is one call of the engine's program, into which the states of the step before go as they are. Everything is
    checked here; a step checks its inputs only. Memory of the states is reused if the engine was compiled to donate
    them.

    Any thread may make steps, one at a time: others wait. A step after a refit has the new weights. One that fails
    leaves the states as they were, unless the engine donates them: then it loses them, and ``reset`` begins anew.

    Args:
        engine: the engine of the network of one step.
        states: for each input that is a state, the output that is its next value: ``{"h0": "h0n"}``.
        initial: the states before the first step, by the name of the input; zeros for those that are not given.
        shapes: the shapes of inputs whose lengths the network leaves open, by name; such lengths are 1 by default.

    Attributes:
        engine: the engine.
        inputs: the names of the inputs that are no states, which a step takes.
        outputs: the names of the outputs that are no states, which a step returns.

    Raises:
        TypeError, ValueError: an argument is of another type, or names no input or output.
        NetworkError: the network is invalid for these shapes, or a next state is of another type than the state.
        InputError: an initial state does not fit; or the plan of the engine had no weights.
    """

    UNPICKLABLE = "cannot be pickled or copied, because its states are on a device; pickle the engine and the states"

    def __init__(
        self,
        engine: ICudaEngine,
        states: Mapping[str, str],
        *,
        initial: Mapping[str, Any] | None = None,
        shapes: Shapes | None = None,
    ) -> None:
        self.engine, shapes = check_instance("engine", engine, ICudaEngine), dict(shapes or {})
        self._executable = engine.executable
        require_weights(engine)
        require_names(engine, states, shapes)
        tensors, outputs = engine.network.inputs, [tensor.name for tensor in engine.network.outputs]
        types = {tensor: fixed_type(tensor, shapes) for tensor in tensors}
        require_pairs(tensors, engine.network.outputs, states, TypeTable(types))
        self._types = {key.name: of for key, of in types.items()}
        self._states = [tensor for tensor in tensors if tensor.name in states]
        self._others = [tensor for tensor in tensors if tensor.name not in states]
        self.inputs, self.outputs = [other.name for other in self._others], [*outputs]
        for name in states.values():
            self.outputs.remove(name)
        # the states, then the other inputs, in the order of the program
        places = {state: place for place, state in enumerate((*self._states, *self._others))}
        self._in_order = _picking(places[tensor] for tensor in tensors)
        self._next = _picking(outputs.index(states[state.name]) for state in self._states)
        self._returned = _picking(map(outputs.index, self.outputs))
        self._lock, self._ready = threading.Lock(), None
        self.reset(initial)
        self._compile()

    @property
    def device(self) -> JaxDevice:
        """The device of the engine, on which the states are too."""
        return self._executable.device

    def _compile(self) -> None:
        """Compile the program, unless the values of inputs decide its shapes."""
        if not self.engine.shape_inputs:
            others = [jax.ShapeDtypeStruct(self._types[name].shape, self._types[name].dtype) for name in self.inputs]
            values = self._in_order((*self._held, *others))
            with self._executable.settings():
                self._executable.find(dict(zip(self.engine.network.inputs, values, strict=True)))

    def __call__(self, inputs: Mapping[str, Any] | None = None, /, **named: Any) -> dict[str, jax.Array]:
        """Make a step; return its outputs that are no states, by name: ``step({"x": x})``, or ``step(x=x)``.

        Args:
            inputs: an array for each input that is no state, of its element type and shape.
            named: the arrays as arguments, instead of the dict.

        Raises:
            TypeError: there are both a dict and named arrays.
            InputError: the inputs do not fit; or an earlier step failed that had donated the states.
            ExecutionError: a computation failed.
        """
        if named and inputs is not None:
            raise TypeError("a step takes a dict of arrays, or the arrays by name, and not both")
        values = named if inputs is None else inputs
        require_jax()  # in a fork, a thread of the parent may hold the lock forever
        with self._lock:
            try:
                outputs = self._step(values)
            except BaseException:
                self._ready = None  # it may have lost the states, for which a checked step looks
                raise
            self._held = self._next(outputs)
        return dict(zip(self.outputs, self._returned(outputs), strict=True))

    def _step(self, inputs: Mapping[str, Any]) -> list[Any]:
        ready = self._ready
        if ready is not None and ready.generation is self._executable.generation:
            others = ready.inputs.arrays(inputs)
            if others is not None:
                return ready.call(self._in_order((*self._held, *others)))
        return self._checked_step(inputs)

    def _checked_step(self, inputs: Mapping[str, Any]) -> list[Any]:
        """The outputs of a step whose inputs may be of any types; the next step knows what was found."""
        _require_states(self._held)
        others = [*self._executable.taken(self._others, inputs).values()]
        for name, array in zip(self.inputs, others, strict=True):
            require_type(name, array, self._types[name])
        arrays = self._in_order((*self._held, *others))
        with self._executable.settings():
            result = self._executable.find(dict(zip(self.engine.network.inputs, arrays, strict=True)))
            types = self._executable.known_inputs(self.inputs, others)
            self._ready = ReadyCall.of(result, types, self._executable.settings)
            return result.call(arrays)

    @property
    def states(self) -> dict[str, jax.Array]:
        """The states before the next step, by the name of the input, which ``reset`` takes.

        The next step deletes those that the engine donates.
        """
        return {state.name: array for state, array in zip(self._states, self._held, strict=True)}

    def reset(self, states: Mapping[str, Any] | None = None) -> None:
        """Begin anew: set the states, by the name of the input; to zeros those that are not given.

        Raises:
            ValueError: there is no state of a name.
            InputError: a state does not fit.
        """
        values = dict(states or {})
        unknown = values.keys() - {state.name for state in self._states}
        if unknown:
            raise ValueError(f"there is no state {min(map(str, unknown))!r} to set")
        for state in self._states:
            of = self._types[state.name]
            values.setdefault(state.name, np.zeros(of.shape, of.dtype))
        arrays = check_values(self._states, values)
        for key, array in arrays.items():
            require_type(key.name, array, self._types[key.name])
        place = self._executable.recipe.placement
        with self._executable.settings(), self._lock:
            # a step may delete what it is given, so it gets copies
            self._held = tuple(map(place.copied, arrays.values()))


def _require_states(arrays: Iterable[jax.Array]) -> None:
    if any(array.is_deleted() for array in arrays):
        what, fix = "the states are lost, because a step failed that had donated them", "reset the Stepper"
        raise InputError(Finding("NL626", what, "", reason("NL626"), fix))


def _picking(places: Iterable[int]) -> Pick:
    """A function that returns the elements at some places, without a loop in Python."""
    chosen = [*places]
    first, end = min(chosen, default=0), max(chosen, default=-1) + 1
    # of one place an itemgetter returns the element itself, of a slice a sequence
    return operator.itemgetter(*([slice(first, end)] if chosen == [*range(first, end)] else chosen))
