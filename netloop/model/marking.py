"""The methods of networks that mark outputs, debug tensors and weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from netloop.model.graph import ILayer, ITensor, NetworkBase, check_instance, check_tensor
from netloop.model.graph.call_site import call_site
from netloop.model.layers.sources import IConstantLayer
from netloop.model.weights import weights_array
from netloop.values.checked_attributes import text
from netloop.values.diagnostics import Finding, NetworkError, reason
from netloop.values.types import Array, TensorType


@dataclass
class Marks:
    """The marks of a network other than its outputs.

    Attributes:
        debug: the tensors whose values a debug listener may receive.
        unfused: whether it may also receive all values that are computed outside loops and branches.
        shapes: the outputs whose values ``infer_shapes`` computes, before the network runs.
        names: the names that were given to weights, by the layers that hold them.
        refittable: the names of the weights that may be replaced, where not all may.
    """

    debug: dict[ITensor, None] = field(default_factory=dict[ITensor, None])
    unfused: bool = False
    shapes: dict[ITensor, None] = field(default_factory=dict[ITensor, None])
    names: dict[IConstantLayer, str] = field(default_factory=dict[IConstantLayer, str])
    refittable: dict[str, None] = field(default_factory=dict[str, None])

    def copied(self, tensors: Mapping[ITensor, ITensor], layers: Sequence[Any]) -> Marks:
        """Return the same marks for a copy of the network, given its tensors, and its layers in order."""
        return Marks(
            dict.fromkeys(tensors[tensor] for tensor in self.debug),
            self.unfused,
            dict.fromkeys(tensors[shape] for shape in self.shapes),
            {layers[key.index]: name for key, name in self.names.items()},
            dict(self.refittable),
        )


class MarkMethods(NetworkBase):
    """The methods that mark tensors and weights.

    Attributes:
        outputs: the outputs, in the order in which they were marked.
        marks: all other marks.
    """

    outputs: list[ITensor]
    marks: Marks

    # ------------------------------------------------------------------ outputs

    def mark_output(self, tensor: ITensor) -> None:
        """Mark a tensor as an output of the network."""
        self._own(tensor)
        if not tensor.is_network_output:
            vars(tensor)["is_network_output"] = True
            self.outputs.append(tensor)

    def unmark_output(self, tensor: ITensor) -> None:
        """Remove a tensor from the outputs of the network."""
        if check_tensor(tensor, "tensor").is_network_output:
            vars(tensor)["is_network_output"] = False
            self.outputs.remove(tensor)
            self.marks.shapes.pop(tensor, None)

    def mark_output_for_shapes(self, tensor: ITensor) -> bool:
        """Mark a tensor as an output whose value ``IExecutionContext.infer_shapes`` computes if it depends on shapes.

        Returns False, without effect, if it is an output already, or not int32 or int64 with at most one axis.
        """
        type_ = self._own(tensor).types.of(tensor)
        if tensor.is_network_output or not isinstance(type_, TensorType) or not type_.is_index or type_.rank > 1:
            return False
        self.mark_output(tensor)
        self.marks.shapes[tensor] = None
        return True

    def unmark_output_for_shapes(self, tensor: ITensor) -> bool:
        """Undo ``mark_output_for_shapes``; return whether the tensor was marked."""
        if check_tensor(tensor, "tensor") not in self.marks.shapes:
            return False
        self.unmark_output(tensor)
        return True

    # ------------------------------------------------------------------ debug tensors

    def mark_debug(self, tensor: ITensor) -> bool:
        """Let execution contexts report the values of a tensor to a debug listener, if asked to; return True.

        The mark costs nothing until a context is asked to. A tensor that is not live is never computed.
        """
        self.marks.debug[self._own(tensor)] = None
        return True

    def unmark_debug(self, tensor: ITensor) -> bool:
        """Undo ``mark_debug``; return True."""
        self.marks.debug.pop(check_tensor(tensor, "tensor"), None)
        return True

    def is_debug_tensor(self, tensor: ITensor) -> bool:
        """Whether a tensor was marked by ``mark_debug``."""
        return check_tensor(tensor, "tensor") in self.marks.debug

    def mark_unfused_tensors_as_debug_tensors(self) -> bool:
        """Let execution contexts report all values outside loops and branches to a debug listener; return True.

        ``is_debug_tensor`` stays False for these, as in TensorRT.
        """
        self.marks.unfused = True
        return True

    def unmark_unfused_tensors_as_debug_tensors(self) -> bool:
        """Undo ``mark_unfused_tensors_as_debug_tensors``; return True."""
        self.marks.unfused = False
        return True

    # ------------------------------------------------------------------ weights

    def weights_name(self, layer: IConstantLayer) -> str:
        """The name of a constant's weights: the one that they were given, or else that of the layer."""
        return self.marks.names.get(layer, layer.name)

    def set_weights_name(self, weights: Any, name: str | None) -> bool:
        """Name the weights of all constants that hold an array; None removes the name.

        These are the constants made with this very array, not with an equal one. Returns False, without effect, if
        there is none, if one of them has only a part of the array, or if other weights have the name.
        """
        array = weights_array(weights)
        holders = [constant for constant in self._constants() if _address(constant.weights) == _address(array)]
        if not holders or any(
            (holder.weights.dtype, holder.weights.size) != (array.dtype, array.size) for holder in holders
        ):
            return False
        if name is None:
            for holder in holders:
                self.marks.names.pop(holder, None)
            return True
        text("name", name)
        if any(self.weights_name(constant) == name for constant in self._constants() if constant not in holders):
            return False
        self.marks.names.update(dict.fromkeys(holders, name))
        return True

    def mark_weights_refittable(self, name: str) -> bool:
        """Let a ``Refitter`` replace weights under ``BuilderFlag.REFIT_INDIVIDUAL``; False if none have the name."""
        check_instance("name", name, str)
        if all(self.weights_name(constant) != name for constant in self._constants()):
            return False
        self.marks.refittable[name] = None
        return True

    def unmark_weights_refittable(self, name: str) -> bool:
        """Undo ``mark_weights_refittable``; return whether the weights were marked."""
        if not self.are_weights_marked_refittable(name):
            return False
        del self.marks.refittable[name]
        return True

    def are_weights_marked_refittable(self, name: str) -> bool:
        """Whether weights were marked by ``mark_weights_refittable``."""
        return check_instance("name", name, str) in self.marks.refittable

    def _constants(self) -> list[IConstantLayer]:
        layers: list[ILayer] = self.layers
        return [layer for layer in layers if isinstance(layer, IConstantLayer)]

    def _own(self, tensor: ITensor) -> ITensor:
        """Return ``tensor``, which must be of this network."""
        check_tensor(tensor, "tensor")
        if tensor.types is not self.types:
            what = f"tensor {tensor.name!r} belongs to another network"
            raise NetworkError(Finding("NL103", what, str(call_site()), reason("NL103"), at=tensor))
        return tensor


def _address(array: Array) -> int:
    return array.__array_interface__["data"][0]
