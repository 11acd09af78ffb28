"""The element-wise layers that a kernel computes with the sums of the layer before them."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from netloop.compiler.convolution.convolution import NUMBER, ROW, SUM, WHOLE, OutputValue
from netloop.compiler.passes.kernel_functions import function_of
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.model.graph import ILayer, ITensor
from netloop.model.graph.layer import Operation


class FusedLayers:
    """A layer of sums, and as many of the element-wise layers behind it as one kernel can compute.

    Args:
        rewriter: the network.
        layer: the layer of sums, whose output has its maps on the last axis.
        bias: what is added to the sums of each map.
        live: the layers that somebody needs.

    Attributes:
        output: the tensor that the kernel computes.
        layers: the layers that it computes.
        values: the values of an element of the output, the last of which it is.
        arrays: what they read, and its ``kinds``.
    """

    def __init__(self, rewriter: Rewriter, layer: Operation, bias: ITensor | None, live: Collection[Operation]) -> None:
        self._rewriter, self._live = rewriter, live
        self._type, self._depth = layer.outputs[0].type, rewriter.scopes.depth(layer)
        self._values, self._kinds = [OutputValue(SUM, ())], list[str]()
        self._arrays = list[ITensor]()
        self._read: dict[ITensor, int] = {}
        if bias is not None:
            self._add("sum", 0, self._of_array(bias, ROW))
        self._computed = {layer.outputs[0]: len(self._values) - 1}
        tensors = self._follow()
        self.output = self._last(tensors)
        producers = (tensor.producer for tensor in tensors[: tensors.index(self.output) + 1])
        self.layers = {producer for producer in producers if isinstance(producer, Operation)}
        self.values = tuple(self._values[: self._computed[self.output] + 1])
        # what only layers behind the output read comes last
        count = len({value.of[0] for value in self.values if value.kind in (NUMBER, ROW, WHOLE)})
        self.arrays, self.kinds = self._arrays[:count], tuple(self._kinds[:count])

    def _add(self, kind: str, *of: int, numbers: tuple[float, ...] = ()) -> int:
        self._values.append(OutputValue(kind, of, numbers))
        return len(self._values) - 1

    def _of_array(self, tensor: ITensor, kind: str) -> int:
        if tensor not in self._read:
            self._read[tensor] = self._add(kind, len(self._arrays))
            self._arrays.append(tensor)
            self._kinds.append(kind)
        return self._read[tensor]

    def _follow(self) -> list[ITensor]:
        """The tensors that a kernel can compute, in running order, each from those before it and from arrays."""
        tensors = list(self._computed)
        for tensor in tensors:
            for reader in self._readers(tensor):
                if isinstance(reader, Operation) and reader.outputs[0] not in self._computed and self._take(reader):
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
        # of unknown lengths one may be 1, and be broadcast
        return WHOLE if type_.is_fixed and type_.shape == self._type.shape else None

    def _last(self, tensors: list[ITensor]) -> ITensor:
        """The last tensor before which nothing is read by other layers."""
        for count in range(len(tensors), 1, -1):
            inner, own = tensors[: count - 1], {tensor.producer for tensor in tensors[:count]}
            readers = (reader for tensor in inner for reader in self._readers(tensor))
            if all(map(self._rewriter.may_replace, inner)) and own.issuperset(readers):
                return tensors[count - 1]
        return tensors[0]
