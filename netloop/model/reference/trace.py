"""Traces: the elements of every tensor by the reference, and which of them the outputs needed."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from netloop.model.graph import ILayer, ITensor, check_instance, check_tensor
from netloop.model.layers.loop import ILoop, ITripLimitLayer, Trips
from netloop.model.network import INetworkDefinition
from netloop.model.reference.interpreter import Interpreter
from netloop.values.diagnostics import ExecutionError, Finding, InputError, did_you_mean, listed, reason
from netloop.values.tensor_values import to_user
from netloop.values.types import Array
from netloop.values.unpicklable import Unpicklable

T = TypeVar("T", ITensor, ILoop)


def trace(network: INetworkDefinition, inputs: Mapping[str, Any], *, max_trips: int | None = None) -> Trace:
    """The elements of all tensors of a network by its definition, for one set of inputs.

    The outputs are evaluated at once, as lazily as by :func:`netloop.evaluate`. If that fails, the error is kept as
    ``error``, and all elements that were computed before it are available. The arguments are those of ``evaluate``;
    later edits of the network do not reach the trace.

    Raises:
        NetworkError: the network has errors for these inputs.
        InputError: an input is missing, unknown, or of another type or shape.
    """
    check_instance("network", network, INetworkDefinition)
    return Trace(network, inputs, max_trips)


class Trace(Unpicklable):
    """The elements of all tensors of a network, for given inputs: ``trace[tensor][iteration]``.

    Attributes:
        error: the error of the evaluation of the outputs; None if there was none.
        outputs: the outputs by name; empty if there was an error.
        most_trips: the largest trip count of a loop in this evaluation.
    """

    UNPICKLABLE = "cannot be pickled or copied, because it computes values when they are read; pickle the values"

    def __init__(self, network: INetworkDefinition, inputs: Mapping[str, Any], max_trips: int | None = None) -> None:
        copy = network.copy()
        self._copies: dict[ITensor, ITensor] = dict(zip(_tensors(network), _tensors(copy), strict=True))
        self._loops: dict[ILoop, ILoop] = dict(zip(network.loops, copy.loops, strict=True))
        self._given = copy, dict(inputs), max_trips
        self._interpreter = Interpreter(*self._given)
        self._live = frozenset(self._interpreter.scopes.live)
        self._others: dict[Any, Interpreter] = {}
        self.error: ExecutionError | None = None
        self.outputs: dict[str, Array | Any] = {}
        try:
            self.outputs = self._interpreter.outputs()
        except ExecutionError as error:
            self.error = error
        self._computed = self._interpreter.known()
        self.most_trips = self._interpreter.most_trips()

    def __getitem__(self, tensor: ITensor | str) -> LazySequence:
        """The elements of a tensor, given as itself or by its name.

        Raises:
            InputError: there is no such tensor, or there are several of this name.
            NetworkError: no output depends on the tensor, and the network has errors with it.
        """
        if not isinstance(tensor, str):
            check_tensor(tensor, "tensor")
        copy = self._copies[_find(tensor, self._copies, "tensor")]
        interpreter = self._interpreter_for([] if copy.producer is None else [copy.producer])
        computed = [()] if copy.producer is None else sorted(self._computed.get(copy, []))
        return LazySequence(interpreter, copy, computed)

    def trips(self, loop: ILoop | str, *outer: int) -> Any:
        """The trip count of a loop in the iterations ``outer`` of the loops around it, the outermost first.

        If some of these are left out, a list with the trip count in each iteration of the loops that are left out.

        Raises:
            InputError: there is no such loop, or there are several of this name.
            ExecutionError: the loop exceeds ``max_trips``, or its limit is undefined.
        """
        if not isinstance(loop, str):
            check_instance("loop", loop, ILoop)
        copy = self._loops[_find(loop, self._loops, "loop")]
        interpreter = self._interpreter_for(copy.boundary(ITripLimitLayer))
        around = interpreter.scopes.chain_around(copy)
        if len(outer) > len(around):
            raise IndexError(f"{copy.name!r} has {len(around)} loops around it, and was given {len(outer)} iterations")
        at = dict(zip(around, map(operator.index, outer), strict=False))
        return _nested(
            around, lambda loop, at: range(interpreter.trips(loop, at)), at, lambda at: interpreter.trips(copy, at)
        )

    def _interpreter_for(self, layers: Sequence[ILayer]) -> Interpreter:
        """The interpreter of the outputs, or another one if some layers are dead: they may change the nesting."""
        if self._live.issuperset(layers):
            return self._interpreter
        key = tuple(layers)
        if key not in self._others:
            self._others[key] = Interpreter(*self._given, also=key)
        return self._others[key]

    def __repr__(self) -> str:
        return f"<Trace of {self._given[0].name!r}, {len(self._copies)} tensors>"


class LazySequence:
    """The elements of a tensor: ``h[2]``, ``h[-1]``, ``h[0:3]``, and with nested loops an index for each, ``h[i, j]``.

    An index that is left out stands for all iterations. Elements are computed when they are first read. An index may go
    beyond the last iteration, as the sequence does; slices and negative indices refer to the trip count.

    Attributes:
        name: the name of the tensor.
        loops: the names of the loops in which it varies, the outermost first.
        computed: the iterations of the elements that the outputs needed: numbers if it varies in one loop, else tuples.
    """

    def __init__(self, interpreter: Interpreter, tensor: ITensor, computed: Sequence[tuple[int, ...]]) -> None:
        self._interpreter = interpreter
        self._tensor = tensor
        self._chain = interpreter.scopes.chain_of(tensor)
        self.name = tensor.name
        self.loops = tuple(loop.name for loop in self._chain)
        self.computed: list[Any] = [entry[0] if len(entry) == 1 else entry for entry in computed]

    @property
    def value(self) -> Array:
        """The value of a tensor that varies in no loop.

        Raises:
            IndexError: it varies in a loop.
            ExecutionError: it is undefined.
        """
        if self._chain:
            raise IndexError(f"{self.name!r} varies in {listed(self.loops)}: it has a value for each iteration")
        return self[()]

    def __getitem__(self, index: Any) -> Any:
        """An element as an array, or a list for each index that is a slice or left out.

        Raises:
            IndexError: there are more indices than loops, or a negative one is before the first iteration.
            ExecutionError: an element is undefined.
        """
        indices = index if isinstance(index, tuple) else (index,)
        if len(indices) > len(self._chain):
            raise IndexError(f"{self.name!r} varies in {len(self._chain)} loops, and was given {len(indices)} indices")
        slices = (slice(None),) * (len(self._chain) - len(indices))
        wanted = dict(zip(self._chain, indices + slices, strict=True))

        def trips(loop: ILoop, at: Trips) -> range | int:
            index = wanted[loop]
            return self._range(index, loop, at) if isinstance(index, slice) else self._trip(index, loop, at)

        return _nested(self._chain, trips, {}, lambda at: to_user(self._interpreter.value(self._tensor, at)))

    def needed(self) -> dict[tuple[int, ...], Array]:
        """The elements that the outputs needed, by iterations, except those past the last iteration of a loop, and past
        ``max_trips``.
        """
        at = [value if isinstance(value, tuple) else (value,) for value in self.computed]
        return {entry: self[entry] for entry in at if self._is_trip(entry)}

    def _is_trip(self, trips: tuple[int, ...]) -> bool:
        at: Trips = {}
        for loop, trip in zip(self._chain, trips, strict=True):
            try:
                if self._interpreter.trips(loop, at, trip + 1) <= trip:
                    return False
            except ExecutionError:
                return False
            at[loop] = trip
        return True

    def _range(self, index: slice, loop: ILoop, at: Trips) -> range:
        forward = all(value is None or operator.index(value) >= 0 for value in (index.start, index.stop, index.step))
        most = operator.index(index.stop) if forward and index.stop is not None else None
        return range(self._interpreter.trips(loop, at, most))[index]

    def _trip(self, index: Any, loop: ILoop, at: Trips) -> int:
        trip = operator.index(index)
        if trip < 0:
            trip += self._interpreter.trips(loop, at)
        if trip < 0:
            raise IndexError(f"{loop.name!r} makes {trip - index} iterations, and was asked for iteration {index}")
        return trip

    def __len__(self) -> int:
        """The trip count of the outermost loop in which it varies."""
        if not self._chain:
            raise TypeError(f"{self.name!r} varies in no loop")
        return self._interpreter.trips(self._chain[0], {})

    def __iter__(self) -> Iterator[Any]:
        return (self[trip] for trip in range(len(self)))

    def __repr__(self) -> str:
        where = f"in {'loops' if len(self.loops) > 1 else 'loop'} {listed(self.loops)}" if self.loops else "in no loop"
        trips = self._interpreter.known_trips(self._chain[0]) if len(self._chain) == 1 else None
        text = "" if trips is None else f"{trips} iteration{'s' * (trips != 1)}, "
        return f"{self.name}: {self._interpreter.types[self._tensor]}, {where}, {text}{_shown(self.computed)}"


def _shown(computed: Sequence[Any]) -> str:
    if not computed:
        return "not computed"
    if computed == [()]:
        return "computed"
    first, last = computed[0], computed[-1]
    if computed == list(range(len(computed))):
        return f"computed {first}..{last}" if last else "computed 0"
    return f"computed {len(computed)} element{'s' * (len(computed) != 1)}"


def _nested(
    chain: Sequence[ILoop], trips: Callable[[ILoop, Trips], range | int], at: Trips, ask: Callable[[Trips], Any]
) -> Any:
    """The answer in some iterations of nested loops, in lists that are nested as the loops are.

    ``trips`` gives an iteration of a loop or a range, which becomes a list, for each loop that is not in ``at``.
    """
    # an explicit stack, as nests may be deeper than Python recurses
    values: list[Any] = [None]
    stack: list[tuple[list[Any], int, Trips]] = [(values, 0, at)]
    while stack:
        answers, position, at = stack.pop()
        if len(at) == len(chain):
            answers[position] = ask(at)
            continue
        loop = chain[len(at)]
        picked = trips(loop, at)
        if isinstance(picked, int):
            stack.append((answers, position, {**at, loop: picked}))
        else:
            inner: list[Any] = [None] * len(picked)
            answers[position] = inner
            stack += [(inner, place, {**at, loop: trip}) for place, trip in reversed(list(enumerate(picked)))]
    return values[0]


def _tensors(network: INetworkDefinition) -> list[ITensor]:
    return network.inputs + [tensor for layer in network.layers for tensor in layer.outputs]


def _find(wanted: T | str, choices: Collection[T], kind: str) -> T:
    """The tensor or loop that is wanted, or the only one of this name."""
    if not isinstance(wanted, str):
        if wanted not in choices:
            raise InputError(Finding("NL610", f"{kind} {wanted.name!r} was not in the network when it was traced"))
        return wanted
    values = [t for t in choices if t.name == wanted]
    if len(values) == 1:
        return values[0]
    if values:
        what = f"{len(values)} {kind}s are called {wanted!r}"
        fix = f"pass the {kind} itself, or give each {kind} a name of its own"
        raise InputError(Finding("NL610", what, why=reason("NL610"), fix=fix))
    hint = did_you_mean(wanted, [t.name for t in choices])
    raise InputError(Finding("NL610", f"the network has no {kind} {wanted!r}", fix=hint))
