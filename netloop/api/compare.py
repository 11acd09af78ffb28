"""Compare an engine with the reference, and find where they differ first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from netloop.api.engine import ICudaEngine, compile
from netloop.api.tolerance import Numbers, Tolerance, Tolerances, note_on_products
from netloop.compiler.execution.probes import moment, positions, record_elements
from netloop.compiler.product_precision import FLOAT32
from netloop.model.check import require_valid
from netloop.model.graph import ITensor, check_instance
from netloop.model.layers.loop import ILoop
from netloop.model.layers.sources import IConstantLayer
from netloop.model.network import INetworkDefinition
from netloop.model.reference import Trace
from netloop.values.diagnostics import ExecutionError
from netloop.values.types import Array

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
        peer: what the engine is compared with.
    """

    tensor: str
    where: str
    iterations: dict[str, int]
    index: tuple[int, ...]
    expected: Any
    got: Any
    ulps: int | None
    peer: str = "the reference"

    def __str__(self) -> str:
        at = "".join(f" in iteration {number} of {loop!r}" for loop, number in reversed(self.iterations.items()))
        index = f" at {list(self.index)}" if self.index else ""
        ulps = "" if self.ulps is None else f", {self.ulps} ulps off"
        return (
            f"{self.tensor!r} differs first{at}{index}: the engine computes {self.got}{ulps}, and {self.peer} "
            f"{self.expected}\n  at {self.where}"
        )


@dataclass(frozen=True)
class Comparison:
    """The results of an engine and the reference on the same inputs.

    Attributes:
        difference: the first difference in running order; None if there is none.
        elements: the number of compared elements of tensors.
        skipped: the names of tensors with elements that the reference computed and the engine did not return.
        hidden: the names of tensors whose numbers are all smaller than the absolute tolerance, so that zeros would
            agree too.
        reference_error: the error of the reference, or None.
        engine_error: the error of the engine, or None.
        products: the type to which the engine rounds the operands of the float32 products of the network; float32 if it
            has none, or rounds nothing.
    """

    difference: Difference | None
    elements: int
    skipped: tuple[str, ...] = ()
    reference_error: ExecutionError | None = None
    engine_error: ExecutionError | None = None
    hidden: tuple[str, ...] = ()
    products: str = FLOAT32.name

    @property
    def agrees(self) -> bool:
        """Whether nothing differs, errors included."""
        return self.difference is None and str(self.reference_error) == str(self.engine_error)

    def __str__(self) -> str:
        agreeing = f"{self.elements} elements agree" if self.elements else "there were no elements to compare"
        lines = [agreeing if self.difference is None else str(self.difference)]
        if self.hidden and self.difference is None:
            names = ", ".join(map(repr, self.hidden))
            lines.append(f"the absolute tolerance is larger than every number of {names}, so zeros would agree too")
        lines += filter(None, [note_on_products(self.products)])
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
        rtol: the relative tolerance of floating-point numbers; None for the square root of the epsilon of their type,
            or of the type to which the engine's device rounds the operands of float32 products from which they follow.
        atol: the absolute tolerance, added to the relative one; None for the same, times the root mean square of the
            reference's numbers of the tensor if that is less than 1. Integers, bools and strings have to be equal.
        max_trips: the largest number of iterations of a loop in the reference, and in an engine compiled here; None
            for that of the engine.

    Raises:
        NetworkError: the network is invalid.
        InputError: an input is missing, unknown, or of another type or shape.
        ValueError: the engine belongs to another network.
        ExecutionError: the device failed, perhaps as it has no memory for the values of all tensors.
    """
    check_instance("network", network, INetworkDefinition)
    if engine is None:
        engine = compile(network, max_trips=max_trips)
    check_instance("engine", engine, ICudaEngine)
    if [type(layer) for layer in network.layers] != [type(layer) for layer in engine.network.layers]:
        raise ValueError("the engine belongs to another network: its layers are different")
    max_trips = engine.max_trips if max_trips is None else max_trips
    trace = Trace(network, inputs, max_trips)
    outputs, error = _outputs(engine, inputs)
    needed = _needed(network, engine.network, trace)
    counts = {tensor: [max(entry) + 1 for entry in zip(*elements, strict=True)] for tensor, elements in needed.items()}
    most = max(trace.most_trips, max_trips or 0)
    recorded = record_elements(engine.network, counts, inputs, most, engine.recipe)
    tolerances = Tolerances(rtol, atol, engine.network, engine.recipe)
    first = first_difference(engine.network, needed, recorded, tolerances) or _first_output(
        engine, trace, outputs, tolerances
    )
    skipped = tuple(tensor.name for tensor, array in recorded.items() if array is None)
    compared = sum(len(elements) for tensor, elements in needed.items() if recorded[tensor] is not None)
    hidden = (
        ()
        if atol is None
        else tuple(key.name for key, at in needed.items() if tolerances.of(key).limits(*at.values()).hides_all)
    )
    return Comparison(first, compared, skipped, trace.error, error, hidden, tolerances.products.name)


def _outputs(engine: ICudaEngine, inputs: Mapping[str, Any]) -> tuple[dict[str, Any], ExecutionError | None]:
    try:
        return engine(inputs), None
    except ExecutionError as error:
        return {}, error


def _needed(
    network: INetworkDefinition, copy: INetworkDefinition, trace: Trace
) -> dict[ITensor, dict[Iterations, Array]]:
    """The reference's elements that the outputs need, for the tensors of the engine's copy of the network."""
    arrays: dict[ITensor, dict[Iterations, Array]] = {}
    for layer, copied in zip(network.layers, copy.layers, strict=True):
        if isinstance(layer, IConstantLayer):
            continue
        for tensor, of_engine in zip(layer.outputs, copied.outputs, strict=True):
            sequence = trace[tensor]
            if sequence.computed and of_engine.type.is_tensor and (elements := sequence.needed()):
                arrays[of_engine] = elements
    return arrays


# ---------------------------------------------------------------------- differences


def first_difference(
    network: INetworkDefinition,
    needed: Mapping[ITensor, Mapping[Iterations, Array]],
    recorded: Mapping[ITensor, Array | None],
    tolerances: Tolerances,
) -> Difference | None:
    """The first difference in running order.

    Args:
        network: the network.
        needed: the elements to compare, by tensor and the iterations of its loops: what is expected.
        recorded: what the engine computes, as ``record_elements`` returns it.
        tolerances: the tolerances.
    """
    scopes, block = require_valid(network)
    values: list[tuple[tuple[float, ...], Difference]] = []
    for tensor, slot in positions(block):
        chain, array = scopes.chain_of(tensor), recorded.get(tensor)
        if array is None:
            continue
        # of all iterations together: a residual of a loop that converges ends as the noise of its rounding
        limits = tolerances.of(tensor).limits(*needed[tensor].values())
        for at, expected in sorted(needed[tensor].items()):
            numbers = limits.worst(expected, array[(*at, ...)])
            if numbers is not None:
                values.append(
                    (moment(slot, dict(zip(chain, at, strict=True))), _difference(tensor, chain, at, numbers))
                )
                break
    return min(values, key=lambda entry: entry[0])[1] if values else None


def _first_output(
    engine: ICudaEngine, trace: Trace, outputs: Mapping[str, Any], tolerances: Tolerances
) -> Difference | None:
    """The first difference in an output of the engine itself."""
    for tensor in engine.network.outputs:
        if tensor.name in outputs and tensor.name in trace.outputs:
            expected, got = _parts(trace.outputs[tensor.name]), _parts(outputs[tensor.name])
            numbers = _worst_part(expected, got, tolerances.of(tensor))
            if numbers is not None:
                return _difference(tensor, (), (), numbers)
    return None


def _parts(value: Any) -> dict[tuple[int, ...], Array]:
    """The arrays of an output by index: one for a tensor, each of a sequence, none for an absent value."""
    if isinstance(value, list):
        parts: list[Any] = value
        return {(index,): np.asarray(part) for index, part in enumerate(parts)}
    return {} if value is None else {(): np.asarray(value)}


def _worst_part(
    expected: dict[tuple[int, ...], Array], got: dict[tuple[int, ...], Array], tolerance: Tolerance
) -> Numbers | None:
    if expected.keys() != got.keys():
        return (), f"{len(expected)} arrays", f"{len(got)} arrays", None
    for index, array in expected.items():
        numbers = tolerance.limits(array).worst(array, got[index])
        if numbers is not None:
            return (*index, *numbers[0]), *numbers[1:]
    return None


def _difference(tensor: ITensor, chain: Sequence[ILoop], at: Iterations, numbers: Numbers) -> Difference:
    where = tensor.producer.where if tensor.producer is not None else ""
    named = {loop.name: number for loop, number in zip(chain, at, strict=True)}
    return Difference(tensor.name, where, named, *numbers)
