"""Compare an engine with the reference, and find where they differ first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from netloop.api.engine import ICudaEngine, compile
from netloop.check import require_valid
from netloop.diagnostics import ExecutionError
from netloop.execution.probes import moment, record_elements, slots
from netloop.graph.attributes import check_instance
from netloop.graph.tensor import ITensor
from netloop.layers.loop import ILoop
from netloop.layers.sources import IConstantLayer
from netloop.network import INetworkDefinition
from netloop.reference import Trace
from netloop.types import Array

Iterations = tuple[int, ...]
"""The index of an iteration of each enclosing loop, the outermost first."""


@dataclass(frozen=True)
class Difference:
    """An element of a tensor that differs between an engine and the reference.

    Attributes:
        tensor: the name of the tensor.
        where: the line of the user's script that added its layer, and the layer.
        iterations: the index of the iteration of each enclosing loop, by the name of the loop, the outermost first.
        index: the index in the element of the largest difference.
        expected: the reference's number there; its shape, if the shapes differ.
        got: the engine's number or shape.
        ulps: the distance in floating-point numbers; None for other types and NaN.
    """

    tensor: str
    where: str
    iterations: dict[str, int]
    index: tuple[int, ...]
    expected: Any
    got: Any
    ulps: int | None

    def __str__(self) -> str:
        at = "".join(f" in iteration {number} of {loop!r}" for loop, number in reversed(self.iterations.items()))
        index = f" at {list(self.index)}" if self.index else ""
        ulps = "" if self.ulps is None else f", {self.ulps} ulps off"
        return (
            f"{self.tensor!r} differs first{at}{index}: the engine computes {self.got}{ulps}, and the reference "
            f"{self.expected}\n  at {self.where}"
        )


@dataclass(frozen=True)
class Comparison:
    """The results of an engine and the reference on the same inputs.

    Attributes:
        difference: the first difference in running order; None if there is none.
        elements: the number of compared elements of tensors.
        skipped: the names of tensors with elements that the reference computed and the engine did not return.
        reference_error: the error of the reference, or None.
        engine_error: the error of the engine, or None.
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
    """Find the first difference between an engine and the reference: the tensor, its layer and line, the iteration.

    "First" refers to running order. The values inside the engine are those of a copy of its network in which every
    tensor is an output, and which XLA may round slightly differently. Only elements that the outputs need are compared.

    Args:
        network: the network.
        inputs: an array for each input, by name, of exactly its element type and shape.
        engine: an engine of the network; None to compile one.
        rtol: the relative tolerance of floating-point numbers; None for the square root of the epsilon of their type.
        atol: the absolute tolerance, added to the relative one; None for the same.
        max_trips: the largest number of iterations of a loop in the reference, and in an engine compiled here.

    Raises:
        NetworkError: the network is invalid.
        InputError: an input is missing, unknown, or of another type or shape.
        ValueError: the engine belongs to another network.
    """
    check_instance("network", network, INetworkDefinition)
    if engine is None:
        engine = compile(network, max_trips=max_trips)
    check_instance("engine", engine, ICudaEngine)
    if [type(each) for each in network.layers] != [type(each) for each in engine.network.layers]:
        raise ValueError("the engine belongs to another network: its layers are different")
    trace = Trace(network, inputs, max_trips)
    outputs, error = _outputs(engine, inputs)
    needed = _needed(network, engine.network, trace)
    counts = {tensor: [max(each) + 1 for each in zip(*elements, strict=True)] for tensor, elements in needed.items()}
    recorded = record_elements(engine.network, counts, inputs, max(trace.most_trips, max_trips or 0))
    tolerance = _Tolerance(rtol, atol)
    first = _first(engine.network, needed, recorded, tolerance) or _first_output(engine, trace, outputs, tolerance)
    skipped = tuple(tensor.name for tensor, array in recorded.items() if array is None)
    compared = sum(len(elements) for tensor, elements in needed.items() if recorded[tensor] is not None)
    return Comparison(first, compared, skipped, trace.error, error)


def _outputs(engine: ICudaEngine, inputs: Mapping[str, Any]) -> tuple[dict[str, Any], ExecutionError | None]:
    try:
        return engine(inputs), None
    except ExecutionError as error:
        return {}, error


def _needed(
    network: INetworkDefinition, copy: INetworkDefinition, trace: Trace
) -> dict[ITensor, dict[Iterations, Array]]:
    """The reference's elements that the outputs need, for the tensors of the engine's copy of the network."""
    found: dict[ITensor, dict[Iterations, Array]] = {}
    for layer, copied in zip(network.layers, copy.layers, strict=True):
        if isinstance(layer, IConstantLayer):
            continue
        for tensor, of_engine in zip(layer.outputs, copied.outputs, strict=True):
            sequence = trace[tensor]
            if sequence.computed and of_engine.type.is_tensor and (elements := sequence.needed()):
                found[of_engine] = elements
    return found


# ---------------------------------------------------------------------- differences


def _first(
    network: INetworkDefinition,
    needed: Mapping[ITensor, Mapping[Iterations, Array]],
    recorded: Mapping[ITensor, Array | None],
    tolerance: _Tolerance,
) -> Difference | None:
    """The first difference in running order."""
    scopes, block = require_valid(network)
    found: list[tuple[tuple[float, ...], Difference]] = []
    for tensor, slot in slots(block):
        chain, array = scopes.chain_of(tensor), recorded.get(tensor)
        if array is None:
            continue
        for at, expected in sorted(needed[tensor].items()):
            numbers = tolerance.worst(expected, array[(*at, ...)])
            if numbers is not None:
                found.append((moment(slot, dict(zip(chain, at, strict=True))), _difference(tensor, chain, at, numbers)))
                break
    return min(found, key=lambda each: each[0])[1] if found else None


def _first_output(
    engine: ICudaEngine, trace: Trace, outputs: Mapping[str, Any], tolerance: _Tolerance
) -> Difference | None:
    """The first difference in an output of the engine itself."""
    for tensor in engine.network.outputs:
        if tensor.name in outputs and tensor.name in trace.outputs:
            numbers = _worst_part(_parts(trace.outputs[tensor.name]), _parts(outputs[tensor.name]), tolerance)
            if numbers is not None:
                return _difference(tensor, (), (), numbers)
    return None


def _parts(value: Any) -> dict[tuple[int, ...], Array]:
    """The arrays of an output by index: one for a tensor, each of a sequence, none for an absent value."""
    if isinstance(value, list):
        parts: list[Any] = value
        return {(index,): np.asarray(each) for index, each in enumerate(parts)}
    return {} if value is None else {(): np.asarray(value)}


def _worst_part(
    expected: dict[tuple[int, ...], Array], got: dict[tuple[int, ...], Array], tolerance: _Tolerance
) -> _Numbers | None:
    if expected.keys() != got.keys():
        return (), f"{len(expected)} arrays", f"{len(got)} arrays", None
    for index, each in expected.items():
        numbers = tolerance.worst(each, got[index])
        if numbers is not None:
            return (*index, *numbers[0]), *numbers[1:]
    return None


def _difference(tensor: ITensor, chain: Sequence[ILoop], at: Iterations, numbers: _Numbers) -> Difference:
    where = tensor.producer.where if tensor.producer is not None else ""
    named = {loop.name: number for loop, number in zip(chain, at, strict=True)}
    return Difference(tensor.name, where, named, *numbers)


_Numbers = tuple[tuple[int, ...], Any, Any, int | None]
"""The largest difference of two arrays: the index, the two numbers, and their distance in ulps."""


@dataclass(frozen=True)
class _Tolerance:
    """The tolerances of a comparison."""

    rtol: float | None
    atol: float | None

    def worst(self, expected: Array, got: Array) -> _Numbers | None:
        """The largest difference of two arrays; None if they are equal within the tolerances."""
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
        """The amount by which each number exceeds the tolerances."""
        if not jnp.issubdtype(expected.dtype, jnp.floating):
            return (expected != got).astype(np.float64)
        a, b = expected.astype(np.float64), got.astype(np.float64)
        usual = float(jnp.finfo(expected.dtype).eps) ** 0.5
        rtol, atol = (usual if each is None else each for each in (self.rtol, self.atol))
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        excess = np.abs(a - b) - (atol + rtol * np.abs(a))
        # infinities and NaN differ infinitely, unless both numbers are the same
        return np.where(same, 0.0, np.where(np.isfinite(a) & np.isfinite(b), excess, np.inf))


def _ulps(a: Any, b: Any) -> int | None:
    """The distance of two numbers of one floating-point type in ulps; None for other types, strings and NaN."""
    is_float = not isinstance(a, str) and jnp.issubdtype(a.dtype, jnp.floating)
    if not is_float or np.isnan(np.float64(a)) or np.isnan(np.float64(b)):
        return None
    return abs(_rank(a) - _rank(b))


def _rank(x: Any) -> int:
    """The index of ``x`` in the ordered floating-point numbers of its type; 0 for zero."""
    bits = int(np.asarray(x).view(f"u{x.dtype.itemsize}"))
    sign = 1 << (8 * x.dtype.itemsize - 1)
    return sign - bits if bits & sign else bits
