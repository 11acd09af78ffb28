"""Sequences of tensors. Formulas need no sequence layers where the tensors are known one by one."""

from collections.abc import Sequence

import numpy as np

from netloop.model.formulas.arithmetic import Arithmetic
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.sequence import ISequenceLayer, ISequenceSplitLayer, part_lengths
from netloop.values.enums import DataType
from netloop.values.types import UNKNOWN, data_type, normal_axis

MOST_PARTS = 1024
"""The longest sequence that is taken apart."""


class Sequencing(Arithmetic):
    """Formulas with sequences. Negative positions count from the end."""

    def parts(self, sequence: ITensor) -> list[ITensor] | None:
        """The tensors of a sequence if they are known one by one; otherwise None."""
        producer = sequence.producer
        if not isinstance(producer, ISequenceLayer) or len(producer.inputs) > MOST_PARTS:
            return None
        return [tensor for tensor in producer.inputs if tensor is not None]

    def sequence(self, parts: Sequence[ITensor], dtype: DataType | None = None) -> ITensor:
        """A sequence of tensors; an empty one needs ``dtype``."""
        return self.network.add_sequence(parts, dtype).outputs[0]

    def sequence_insert(self, sequence: ITensor, tensor: ITensor, position: ITensor | None = None) -> ITensor:
        """A sequence with a tensor inserted before a position; by default at the end."""
        parts = self.parts(sequence)
        if parts is not None:
            place = len(parts) if position is None else self._place(position, len(parts), len(parts))
            if place is not None:
                return self.sequence([*parts[:place], tensor, *parts[place:]], data_type(sequence.type.dtype))
        return self.network.add_sequence_insert(sequence, tensor, position).outputs[0]

    def sequence_erase(self, sequence: ITensor, position: ITensor | None = None) -> ITensor:
        """A sequence without the tensor at a position; by default the last."""
        parts = self.parts(sequence)
        if parts:
            place = len(parts) - 1 if position is None else self._place(position, len(parts), len(parts) - 1)
            if place is not None:
                return self.sequence([*parts[:place], *parts[place + 1 :]], data_type(sequence.type.dtype))
        return self.network.add_sequence_erase(sequence, position).outputs[0]

    def sequence_at(self, sequence: ITensor, position: ITensor) -> ITensor:
        """The tensor at a position of a sequence."""
        parts = self.parts(sequence)
        place = None if parts is None else self._place(position, len(parts), len(parts) - 1)
        if parts is not None and place is not None:
            return parts[place]
        split, places = sequence.producer, self.ints(position)
        if isinstance(split, ISequenceSplitLayer) and split.inputs[1:] in ([], [None]) and places is not None:
            return self._part(split, places[0])
        return self.network.add_sequence_at(sequence, position).outputs[0]

    def _part(self, split: ISequenceSplitLayer, place: int) -> ITensor:
        """A part of length 1 of a tensor along an axis whose length only a call knows."""
        (x, *_), axis = split.inputs, split.axis
        assert x is not None, "a split has an input"
        start = place if place >= 0 else self.add(self.tensor(self.length(x, axis)), place)
        part = self.slice(x, [start], [1], axes=[axis])
        return part if split.keep_axis else self.squeeze(part, [axis])

    def sequence_length(self, sequence: ITensor) -> ITensor:
        """The number of tensors of a sequence; int64, 0-D."""
        parts = self.parts(sequence)
        if parts is None:
            return self.network.add_sequence_length(sequence).outputs[0]
        return self.constant(np.asarray(len(parts), np.int64))

    def sequence_concat(self, sequence: ITensor, axis: int, new_axis: bool = False) -> ITensor:
        """The tensors of a sequence joined along an axis, or stacked along a new one."""
        parts = self.parts(sequence)
        if not parts:
            return self.network.add_sequence_concatenation(sequence, axis, new_axis).outputs[0]
        return self.stack(parts, axis) if new_axis else self.concat(parts, axis)

    def sequence_split(
        self, x: ITensor, lengths: ITensor | None = None, axis: int = 0, keep_axis: bool = True
    ) -> ITensor:
        """The parts of a tensor along an axis as a sequence; of length 1 by default."""
        sizes = self._part_lengths(x, lengths, axis)
        if sizes is None:
            return self.network.add_sequence_split(x, lengths, axis, keep_axis).outputs[0]
        starts = np.cumsum([0, *sizes[:-1]]).tolist()
        parts = [self.slice(x, [start], [size], axes=[axis]) for start, size in zip(starts, sizes, strict=False)]
        return self.sequence(
            parts if keep_axis else [self.squeeze(part, [axis]) for part in parts], data_type(x.type.dtype)
        )

    def _part_lengths(self, x: ITensor, lengths: ITensor | None, axis: int) -> list[int] | None:
        array = np.asarray(1) if lengths is None else self.known(lengths)
        whole = x.type.shape[normal_axis(axis, x.type.rank)] if x.type.is_tensor else UNKNOWN
        if array is None or whole == UNKNOWN or (array.ndim == 0 and whole > MOST_PARTS * max(1, int(array))):
            return None
        numbers = part_lengths(whole, array)
        return numbers if len(numbers) <= MOST_PARTS else None

    def _place(self, position: ITensor, length: int, most: int) -> int | None:
        """Return a position counted from 0; None if it is unknown or outside of the sequence."""
        numbers = self.ints(position)
        if numbers is None or len(numbers) != 1 or not -length <= numbers[0] <= most:
            return None
        return numbers[0] + length if numbers[0] < 0 else numbers[0]
