"""Inputs for timing, where a build knows none."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from netloop.compiler.execution.engines import Tunable
from netloop.compiler.tuning.trip_inputs import trip_inputs
from netloop.model.graph.tensor import ITensor
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import ExecutionError
from netloop.values.types import Array


class NoSamples(Exception):
    """Inputs cannot be made up; the message says why."""


@dataclass(frozen=True)
class Samples:
    """Known shapes and values of the inputs of a network, by their names.

    Attributes:
        shapes: the shapes.
        values: the elements of shape inputs.
    """

    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict[str, Sequence[int]])
    values: Mapping[str, Sequence[int]] = field(default_factory=dict[str, Sequence[int]])


def sample_inputs(network: INetworkDefinition, samples: Samples) -> dict[str, Array]:
    """Inputs of the fixed or known shapes: small random numbers, zeros for integers, and what lets loops run.

    Raises:
        NoSamples: a shape is unknown, or an input is no tensor of numbers.
    """
    random = np.random.default_rng(0)
    shapes = {tensor: _shape(tensor, samples.shapes) for tensor in network.inputs}
    counts, deciding = trip_inputs(network, shapes), network.shape_tensors()
    arrays = dict[str, Array]()
    for tensor, shape in shapes.items():
        known = samples.values.get(tensor.name)
        if known is None and tensor in deciding and tensor not in counts:
            raise NoSamples(f"the value of the input {tensor.name!r} decides a shape")
        arrays[tensor.name] = _numbers(tensor, shape, random)
        if tensor in counts:
            arrays[tensor.name] = counts[tensor]
        if known is not None:
            arrays[tensor.name] = np.array(known, tensor.type.dtype).reshape(shape)
    return arrays


def _shape(tensor: ITensor, shapes: Mapping[str, Sequence[int]]) -> tuple[int, ...]:
    if not tensor.type.is_tensor or tensor.type.is_string:
        raise NoSamples(f"the input {tensor.name!r} is {tensor.type}")
    shape = tuple(shapes.get(tensor.name, tensor.type.shape))
    if any(length < 0 for length in shape):
        raise NoSamples(f"the input {tensor.name!r} is {tensor.type}, which is no fixed shape")
    return shape


def _numbers(tensor: ITensor, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    if tensor.type.is_float:
        return np.asarray(random.standard_normal(shape) * 0.1).astype(tensor.type.dtype)
    return np.zeros(shape, tensor.type.dtype)


def require_ending(engine: Tunable, limited: Callable[[], Tunable], inputs: Mapping[str, Any]) -> None:
    """Check that made-up inputs let all loops of an engine end, and calls succeed.

    ``limited`` returns the engine with a limit to the iterations of its loops, which is needed unless all are scans.

    Raises:
        NoSamples: a call fails.
    """
    asked = limited() if engine.may_run_forever else engine
    try:
        asked.run_to_end(inputs)
    except ExecutionError as error:
        raise NoSamples(f"a call with made-up inputs fails: {error.findings[0].what}") from None
