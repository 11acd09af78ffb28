"""Zero padding, and the reversal of sequences."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.model.graph import ITensor, NetworkBase, Operation, layer
from netloop.model.graph.padded_axes import Axes, Neutrals, neutral
from netloop.model.layers.index_types import narrow_indices
from netloop.model.layers.rearrange import unfolded
from netloop.values.diagnostics import require
from netloop.values.dims import DimsLike, check_dims
from netloop.values.enums import LayerType
from netloop.values.types import UNKNOWN, Array, TensorType, agree, normal_axis, require_possible


@layer(LayerType.PADDING, "Padding")
class IPaddingLayer(Operation):
    """Pad the last two axes of the input with zeros, or crop them.

    output[.., i, j] = input[.., i - pre[0], j - pre[1]], or 0 outside of the input

    Any element type, which is kept; at least 4 axes. Negative padding crops.

    Attributes:
        pre_padding_nd: the number of zeros before the input, for both axes.
        post_padding_nd: the number of zeros after it.
    """

    pre_padding_nd: DimsLike
    post_padding_nd: DimsLike

    def infer(self, x: TensorType) -> TensorType:
        require(
            x.rank >= 4,
            f"the input {x} has {x.rank} axes, but must have at least 4",
            why="they are batch, channel, height and width",
            fix="add axes with add_shuffle and reshape_dims, or use add_slice in FILL mode",
        )
        for name in ("pre_padding_nd", "post_padding_nd"):
            pair: Sequence[int] = getattr(self, name)
            require(len(pair) == 2, f"{name} is {pair}, but must have 2 numbers", why="they are for the last two axes")
        numbers, padded = list(x.shape), list(x.shape)
        for axis, before, after in self._along(x.rank):
            numbers[axis] = UNKNOWN if x.shape[axis] == UNKNOWN else before + x.shape[axis] + after
            padded[axis] += max(before, 0) + max(after, 0)
            require(
                x.shape[axis] == UNKNOWN or numbers[axis] >= 0,
                f"axis {axis} of the input {x} has {x.shape[axis]} elements, and the padding crops {-before - after}",
                why="negative padding removes elements, and one must remain",
            )
        # XLA pads before it crops
        require_possible(x.with_shape(padded), "the input with its padding, before it is cropped,")
        return x.with_shape(numbers)

    def _along(self, rank: int) -> list[tuple[int, int, int]]:
        """The padded axes, each with the padding before and after."""
        return list(zip((rank - 2, rank - 1), self.pre_padding_nd, self.post_padding_nd, strict=True))

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        return neutral(0, padded[0].intersection((types[0].rank - 2, types[0].rank - 1)))

    def evaluate(self, x: Array) -> Array:
        result = np.zeros(self.infer(TensorType(x.dtype, x.shape)).shape, x.dtype)
        (top, left), (height, width) = self.pre_padding_nd, x.shape[-2:]
        for i, j in np.ndindex(result.shape[-2:]):
            if 0 <= i - top < height and 0 <= j - left < width:
                result[..., i, j] = x[..., i - top, j - left]
        return result

    def lower(self, x: Any) -> Any:
        widths = [(0, 0, 0)] * (x.ndim - 2) + [(before, after, 0) for _, before, after in self._along(x.ndim)]
        number = self.infer(TensorType(x.dtype, x.shape)).volume
        return lax.pad(unfolded(jnp.asarray(x), number), np.zeros((), x.dtype), widths)


@layer(LayerType.REVERSE_SEQUENCE, "ReverseSequence")
class IReverseSequenceLayer(Operation):
    """Reverse the first elements of each sequence of a batch.

    Of a sequence of length n, element t of the output is element n - 1 - t of the input for t < n, else element t.

    Any element type; type and shape are kept. Input 1 holds the length of each sequence of the batch: 1-D, int32 or
    int64.

    Attributes:
        batch_axis: the axis of the batch.
        sequence_axis: the axis of the sequences, which differs from it.
    """

    REQUIRED_INPUTS = 2
    TAKES_STRINGS = True

    batch_axis: int = 1
    sequence_axis: int = 0

    def infer(self, x: TensorType, sequence_lens: TensorType) -> TensorType:
        batch, sequence = self._axes(x.rank)
        require(
            batch != sequence, f"batch_axis and sequence_axis are both axis {batch}", why="they must be different axes"
        )
        require(
            sequence_lens.rank == 1 and sequence_lens.is_index,
            f"the lengths of the sequences are {sequence_lens}, but must be 1-D, int32 or int64",
            why="there is one length for each sequence of the batch",
        )
        require(
            agree(sequence_lens.shape, (x.shape[batch],)),
            f"there are {sequence_lens.shape[0]} lengths for {x.shape[batch]} sequences along axis {batch} of {x}",
            why="there is one length for each sequence of the batch",
        )
        return x.without_value()

    def _axes(self, rank: int) -> tuple[int, int]:
        batch = normal_axis(self.batch_axis, rank, "batch_axis")
        return batch, normal_axis(self.sequence_axis, rank, "sequence_axis")

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        # a sequence ends before the padding of its axis does, and those that are padding have no element
        return neutral(1, padded[1])

    def evaluate(self, x: Array, sequence_lens: Array) -> Array:
        batch, sequence = self._axes(x.ndim)
        longest = x.shape[sequence]
        result = x.copy()
        source, target = np.moveaxis(x, (batch, sequence), (0, 1)), np.moveaxis(result, (batch, sequence), (0, 1))
        for position, length in enumerate(sequence_lens.tolist()):
            require(
                0 <= length <= longest,
                f"sequence {position} has length {length}, and the axis only {longest} elements",
                why="a sequence is at most as long as its axis",
            )
            for t in range(length):
                target[position, t] = source[position, length - 1 - t]
        return result

    def lower(self, x: Any, sequence_lens: Any) -> Any:
        x, (batch, sequence) = jnp.asarray(x), self._axes(x.ndim)
        lengths = jnp.expand_dims(sequence_lens, [axis for axis in range(x.ndim) if axis != batch])
        places = lax.broadcasted_iota(
            lengths.dtype, [n if axis == sequence else 1 for axis, n in enumerate(x.shape)], sequence
        )
        places = jnp.where(places < lengths, lengths - 1 - places, places)
        return jnp.take_along_axis(x, narrow_indices(places, x.shape[sequence] - 1), sequence, mode="promise_in_bounds")


class PaddingMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "rearranging"

    def add_padding_nd(self, input: ITensor, pre_padding: Sequence[int], post_padding: Sequence[int]) -> IPaddingLayer:
        """Add zero padding of the last two axes of ``input``; negative padding crops.

        output[.., i, j] = input[.., i - pre[0], j - pre[1]], or 0 outside of the input

        Any element type, which is kept; at least 4 axes. Negative padding crops.

        Args:
            input: the input.
            pre_padding: the number of zeros before the input, for both axes.
            post_padding: the number of zeros after it.
        """
        result = IPaddingLayer(
            pre_padding_nd=check_dims("pre_padding", pre_padding),
            post_padding_nd=check_dims("post_padding", post_padding),
        )
        return self.add(result, input=input)

    def add_reverse_sequence(self, input: ITensor, sequence_lens: ITensor) -> IReverseSequenceLayer:
        """Add the reversal of the first ``sequence_lens`` elements of each sequence of ``input``.

        Of a sequence of length n, element t of the output is element n - 1 - t of the input for t < n, else element
        t.

        Any element type; type and shape are kept. Input 1 holds the length of each sequence of the batch: 1-D, int32
        or int64.

        Args:
            input: input 0.
            sequence_lens: input 1.

        Further attributes of the layer, which have defaults: ``batch_axis``, ``sequence_axis``.
        """
        return self.add(IReverseSequenceLayer(), input=input, sequence_lens=sequence_lens)
