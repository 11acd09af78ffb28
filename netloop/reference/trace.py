"""The reference as an object to explore: the elements of every tensor, and which of them the outputs needed."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from netloop.diagnostics import ExecutionError, Finding, InputError, did_you_mean, listed, reason
from netloop.graph.layer import ILayer, check_instance, check_tensor
from netloop.graph.tensor import ITensor
from netloop.layers.loop import ILoop, ITripLimitLayer, Trips
from netloop.network import INetworkDefinition
from netloop.reference.interpreter import Interpreter
from netloop.types import Array
from netloop.values import given_back

T = TypeVar("T", ITensor, ILoop)


def trace(network: INetworkDefinition, inputs: Mapping[str, Any], *, max_trips: int | None = None) -> Trace:
    """The elements of all tensors of a network by its formal meaning, for one set of inputs.

    The outputs are evaluated at once, and as lazily as :func:`netloop.evaluate` does it. An error on the way is kept as
    ``error``, and what had been computed before it can be looked at.

    Args:
        network: the network; later edits do not reach the trace.
        inputs: an array for each input, by name, of exactly its element type and shape.
        max_trips: how many trips a loop may make, each time that it is entered; None for any number.

    Raises:
        NetworkError: the network has no meaning.
        InputError: an input is missing, unknown, or of another type or shape.
    """
    check_instance("network", network, INetworkDefinition)
    return Trace(network, inputs, max_trips)


class Trace:
    """The elements of all tensors of a network, for given inputs: ``trace[tensor][trip]``.

    Attributes:
        error: the error that the outputs met; None if they met none.
        outputs: the outputs by name; empty if they met an error.
        most_trips: the most trips that a loop made for the outputs.
    """

    def __init__(self, network: INetworkDefinition, inputs: Mapping[str, Any], max_trips: int | None = None) -> None:
        twin = network.copy()
        self._twins: dict[ITensor, ITensor] = dict(zip(_tensors(network), _tensors(twin), strict=True))
        self._loops: dict[ILoop, ILoop] = dict(zip(network.loops, twin.loops, strict=True))
        self._given = twin, dict(inputs), max_trips
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
        """The elements of a tensor, which is given by itself or by its name.

        Raises:
            InputError: there is no such tensor, or there are several of this name.
            NetworkError: no output needs the tensor, and it has no meaning.
        """
        if not isinstance(tensor, str):
            check_tensor(tensor, "tensor")
        found = _find(tensor, self._twins, "tensor")
        twin = self._twins[found]
        interpreter = self._interpreter_for([] if twin.producer is None else [twin.producer])
        computed = [()] if twin.producer is None else sorted(self._computed.get(twin, []))
        return LazySequence(interpreter, twin, computed)

    def trips(self, loop: ILoop | str, *outer: int) -> Any:
        """How many trips a loop makes in the trips ``outer`` of the loops around it, the outermost first.

        Without some of these, it is a list: a number for each trip of the loops that are left out.

        Raises:
            InputError: there is no such loop, or there are several of this name.
            ExecutionError: it makes more than ``max_trips``, or what limits it has no value.
        """
        if not isinstance(loop, str):
            check_instance("loop", loop, ILoop)
        twin = self._loops[_find(loop, self._loops, "loop")]
        interpreter = self._interpreter_for(twin.boundary(ITripLimitLayer))
        around = interpreter.scopes.chain_around(twin)
        if len(outer) > len(around):
            raise IndexError(f"{twin.name!r} has {len(around)} loops around it, and was given {len(outer)} trips")
        at = dict(zip(around, map(operator.index, outer), strict=False))
        return _each(interpreter, around, at, lambda at: interpreter.trips(twin, at))

    def _interpreter_for(self, layers: Sequence[ILayer]) -> Interpreter:
        """What evaluates some layers: where the outputs do not need them, the network as if they did."""
        if self._live.issuperset(layers):
            return self._interpreter
        key = tuple(layers)
        if key not in self._others:
            self._others[key] = Interpreter(*self._given, also=key)
        return self._others[key]

    def __repr__(self) -> str:
        return f"<Trace of {self._given[0].name!r}, {len(self._twins)} tensors>"


class LazySequence:
    """The elements of a tensor: ``h[2]``, ``h[-1]``, ``h[0:3]``, and with nested loops an index for each, ``h[i, j]``.

    An index that is left out stands for all trips. What was not computed yet is computed when it is asked for. An index
    may go beyond the last trip, as the sequence does; slices and negative indices go by the number of trips.

    Attributes:
        name: the name of the tensor.
        loops: the names of the loops in which it varies, the outermost first.
        computed: the trips of the elements that the outputs needed: numbers, or tuples of them for any number of loops
            but one.
    """

    def __init__(self, interpreter: Interpreter, tensor: ITensor, computed: Sequence[tuple[int, ...]]) -> None:
        self._interpreter = interpreter
        self._tensor = tensor
        self._chain = interpreter.scopes.chain_of(tensor)
        self.name = tensor.name
        self.loops = tuple(each.name for each in self._chain)
        self.computed: list[Any] = [each[0] if len(each) == 1 else each for each in computed]

    @property
    def value(self) -> Array:
        """The one value of a tensor that varies in no loop.

        Raises:
            IndexError: it varies in a loop.
            ExecutionError: it has none.
        """
        if self._chain:
            raise IndexError(f"{self.name!r} varies in {listed(self.loops)}: it has a value for each trip")
        return self[()]

    def __getitem__(self, index: Any) -> Any:
        """An element as an array, or a list for each index that is a slice or left out.

        Raises:
            IndexError: there are more indices than loops, or a negative one goes before the first trip.
            ExecutionError: an element has no value.
        """
        indices = index if isinstance(index, tuple) else (index,)
        if len(indices) > len(self._chain):
            raise IndexError(f"{self.name!r} varies in {len(self._chain)} loops, and was given {len(indices)} indices")
        return self._pick(indices + (slice(None),) * (len(self._chain) - len(indices)), {})

    def needed(self) -> dict[tuple[int, ...], Array]:
        """The elements that the outputs needed, by their trips, but for those past the last trip of a loop."""
        at = [each if isinstance(each, tuple) else (each,) for each in self.computed]
        return {each: self[each] for each in at if self._is_trip(each)}

    def _is_trip(self, trips: tuple[int, ...]) -> bool:
        at: Trips = {}
        for loop, trip in zip(self._chain, trips, strict=True):
            if self._interpreter.trips(loop, at, trip + 1) <= trip:
                return False
            at[loop] = trip
        return True

    def _pick(self, indices: tuple[Any, ...], at: Trips) -> Any:
        if len(at) == len(self._chain):
            return given_back(self._interpreter.value(self._tensor, at))
        index, loop = indices[len(at)], self._chain[len(at)]
        if isinstance(index, slice):
            return [self._pick(indices, {**at, loop: trip}) for trip in self._range(index, loop, at)]
        return self._pick(indices, {**at, loop: self._trip(index, loop, at)})

    def _range(self, index: slice, loop: ILoop, at: Trips) -> range:
        forward = all(each is None or operator.index(each) >= 0 for each in (index.start, index.stop, index.step))
        most = operator.index(index.stop) if forward and index.stop is not None else None
        return range(self._interpreter.trips(loop, at, most))[index]

    def _trip(self, index: Any, loop: ILoop, at: Trips) -> int:
        trip = operator.index(index)
        if trip < 0:
            trip += self._interpreter.trips(loop, at)
        if trip < 0:
            raise IndexError(f"{loop.name!r} makes {trip - index} trips, and was asked for {index}")
        return trip

    def __len__(self) -> int:
        """The number of trips of the outermost loop in which it varies."""
        if not self._chain:
            raise TypeError(f"{self.name!r} varies in no loop")
        return self._interpreter.trips(self._chain[0], {})

    def __iter__(self) -> Iterator[Any]:
        return (self[trip] for trip in range(len(self)))

    def __repr__(self) -> str:
        where = f"in {'loops' if len(self.loops) > 1 else 'loop'} {listed(self.loops)}" if self.loops else "in no loop"
        trips = self._interpreter.known_trips(self._chain[0]) if len(self._chain) == 1 else None
        made = "" if trips is None else f"{trips} trip{'s' * (trips != 1)}, "
        return f"{self.name}: {self._interpreter.types[self._tensor]}, {where}, {made}{_shown(self.computed)}"


def _shown(computed: Sequence[Any]) -> str:
    if not computed:
        return "not computed"
    if computed == [()]:
        return "computed"
    first, last = computed[0], computed[-1]
    if computed == list(range(len(computed))):
        return f"computed {first}..{last}" if last else "computed 0"
    return f"computed {len(computed)} element{'s' * (len(computed) != 1)}"


def _each(interpreter: Interpreter, around: Sequence[ILoop], at: Trips, ask: Callable[[Trips], Any]) -> Any:
    """The answer at some trips, or a list of them for each loop of which the trip is open."""
    if len(at) == len(around):
        return ask(at)
    loop = around[len(at)]
    trips = interpreter.trips(loop, at)
    return [_each(interpreter, around, {**at, loop: trip}, ask) for trip in range(trips)]


def _tensors(network: INetworkDefinition) -> list[ITensor]:
    return network.inputs + [tensor for layer in network.layers for tensor in layer.outputs]


def _find(wanted: T | str, known: Collection[T], kind: str) -> T:
    """The tensor or loop that is wanted, or the only one of a name."""
    if not isinstance(wanted, str):
        if wanted not in known:
            raise InputError(Finding("NL610", f"{kind} {wanted.name!r} was not in the network when it was traced"))
        return wanted
    found = [each for each in known if each.name == wanted]
    if len(found) == 1:
        return found[0]
    if found:
        what = f"{len(found)} {kind}s are called {wanted!r}"
        raise InputError(
            Finding("NL610", what, why=reason("NL610"), fix=f"give the {kind} itself, or names of their own")
        )
    raise InputError(
        Finding(
            "NL610", f"the network has no {kind} {wanted!r}", fix=did_you_mean(wanted, [each.name for each in known])
        )
    )
