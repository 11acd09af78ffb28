"""Compute convolutions, and the element-wise layers behind them, by kernels of netloop's own."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np

from netloop.compiler.convolution.convolution import SUM, Convolution, WindowAxis
from netloop.compiler.convolution.convolve import convolve, packed, unpacked
from netloop.compiler.convolution.division import packed_size
from netloop.compiler.machine_code.processor import Processor, processor
from netloop.compiler.passes.base import OFF, Pass
from netloop.compiler.passes.channels_last_layers import ChannelsLastConvolutionLayer
from netloop.compiler.passes.kernel_functions import FUNCTIONS, function_of
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.compiler.recurrent.cell import NUMBER, ROW, WHOLE, CellValue
from netloop.model.graph import ILayer, ITensor
from netloop.model.graph.layer import Elementary, Operation, layer
from netloop.values.enums import LayerType
from netloop.values.types import Array, TensorType

LEAST_WORK = 1 << 16
"""The least multiplications: fewer take XLA microseconds, and a kernel takes a tenth of a second to compile."""


LEAST_MAPS = 4
"""The least maps of one of several groups: fewer leave most of a vector empty."""


@layer(LayerType.INTERNAL, "Packed Kernel")
class PackedKernelLayer(Elementary):
    """A kernel [rows, columns, channels, maps] in the order in which machine code reads it, [size].

    Attributes:
        convolution: the convolution.
        processor: the vectors of the processor.
    """

    convolution: Convolution
    processor: Processor

    def infer(self, kernel: TensorType) -> TensorType:
        return kernel.with_shape((packed_size(self.convolution, self.processor),))

    def formula(self, xp: Any, kernel: Any) -> Any:
        return packed(xp, kernel, self.convolution, self.processor)


@layer(LayerType.INTERNAL, "Convolution Kernel")
class ConvolutionKernelLayer(Operation):
    """A convolution of x [N, .., C], and what is computed of it element by element.

    The inputs are x, the packed kernel, and the arrays of the values.

    Attributes:
        convolution: the convolution.
        processor: the vectors of the processor for which the kernel is packed.
    """

    convolution: Convolution
    processor: Processor

    def infer(self, x: TensorType, *others: TensorType) -> TensorType:
        return x.with_shape(_shape(self.convolution, x.rank))

    def evaluate(self, x: Array, kernel: Array, *arrays: Array) -> Array:
        plain = unpacked(kernel, self.convolution, self.processor)
        result = self.convolution.evaluate(FUNCTIONS, x, plain, arrays)
        return result.reshape(_shape(self.convolution, x.ndim)).astype(x.dtype)

    def lower(self, *inputs: Any) -> Any:
        x, *others = inputs
        result = convolve(self.convolution, self.processor, [x, *others])
        return result.reshape(_shape(self.convolution, x.ndim))


def _shape(own: Convolution, rank: int) -> tuple[int, ...]:
    lengths = [own.columns.count] if rank == 3 else [own.rows.count, own.columns.count]
    return own.batch, *lengths, own.maps


class _FusedConvolution:
    """A convolution, and as many of the element-wise layers behind it as one kernel can compute.

    Attributes:
        output: the tensor that the kernel computes.
        layers: the layers that it computes.
        convolution: the convolution that does so.
        arrays: what its values read.
    """

    def __init__(self, rewriter: Rewriter, layer: ChannelsLastConvolutionLayer, live: Collection[Operation]) -> None:
        self._rewriter, self._layer, self._live = rewriter, layer, live
        self._type, self._depth = layer.outputs[0].type, rewriter.scopes.depth(layer)
        self._values, self._kinds = [CellValue(SUM, ())], list[str]()
        self.arrays: list[ITensor] = []
        self._read: dict[ITensor, int] = {}
        bias = [*layer.inputs, None][2]
        if bias is not None:
            self._add("sum", 0, self._of_array(bias, ROW))
        self._computed = {layer.outputs[0]: len(self._values) - 1}
        tensors = self._follow()
        self.output = self._last(tensors)
        producers = (tensor.producer for tensor in tensors[: tensors.index(self.output) + 1])
        self.layers = {producer for producer in producers if isinstance(producer, Operation)}
        self.convolution = self._convolution()

    def _add(self, kind: str, *of: int, numbers: tuple[float, ...] = ()) -> int:
        self._values.append(CellValue(kind, of, numbers))
        return len(self._values) - 1

    def _of_array(self, tensor: ITensor, kind: str) -> int:
        if tensor not in self._read:
            self._read[tensor] = self._add(kind, len(self.arrays))
            self.arrays.append(tensor)
            self._kinds.append(kind)
        return self._read[tensor]

    def _follow(self) -> list[ITensor]:
        """The tensors that a kernel can compute, in running order, each from those before it and from arrays."""
        tensors = list(self._computed)
        for tensor in tensors:
            for reader in self._readers(tensor):
                if reader.outputs[0] not in self._computed and self._take(reader):
                    tensors.append(reader.outputs[0])
        return tensors

    def _readers(self, tensor: ITensor) -> list[ILayer]:
        """The layers that read a tensor, without those that earlier passes left for nobody."""
        readers = [reader for reader, _ in tensor.uses]
        return [reader for reader in readers if reader in self._live or not isinstance(reader, Operation)]

    def _take(self, layer: ILayer) -> bool:
        """Compute a layer, if its function, its place and what it reads allow that."""
        function, (output, *others) = function_of(layer), layer.outputs
        if function is None or others or output.type != self._type or self._rewriter.scopes.depth(layer) != self._depth:
            return False
        inputs = [operand(layer, position) for position in range(layer.num_inputs)]
        kinds = [None if tensor in self._computed else self._kind_of(tensor) for tensor in inputs]
        if any(kind is None and tensor not in self._computed for tensor, kind in zip(inputs, kinds, strict=True)):
            return False
        of = [
            self._computed[tensor] if kind is None else self._of_array(tensor, kind)
            for tensor, kind in zip(inputs, kinds, strict=True)
        ]
        self._computed[output] = self._add(function.kind, *of, numbers=function.numbers)
        return True

    def _kind_of(self, tensor: ITensor) -> str | None:
        """The kind of an array that a kernel can read; None if it cannot."""
        type_ = tensor.type
        if not type_.is_tensor or type_.dtype != np.float32:
            return None
        if type_.volume == 1:
            return NUMBER
        if type_.volume == type_.shape[-1] == self._type.shape[-1]:
            return ROW
        return WHOLE if type_.shape == self._type.shape else None

    def _last(self, tensors: list[ITensor]) -> ITensor:
        """The last tensor before which nothing is read by other layers."""
        for count in range(len(tensors), 1, -1):
            own = {*tensors[:count]}
            inner = tensors[: count - 1]
            readers = [reader for tensor in inner for reader in self._readers(tensor)]
            if all(map(self._rewriter.may_replace, inner)) and all(reader.outputs[0] in own for reader in readers):
                return tensors[count - 1]
        return tensors[0]

    def _convolution(self) -> Convolution:
        values, arrays = self._needed()
        x, kernel, own = operand(self._layer, 0).type.shape, operand(self._layer, 1).type.shape, self._layer
        axes = [
            WindowAxis(*entry)
            for entry in zip(
                x[1:-1], kernel[:-2], own.stride_nd, own.dilation_nd, own.before, self._type.shape[1:-1], strict=True
            )
        ]
        rows, columns = axes if len(axes) == 2 else (WindowAxis(1, 1, 1, 1, 0, 1), axes[0])
        return Convolution(x[0], x[-1], kernel[-1], rows, columns, own.num_groups, values, arrays)

    def _needed(self) -> tuple[tuple[CellValue, ...], tuple[str, ...]]:
        """The values without those behind the output, and the kinds of the arrays that they read."""
        count = self._computed[self.output] + 1
        numbers = {value.of[0] for value in self._values[:count] if value.kind in (NUMBER, ROW, WHOLE)}
        self.arrays = self.arrays[: len(numbers)]
        return tuple(self._values[:count]), tuple(self._kinds[: len(numbers)])


def _may_be_a_kernel(rewriter: Rewriter, layer: ChannelsLastConvolutionLayer) -> bool:
    """Whether a kernel can compute a convolution, and is worth its compilation."""
    x, kernel, output = operand(layer, 0).type, operand(layer, 1), layer.outputs[0].type
    if not x.is_fixed or x.dtype != np.float32 or kernel not in rewriter.weights or x.rank not in (3, 4):
        return False
    maps = kernel.type.shape[-1] // layer.num_groups
    if layer.num_groups > 1 and maps < LEAST_MAPS and not (maps == kernel.type.shape[-2] == 1):
        return False
    axes = zip(x.shape[1:-1], kernel.type.shape[:-2], layer.stride_nd, layer.dilation_nd, layer.before,
               output.shape[1:-1], strict=True)  # fmt: skip
    return all(WindowAxis(*entry).never_misses for entry in axes) and (
        output.volume * math.prod(kernel.type.shape[:-1]) >= LEAST_WORK
    )


class ConvolutionKernels(Pass):
    """Compute convolutions, and what follows them element by element, in one call each.

    XLA copies windows for products, and writes and reads what a bias, an activation and a residual make of their sums.
    A depthwise convolution is a sum over padded copies there. MobileNetV3 takes 0.44 of the time on one thread of an
    Intel Xeon with AVX-512, and ResNet-50 0.7, and both compile in half the time.
    """

    name = "convolution_kernels"
    level = 3
    platforms = frozenset({"cpu"})
    on_host = True
    # it knows only convolutions with their channels last
    after = ("channels_last",)
    rule = (
        "On CPUs, where the extra `kernels` is installed: a float32 convolution with its channels last, by "
        f"weights, over one or two axes of known lengths, with {LEAST_MAPS} maps or more for a group or as many "
        "groups as channels and maps, is one call of machine code of netloop's own, for which the weights are "
        "packed in advance. So are the element-wise layers behind it that nothing else needs: its bias, "
        "activations, and sums and products with numbers, with a number for each map, or with an array of its "
        f"shape. It has {LEAST_WORK:,} multiplications or more. Only in engines: not in what `to_jax` returns, in "
        "exported programs, on meshes and in slots. Only on Linux, on x86-64 processors with AVX2 and FMA or "
        "AVX-512."
    )
    alternatives = (OFF,)

    def rewrite(self, rewriter: Rewriter) -> bool:
        layers = [] if rewriter.is_pure else rewriter.layers(ChannelsLastConvolutionLayer)
        layers = [layer for layer in layers if _may_be_a_kernel(rewriter, layer)]
        # most networks have no convolution, and need no compiler imported
        own = processor() if layers else None
        if own is None:
            return False
        live = {*rewriter.layers(Operation)}
        for convolution in layers:
            self._replace(rewriter, convolution, live, own)
        rewriter.note(f"{len(layers)} convolutions are calls of machine code")
        return True

    def _replace(
        self, rewriter: Rewriter, layer: ChannelsLastConvolutionLayer, live: set[Operation], own: Processor
    ) -> None:
        fused = _FusedConvolution(rewriter, layer, live)
        convolution, add = fused.convolution, rewriter.network.add
        weights = add(PackedKernelLayer(convolution=convolution, processor=own), [operand(layer, 1)]).outputs[0]
        inputs = [operand(layer, 0), weights, *fused.arrays]
        kernel = add(ConvolutionKernelLayer(convolution=convolution, processor=own), inputs)
        kernel.name = layer.name
        vars(kernel)["source_location"] = layer.source_location
        rewriter.take_over(fused.output, kernel.outputs[0])
        # a layer that reads two convolutions is part of the first
        live -= fused.layers
        live.add(kernel)
