"""Scan."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from netloop.formats.onnx.importer.operators import Maybe, NodeCall, operator
from netloop.formats.onnx.importer.operators.control import names_of, split_outputs
from netloop.formats.shared import CarriedValues, name_layer
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import TripLimit
from netloop.values.types import normal_axis


@dataclass(frozen=True)
class _ScannedInputs:
    """Tensors that are read slice by slice.

    Attributes:
        tensors: the tensors.
        axes: the axis of each.
        backwards: for each, whether it is read from the end.
    """

    tensors: Sequence[ITensor]
    axes: Sequence[int]
    backwards: Sequence[int]


@operator("Scan", since=9)
def scan(call: NodeCall, *inputs: ITensor) -> list[ITensor]:
    """A loop over slices of tensors."""
    initial, scanned = _split(call, inputs)
    axes = _numbers(call, "scan_input_axes", len(scanned))
    axes = [normal_axis(axis, tensor.type.rank) for axis, tensor in zip(axes, scanned, strict=True)]
    slices = _ScannedInputs(scanned, axes, _numbers(call, "scan_input_directions", len(scanned)))
    trips = _common_length(call, slices)
    return _scan(call, initial, slices, trips, trips)


@operator("Scan", since=8)
def scan_in_batch(call: NodeCall, lengths: Maybe, *inputs: ITensor) -> list[ITensor]:
    """A loop over slices for each batch item, each with its own number of iterations."""
    make = call.make
    initial, scanned = _split(call, inputs)
    require(
        all(tensor.type.rank >= 2 for tensor in scanned) and all(state.type.rank >= 1 for state in initial),
        "states must have a batch axis, and scanned inputs a batch and a time axis",
    )
    batch = make.network.add_loop()
    batch.name = f"{call.node.name} batch"
    members = _common_length(call, _ScannedInputs(scanned, [0] * len(scanned), []))
    batch.add_trip_limit(members, TripLimit.COUNT)
    capacity = _common_length(call, _ScannedInputs(scanned, [1] * len(scanned), []))
    count = capacity
    if lengths is not None:
        count = make.cast(batch.add_iterator(lengths).outputs[0], np.int64)
    own = [batch.add_iterator(state).outputs[0] for state in initial]
    rows = [batch.add_iterator(tensor).outputs[0] for tensor in scanned]
    slices = _ScannedInputs(rows, [0] * len(rows), _numbers(call, "directions", len(rows)))
    outputs = _scan(call, own, slices, count, capacity)
    return [make.stacked(batch, tensor, members) for tensor in outputs]


def _split(call: NodeCall, inputs: Sequence[ITensor]) -> tuple[Sequence[ITensor], Sequence[ITensor]]:
    """The initial states, and the scanned inputs."""
    count = call.attribute("num_scan_inputs")
    require(1 <= count <= len(inputs), f"num_scan_inputs is {count}, and there are {len(inputs)} inputs")
    return inputs[: len(inputs) - count], inputs[len(inputs) - count :]


def _common_length(call: NodeCall, slices: _ScannedInputs) -> ITensor:
    """The length of the scanned axes, which must be equal: an iteration reads past the end of one that is shorter."""
    make = call.make
    lengths = [make.length(tensor, axis) for tensor, axis in zip(slices.tensors, slices.axes, strict=True)]
    fixed = sorted({length for length in lengths if isinstance(length, int)})
    require(len(fixed) <= 1, f"the scanned inputs have {fixed} elements, but must have equally many")
    longest = make.tensor(np.int64(fixed[0]) if fixed else lengths[0])
    for length in lengths:
        if isinstance(length, ITensor) and length is not longest:
            longest = make.maximum(longest, length)
    return longest


def _scan(
    call: NodeCall, initial: Sequence[ITensor], slices: _ScannedInputs, trips: ITensor, capacity: ITensor
) -> list[ITensor]:
    """The last states, and the rows of all iterations, padded with zeros up to ``capacity``."""
    make = call.make
    loop = make.network.add_loop()
    loop.name = call.node.name
    loop.add_trip_limit(trips, TripLimit.COUNT)
    places = zip(slices.tensors, slices.axes, slices.backwards, strict=True)
    iterators = [loop.add_iterator(tensor, axis, bool(backwards)) for tensor, axis, backwards in places]
    body = call.subgraph("body")
    inputs, results = names_of(body.proto.input), names_of(body.proto.output)
    for iterator, name in zip(iterators, inputs[len(initial) :], strict=False):
        name_layer(iterator, name)
    tensors = [iterator.outputs[0] for iterator in iterators]
    carried = CarriedValues(make, loop, initial, inputs, results)
    rows = carried.through(lambda values: split_outputs(body(*values, *tensors), len(values), results))
    axes, backwards = (_numbers(call, f"scan_output_{name}", len(rows)) for name in ("axes", "directions"))
    stacked = [
        make.stacked(loop, row.value, capacity, axis, bool(reverse))
        for row, axis, reverse in zip(rows, axes, backwards, strict=True)
    ]
    for output, row in zip(stacked, rows, strict=True):
        name_layer(output.producer, row.name)
    return [*carried.last(), *stacked]


def _numbers(call: NodeCall, name: str, count: int) -> list[int]:
    """A number for each of some inputs or outputs, 0 by default."""
    numbers = call.attribute(name) or [0] * count
    require(len(numbers) == count, f"{name} has {len(numbers)} numbers, but must have {count}")
    return numbers
