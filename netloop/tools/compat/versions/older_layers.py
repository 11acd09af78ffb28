"""Layers as scripts for TensorRT 7 and 8 see them, with names of attributes that later versions changed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import netloop
from netloop.model.graph.layer import ILayer
from netloop.model.graph.listed_layer import ListedLayer
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.windows import SlidingWindow
from netloop.tools.compat.versions.enumerations import CaffePadding
from netloop.values.diagnostics import NetworkError, reason
from netloop.values.enums import PaddingMode
from netloop.values.types import UNKNOWN

_WINDOW = {"stride": "stride_nd", "padding": "padding_nd"}

RENAMED: dict[type[ILayer], dict[str, str]] = {
    netloop.IConvolutionLayer: {**_WINDOW, "kernel_size": "kernel_size_nd", "dilation": "dilation_nd"},
    netloop.IDeconvolutionLayer: {**_WINDOW, "kernel_size": "kernel_size_nd"},
    netloop.IPoolingLayer: {**_WINDOW, "window_size": "window_size_nd"},
    netloop.IPaddingLayer: {"pre_padding": "pre_padding_nd", "post_padding": "post_padding_nd"},
    netloop.IResizeLayer: {},
}
"""The attributes of each kind by their older names."""

ROUNDING = {
    CaffePadding.CAFFE_ROUND_DOWN: PaddingMode.EXPLICIT_ROUND_DOWN,
    CaffePadding.CAFFE_ROUND_UP: PaddingMode.EXPLICIT_ROUND_UP,
}


class CaffeWindows(NamedTuple):
    """A pooling whose windows are those of Caffe, which leaves out a last one that begins behind the input."""

    layer: netloop.IPoolingLayer

    def finish(self) -> None:
        """Shorten the padding behind the input, so that no window begins there.

        Raises:
            NetworkError: the lengths of the input are not known.
        """
        layer = self.layer
        tensor = layer.inputs[0]
        lengths = () if tensor is None else tensor.shape[-len(layer.window) :]
        if UNKNOWN in lengths:
            what = f"the padding of Caffe depends on the lengths of the input, which is {tensor and tensor.type}"
            raise NetworkError(layer.finding("NL679", what, reason("NL679"), "set an explicit padding mode"))
        rounds_up = layer.padding_mode is PaddingMode.EXPLICIT_ROUND_UP
        axes = zip(lengths, layer.spans, layer.stride_nd, layer.pre_padding, strict=True)
        layer.post_padding = [_padding_behind(*axis, rounds_up) for axis in axes]


def _padding_behind(length: int, span: int, stride: int, before: int, rounds_up: bool) -> int:
    room = length + 2 * before - span
    count = (-(-room // stride) if rounds_up else room // stride) + 1
    if (count - 1) * stride < length + before:
        return before
    return max((count - 2) * stride + span - length - before, 0)


class OlderLayer(ListedLayer):
    """A layer by its older names, and with other ends where further layers stand before or behind it."""

    def __getattribute__(self, name: str) -> Any:
        layer = _layer_of(self)
        if name in ("get_input", "get_output"):
            return partial(_end, getattr(layer, name), object.__getattribute__(self, "_ends")[name])
        if name == "align_corners" and isinstance(layer, netloop.IResizeLayer):
            return layer.coordinate_transformation is netloop.ResizeCoordinateTransformation.ALIGN_CORNERS
        result = super().__getattribute__(RENAMED.get(type(layer), {}).get(name, name))
        return layer.types.owner.LAYER_TYPES.of(result) if isinstance(result, netloop.LayerType) else result

    def __setattr__(self, name: str, value: Any) -> None:
        layer = _layer_of(self)
        if isinstance(value, CaffePadding) and isinstance(layer, SlidingWindow):
            layer.padding_mode, layer.post_padding = ROUNDING[value], layer.pre_padding
            if isinstance(layer, netloop.IPoolingLayer):
                owner: Any = layer.types.owner  # a network of TensorRT 7 or 8
                owner.finish_later(CaffeWindows(layer))
        elif name == "align_corners" and isinstance(layer, netloop.IResizeLayer):
            kinds = netloop.ResizeCoordinateTransformation
            layer.coordinate_transformation = kinds.ALIGN_CORNERS if value else kinds.ASYMMETRIC
        else:
            super().__setattr__(RENAMED.get(type(layer), {}).get(name, name), value)


class IFullyConnectedLayer(OlderLayer, netloop.IConvolutionLayer):
    """A product of the last three axes with a matrix: here a convolution whose window is as large as its input."""

    def __getattribute__(self, name: str) -> Any:
        if name == "type":
            return _layer_of(self).types.owner.LAYER_TYPES.FULLY_CONNECTED
        return super().__getattribute__({"num_output_channels": "num_output_maps"}.get(name, name))

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__({"num_output_channels": "num_output_maps"}.get(name, name), value)


class IFillLayer(OlderLayer, netloop.IFillLayer):
    """A fill whose elements have the type of its alpha and beta, unless a script sets another one."""

    def __getattribute__(self, name: str) -> Any:
        return partial(_set_input_of_fill, _layer_of(self)) if name == "set_input" else super().__getattribute__(name)


def _set_input_of_fill(layer: netloop.IFillLayer, index: int, tensor: ITensor) -> None:
    layer.set_input(index, tensor)
    if index > 0 and not layer.output_type_is_set(0):
        layer.to_type = tensor.dtype


def older(
    layer: Any,
    *,
    kind: Any = None,
    is_listed: bool = False,
    inputs: Sequence[ITensor] = (),
    outputs: Sequence[ITensor] = (),
) -> Any:
    """A layer by its older names.

    Args:
        layer: the layer.
        kind: its older class; None for that of the layer.
        is_listed: whether its ``type`` is a LayerType, as that of ``network[i]``.
        inputs: the tensors that a script sees instead of the first inputs.
        outputs: the tensors that it sees instead of the first outputs.
    """
    plain = _layer_of(layer) if isinstance(layer, ListedLayer) else layer
    result = object.__new__(kind or _class_of(type(plain)))
    object.__setattr__(result, "_listed", (plain, not is_listed))
    object.__setattr__(result, "_ends", {"get_input": inputs, "get_output": outputs})
    return result


@cache
def _class_of(kind: type[ILayer]) -> Any:
    return type(kind.__name__, (OlderLayer, kind), {"__module__": kind.__module__, "__doc__": kind.__doc__})


def _layer_of(view: Any) -> Any:
    return object.__getattribute__(view, "_listed")[0]


def _end(of_layer: Any, others: Sequence[ITensor], index: int) -> ITensor | None:
    return others[index] if 0 <= index < len(others) else of_layer(index)
