"""Scale and parametric ReLU."""

from typing import Any

import numpy as np

from netloop.model.graph.layer import Elementary, layer
from netloop.model.graph.network_base import NetworkBase, third_from_end
from netloop.model.graph.tensor import ITensor
from netloop.model.weights import WeightsLike, weights_array
from netloop.values.diagnostics import require
from netloop.values.enums import LayerType, ScaleMode
from netloop.values.types import HALVES, UNKNOWN, Array, Shape, TensorType, normal_axis


@layer(LayerType.SCALE, "Scale")
class IScaleLayer(Elementary):
    """Multiply each element, shift it, and raise it to a power.

    output = (input * scale + shift) ^ power

    ===========  ==================================================================
    UNIFORM      one number for all elements
    CHANNEL      one number for each channel
    ELEMENTWISE  one number for each element of ``channel_axis`` and all axes after it
    ===========  ==================================================================

    Floating-point input of at least 4 axes; the output has its shape. The weights have the same element type. Half
    types are computed in float32 and rounded once.

    Attributes:
        mode: which elements share weights.
        shift: the numbers added; empty for 0.
        scale: the factors; empty for 1.
        power: the exponents; empty for 1.
        channel_axis: the axis of the channels.
    """

    IS_ELEMENTWISE = True

    mode: ScaleMode
    shift: Array | None = None
    scale: Array | None = None
    power: Array | None = None
    channel_axis: int = 1

    def infer(self, x: TensorType) -> TensorType:
        require(x.is_float, f"the input is {x}, but must be floating-point", fix="convert it with add_cast")
        require(
            x.rank >= 4,
            f"the input {x} has {x.rank} axes, but must have at least 4",
            why="they are batch, channel and one or more axes of an image",
        )
        shape = self._weights_shape(x.shape)
        for name in ("shift", "scale", "power"):
            weights: Array | None = getattr(self, name)
            if weights is not None and weights.size:
                self._check_weights(name, weights, x.with_shape(shape))
        return x.without_value()

    def _check_weights(self, name: str, weights: Array, wanted: TensorType) -> None:
        require(
            weights.dtype == wanted.dtype,
            f"{name} is {weights.dtype}, but the input {wanted.dtype}",
            why="TensorRT's networks are strongly typed: nothing is converted silently",
        )
        require(
            wanted.volume in (UNKNOWN, weights.size),
            f"{name} has {weights.size} elements, but {self.mode.name} takes {wanted.volume}",
            why=f"axis {self.channel_axis} is the channel axis",
        )

    def _weights_shape(self, shape: Shape) -> Shape:
        """The shape in which weights broadcast to an input of shape ``shape``."""
        axis = normal_axis(self.channel_axis, len(shape), "channel_axis")
        end = {ScaleMode.UNIFORM: axis, ScaleMode.CHANNEL: axis + 1, ScaleMode.ELEMENTWISE: len(shape)}[self.mode]
        return tuple(length if axis <= number < end else 1 for number, length in enumerate(shape))

    def formula(self, xp: Any, x: Any) -> Any:
        result = x.astype(np.float32) if x.dtype in HALVES else x
        shape = self._weights_shape(x.shape)
        shift, scale, power = (
            None if array is None or not array.size else xp.asarray(array.reshape(shape)).astype(result.dtype)
            for array in (self.shift, self.scale, self.power)
        )
        result = result if scale is None else result * scale
        result = result if shift is None else result + shift
        result = result if power is None else result**power
        return result.astype(x.dtype)


@layer(LayerType.PARAMETRIC_RELU, "Parametric ReLU")
class IParametricReLULayer(Elementary):
    """Multiply negative elements by a slope, and keep all others.

    output = input if input >= 0, else slopes * input

    Floating-point, both inputs of the same type. The slopes have the rank of the input, and broadcast to its shape:
    each dim is equal or 1. The output has the shape of the input.
    """

    REQUIRED_INPUTS = 2

    def infer(self, x: TensorType, slopes: TensorType) -> TensorType:
        require(x.is_float, f"the input is {x}, but must be floating-point", fix="convert it with add_cast")
        require(
            x.dtype == slopes.dtype,
            f"the slopes are {slopes}, but the input is {x}",
            why="TensorRT's networks are strongly typed: nothing is converted silently",
            fix="convert one of them with add_cast",
        )
        require(
            x.rank == slopes.rank,
            f"the slopes {slopes} have {slopes.rank} axes, but the input {x} has {x.rank}",
            why="TensorRT broadcasts axes of length 1, but adds no axes",
            fix="add the missing axes with add_shuffle and reshape_dims, or add_unsqueeze",
        )
        for axis, (own, length) in enumerate(zip(slopes.shape, x.shape, strict=True)):
            require(
                own in (1, length, UNKNOWN) or length == UNKNOWN,
                f"along axis {axis} the slopes {slopes} have {own} elements, but the input {x} has {length}",
                why="the slopes are broadcast to the input, never the input to the slopes",
            )
        dims = (own if own > 1 else length for own, length in zip(slopes.shape, x.shape, strict=True))
        return x.with_shape(dims)

    def formula(self, xp: Any, x: Any, slopes: Any) -> Any:
        return xp.where(x >= 0, x, slopes * x)


class AffineMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "normalization and scale"

    def add_scale(
        self,
        input: ITensor,
        mode: ScaleMode,
        shift: WeightsLike | None = None,
        scale: WeightsLike | None = None,
        power: WeightsLike | None = None,
    ) -> IScaleLayer:
        """(input * scale + shift) ^ power, with channels on axis 1; ELEMENTWISE weights cover the last three axes.

        output = (input * scale + shift) ^ power

        ===========  ==================================================================
        UNIFORM      one number for all elements
        CHANNEL      one number for each channel
        ELEMENTWISE  one number for each element of ``channel_axis`` and all axes after it
        ===========  ==================================================================

        Floating-point input of at least 4 axes; the output has its shape. The weights have the same element type.
        Half types are computed in float32 and rounded once.

        Args:
            input: the input.
            mode: which elements share weights.
            shift: the numbers added; empty for 0.
            scale: the factors; empty for 1.
            power: the exponents; empty for 1.

        Further attributes of the layer, which have defaults: ``channel_axis``.
        """
        axis = max(1, third_from_end(input)) if mode is ScaleMode.ELEMENTWISE else 1
        return self.add_scale_nd(input, mode, shift, scale, power, axis)

    def add_scale_nd(
        self,
        input: ITensor,
        mode: ScaleMode,
        shift: WeightsLike | None = None,
        scale: WeightsLike | None = None,
        power: WeightsLike | None = None,
        channel_axis: int = 1,
    ) -> IScaleLayer:
        """(input * scale + shift) ^ power, with channels on ``channel_axis``.

        output = (input * scale + shift) ^ power

        ===========  ==================================================================
        UNIFORM      one number for all elements
        CHANNEL      one number for each channel
        ELEMENTWISE  one number for each element of ``channel_axis`` and all axes after it
        ===========  ==================================================================

        Floating-point input of at least 4 axes; the output has its shape. The weights have the same element type.
        Half types are computed in float32 and rounded once.

        Args:
            input: the input.
            mode: which elements share weights.
            shift: the numbers added; empty for 0.
            scale: the factors; empty for 1.
            power: the exponents; empty for 1.
            channel_axis: the axis of the channels.
        """
        named = {"shift": shift, "scale": scale, "power": power}
        arrays = {name: None if array is None else weights_array(array, name) for name, array in named.items()}
        result = IScaleLayer(mode=mode, channel_axis=channel_axis, **arrays)
        return self.add(result, input=input)

    def add_parametric_relu(self, input: ITensor, slopes: ITensor) -> IParametricReLULayer:
        """The elements of ``input``, negative ones multiplied by ``slopes``.

        output = input if input >= 0, else slopes * input

        Floating-point, both inputs of the same type. The slopes have the rank of the input, and broadcast to its
        shape: each dim is equal or 1. The output has the shape of the input.

        Args:
            input: input 0.
            slopes: input 1.
        """
        return self.add(IParametricReLULayer(), input=input, slopes=slopes)
