"""Where an engine and the reference differ first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from netloop.api.engine import ICudaEngine, compile
from netloop.check import require_valid
from netloop.diagnostics import ExecutionError
from netloop.execution.probes import moment, places, watch
from netloop.graph.layer import check_instance
from netloop.graph.tensor import ITensor
from netloop.layers.loop import ILoop
from netloop.layers.sources import IConstantLayer
from netloop.network import INetworkDefinition
from netloop.reference import Trace
from netloop.types import Array

Trips = tuple[int, ...]


@dataclass(frozen=True)
class Difference:
    """An element of a tensor that an engine computes otherwise than the reference.

    Attributes:
        tensor: the name of the tensor.
        where: the line of the user's source that added its layer, and the layer.
        trips: the number of the trip in each loop around, by the name of the loop, the outermost first.
        index: where in the element the difference is greatest.
        expected: the number there by the reference; the shape, if that is what differs.
        got: the same by the engine.
        ulps: how many floating-point numbers the two are apart; None if they are none, or no numbers.
    """

    tensor: str
    where: str
    trips: dict[str, int]
    index: tuple[int, ...]
    expected: Any
    got: Any
    ulps: int | None

    def __str__(self) -> str:
        trips = "".join(f" in trip {trip} of {loop!r}" for loop, trip in reversed(self.trips.items()))
        index = f" at {list(self.index)}" if self.index else ""
        ulps = "" if self.ulps is None else f", {self.ulps} ulps off"
        return (
            f"{self.tensor!r} differs first{trips}{index}: {self.got} by the engine{ulps}, and {self.expected} by the "
            f"reference\n  at {self.where}"
        )


@dataclass(frozen=True)
class Comparison:
    """What an engine and the reference make of the same inputs.

    Attributes:
        difference: the first difference in running order; None if there is none.
        elements: how many elements of tensors were compared.
        skipped: the names of tensors of which the engine does not give all that the reference computed.
        reference_error: the error that the reference met; None if it met none.
        engine_error: the same of the engine.
    """

    difference: Difference | None
    elements: int
    skipped: tuple[str, ...] = ()
    reference_error: ExecutionError | None = None
    engine_error: ExecutionError | None = None

    @property
    def agrees(self) -> bool:
        """Whether nothing differs, errors included."""
        return self.difference is None and str(self.reference_error) == str(self.engine_error)

    def __str__(self) -> str:
        lines = [f"{self.elements} elements agree"] if self.difference is None else [str(self.difference)]
        if self.skipped:
            lines.append(f"not compared: {', '.join(map(repr, self.skipped))}")
        errors = {"reference": self.reference_error, "engine": self.engine_error}
        return "\n".join([*lines, *(f"the {name} fails: {error}" for name, error in errors.items() if error)])


def compare(
    network: INetworkDefinition,
    inputs: Mapping[str, Any],
    engine: ICudaEngine | None = None,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    max_trips: int | None = None,
) -> Comparison:
    """Where an engine and the reference differ first, in running order: the tensor, the layer and line, and the trip.

    The values inside of the engine are those of a copy of its network in which every tensor is an output too; XLA may
    round a little otherwise in it. Only elements that the outputs need are compared.

    Args:
        network: the network.
        inputs: an array for each input, by name, of exactly its element type and shape.
        engine: an engine of the network; None for one that is compiled here.
        rtol: how far a floating-point number may be off, relatively; None for the square root of its type's epsilon.
        atol: the same absolutely, and added to it.
        max_trips: how many trips a loop may make in the reference, and in an engine that is compiled here.

    Raises:
        NetworkError: the network has no meaning.
        InputError: an input is missing, unknown, or of another type or shape.
        ValueError: the engine is one of another network.
    """
    check_instance("network", network, INetworkDefinition)
    if engine is None:
        engine = compile(network, max_trips=max_trips)
    check_instance("engine", engine, ICudaEngine)
    if [type(each) for each in network.layers] != [type(each) for each in engine.network.layers]:
        raise ValueError("the engine is of another network: its layers are others")
    trace = Trace(network, inputs, max_trips)
    outputs, error = _outputs(engine, inputs)
    needed = _needed(network, engine.network, trace)
    lengths = {tensor: [max(each) + 1 for each in zip(*elements, strict=True)] for tensor, elements in needed.items()}
    watched = watch(engine.network, lengths, inputs, max(trace.most_trips, max_trips or 0))
    tolerance = _Tolerance(rtol, atol)
    first = _first(engine.network, needed, watched, tolerance) or _first_output(engine, trace, outputs, tolerance)
    skipped = tuple(tensor.name for tensor, array in watched.items() if array is None)
    compared = sum(len(elements) for tensor, elements in needed.items() if watched[tensor] is not None)
    return Comparison(first, compared, skipped, trace.error, error)


def _outputs(engine: ICudaEngine, inputs: Mapping[str, Any]) -> tuple[dict[str, Any], ExecutionError | None]:
    try:
        return engine(inputs), None
    except ExecutionError as error:
        return {}, error


def _needed(network: INetworkDefinition, twin: INetworkDefinition, trace: Trace) -> dict[ITensor, dict[Trips, Array]]:
    """The elements that the outputs need, by the reference, for the tensors of the engine."""
    found: dict[ITensor, dict[Trips, Array]] = {}
    for layer, own in zip(network.layers, twin.layers, strict=True):
        if isinstance(layer, IConstantLayer):
            continue
        for tensor, twin_of_it in zip(layer.outputs, own.outputs, strict=True):
            sequence = trace[tensor]
            if sequence.computed and twin_of_it.type.is_tensor and (elements := sequence.needed()):
                found[twin_of_it] = elements
    return found


# ---------------------------------------------------------------------- differences


def _first(
    network: INetworkDefinition,
    needed: Mapping[ITensor, Mapping[Trips, Array]],
    watched: Mapping[ITensor, Array | None],
    tolerance: _Tolerance,
) -> Difference | None:
    """The first difference in running order."""
    scopes, block = require_valid(network)
    found: list[tuple[tuple[float, ...], Difference]] = []
    for tensor, place in places(block):
        chain, array = scopes.chain_of(tensor), watched.get(tensor)
        if array is None:
            continue
        for trips, expected in sorted(needed[tensor].items()):
            numbers = tolerance.worst(expected, array[trips])
            if numbers is not None:
                found.append(
                    (moment(place, dict(zip(chain, trips, strict=True))), _difference(tensor, chain, trips, numbers))
                )
                break
    return min(found, key=lambda each: each[0])[1] if found else None


def _first_output(
    engine: ICudaEngine, trace: Trace, outputs: Mapping[str, Any], tolerance: _Tolerance
) -> Difference | None:
    """The first output in which an engine itself differs."""
    for tensor in engine.network.outputs:
        if tensor.name in outputs and tensor.name in trace.outputs:
            numbers = _worst_part(_parts(trace.outputs[tensor.name]), _parts(outputs[tensor.name]), tolerance)
            if numbers is not None:
                return _difference(tensor, (), (), numbers)
    return None


def _parts(value: Any) -> dict[tuple[int, ...], Array]:
    """The arrays of an output by their places in it: one, those of a sequence, or none of what is absent."""
    if isinstance(value, list):
        parts: list[Any] = value
        return {(place,): np.asarray(each) for place, each in enumerate(parts)}
    return {} if value is None else {(): np.asarray(value)}


def _worst_part(
    expected: dict[tuple[int, ...], Array], got: dict[tuple[int, ...], Array], tolerance: _Tolerance
) -> _Numbers | None:
    if expected.keys() != got.keys():
        return (), f"{len(expected)} arrays", f"{len(got)} arrays", None
    for place, each in expected.items():
        numbers = tolerance.worst(each, got[place])
        if numbers is not None:
            return (*place, *numbers[0]), *numbers[1:]
    return None


def _difference(tensor: ITensor, chain: Sequence[ILoop], trips: Trips, numbers: _Numbers) -> Difference:
    where = tensor.producer.where if tensor.producer is not None else ""
    named = {loop.name: trip for loop, trip in zip(chain, trips, strict=True)}
    return Difference(tensor.name, where, named, *numbers)


_Numbers = tuple[tuple[int, ...], Any, Any, int | None]
"""Where two arrays differ most: the index, the numbers there, and how many floating-point numbers they are apart."""


@dataclass(frozen=True)
class _Tolerance:
    """How far numbers may be off."""

    rtol: float | None
    atol: float | None

    def worst(self, expected: Array, got: Array) -> _Numbers | None:
        """Where two arrays differ most; None if they are near enough everywhere."""
        if expected.shape != got.shape:
            return (), expected.shape, got.shape, None
        if not expected.size:
            return None
        with np.errstate(all="ignore"):
            excess = self._excess(expected, got)
        index = np.unravel_index(int(np.argmax(excess)), expected.shape)
        if not excess[index] > 0:
            return None
        return tuple(map(int, index)), expected[index], got[index], _ulps(expected[index], got[index])

    def _excess(self, expected: Array, got: Array) -> Array:
        """How far each number is off beyond what it may be."""
        if not jnp.issubdtype(expected.dtype, jnp.floating):
            return (expected != got).astype(np.float64)
        a, b = expected.astype(np.float64), got.astype(np.float64)
        usual = float(jnp.finfo(expected.dtype).eps) ** 0.5
        rtol, atol = (usual if each is None else each for each in (self.rtol, self.atol))
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        excess = np.abs(a - b) - (atol + rtol * np.abs(a))
        # what is infinite or no number is off without bounds, unless both are the same
        return np.where(same, 0.0, np.where(np.isfinite(a) & np.isfinite(b), excess, np.inf))


def _ulps(a: Any, b: Any) -> int | None:
    """How many floating-point numbers two of one type are apart; None if they are none, or are no numbers."""
    if not jnp.issubdtype(a.dtype, jnp.floating) or np.isnan(np.float64(a)) or np.isnan(np.float64(b)):
        return None
    return abs(_rank(a) - _rank(b))


def _rank(x: Any) -> int:
    """The number of floating-point numbers from zero to ``x``, negative below zero."""
    bits = int(np.asarray(x).view(f"u{x.dtype.itemsize}"))
    sign = 1 << (8 * x.dtype.itemsize - 1)
    return sign - bits if bits & sign else bits
