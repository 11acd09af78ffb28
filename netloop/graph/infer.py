"""The types of the tensors of a network, found when asked for and remembered until an edit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from netloop.diagnostics import Finding, LayerError, reason, require
from netloop.graph.owner import Owner
from netloop.types import LARGEST_KNOWN_VALUE, LARGEST_TENSOR, Array, OptionalType, TensorType, join

if TYPE_CHECKING:
    from netloop.graph.layer import ILayer, Types
    from netloop.graph.tensor import ITensor

NO_TENSOR = (
    "sequences and optional values are for the layers of their own family, and go through loops and conditionals"
)

Known = TensorType | Finding
"""The type of a tensor, or the reason why it has none."""


class TypeTable:
    """The types of all tensors of a network.

    A layer's types follow from those of its inputs (``ILayer.infer``); where all inputs are known values, so is the
    output, by the layer's own ``evaluate``.
    The walk keeps its own stack, so that a network may be of any depth.

    Args:
        given: types that are known already, such as those of the inputs of a call.

    Attributes:
        owner: the network that the tensors are in.
    """

    def __init__(self, given: Mapping[ITensor, TensorType] | None = None) -> None:
        self._known: dict[ITensor, Known] = dict(given or {})
        self._widened: dict[ITensor, TensorType] = {}
        self._unsettled: list[ILayer] = []
        self.owner = Owner()

    def __getitem__(self, tensor: ITensor) -> TensorType:
        """The type of a tensor that is known to have one."""
        found = self.of(tensor)
        assert isinstance(found, TensorType), f"no type for {tensor.name!r}: {found}"
        return found

    def of(self, tensor: ITensor) -> Known:
        """The type of a tensor, or the finding that tells why it has none."""
        while tensor not in self._known:
            self._walk(tensor)
            self._settle()
        return self._known[tensor]

    def complaint(self, layer: ILayer) -> Finding | None:
        """What is wrong with a layer itself; None if nothing is, or only with what it depends on."""
        for tensor in layer.type_inputs():
            if tensor is not None:
                self.of(tensor)
        found = self.of(layer.outputs[0]) if layer.outputs else self._infer(layer)
        return found if isinstance(found, Finding) and found.at is layer else None

    def forget(self, tensors: Iterable[ITensor]) -> None:
        """Forget the types of some tensors, and of all that depend on them."""
        for tensor in self._forgotten(tensors):
            self._widened.pop(tensor, None)

    def _forgotten(self, tensors: Iterable[ITensor]) -> list[ITensor]:
        """The tensors whose types are forgotten with those of some."""
        stack = list(tensors)
        forgotten: list[ITensor] = []
        while stack:
            tensor = stack.pop()
            if self._known.pop(tensor, None) is not None:
                forgotten.append(tensor)
                stack.extend(each for layer, _ in tensor.uses for each in layer.dependent_tensors())
        return forgotten

    def _settle(self) -> None:
        """Leave lengths open that do not stay what they were, until what comes round fits where it came from."""
        while self._unsettled:
            layer = self._unsettled.pop()
            following = layer.feedback()
            if following is None:
                continue
            self._walk(following)
            output, after = layer.outputs[0], self._known[following]
            before = self._known.get(output)
            if isinstance(before, TensorType) and isinstance(after, TensorType):
                widened = join(before, after)
                if widened is not None and widened != before:
                    self._widened[output] = widened
                    self._forgotten([output])
                    self._walk(output)

    def _walk(self, wanted: ITensor) -> None:
        stack = [wanted]
        entered: set[ILayer] = set()
        while stack:
            tensor = stack[-1]
            layer = tensor.producer
            if tensor in self._known:
                stack.pop()
            elif layer is None:
                assert tensor.declared is not None
                self._known[tensor] = tensor.declared
            else:
                unknown = [each for each in layer.type_inputs() if each is not None and each not in self._known]
                if unknown and layer not in entered:
                    entered.add(layer)
                    stack.extend(reversed(unknown))
                elif unknown:
                    self._learn(layer, self._cycle(layer, entered))
                else:
                    self._learn(layer, self._infer(layer))

    def _cycle(self, layer: ILayer, entered: set[ILayer]) -> Finding:
        """The finding that a layer depends on itself; the layers entered and still without types are the way around."""
        way = [layer]
        while way.count(way[-1]) == 1:
            unknown = (each.producer for each in way[-1].type_inputs() if each is not None and each not in self._known)
            way.append(next(each for each in unknown if each in entered))
        loop = way[way.index(way[-1]) :]
        return layer.finding(
            "NL102",
            f"{layer.name!r} depends on itself: " + " <- ".join(repr(each.name) for each in loop[:10]),
            reason("NL102"),
            "let the value go around through ILoop.add_recurrence",
        )

    def _learn(self, layer: ILayer, found: Types | Finding) -> None:
        types = found if isinstance(found, tuple) else (found,) * len(layer.outputs)
        for tensor, type in zip(layer.outputs, types, strict=True):
            wide = self._widened.get(tensor)
            if isinstance(type, TensorType) and wide is not None:
                type = join(type, wide) or type
            self._known.setdefault(tensor, type)
        if layer.feedback() is not None:
            self._unsettled.append(layer)

    def _infer(self, layer: ILayer) -> Types | Finding:
        types: list[TensorType | None] = []
        for position, tensor in enumerate(layer.type_inputs()):
            found = None if tensor is None else self._known[tensor]
            if isinstance(found, Finding):
                return found
            if found is None and position < layer.REQUIRED_INPUTS:
                return missing_input(layer, position)
            if found is not None and layer.TENSORS_ONLY and not found.is_tensor:
                return layer.finding_of(LayerError(f"input {position} takes a tensor, not {_a(found)}", NO_TENSOR))
            types.append(found)
        try:
            return _with_values(layer, types, _possible(layer.infer(*types)))
        except LayerError as error:
            return layer.finding_of(error)


def _a(found: TensorType) -> str:
    return f"an {found}" if isinstance(found, OptionalType) else f"a {found}"


def _possible(types: Types) -> Types:
    """The types of the outputs, if tensors can be so large.

    Raises:
        LayerError: one cannot.
    """
    for each in types if isinstance(types, tuple) else (types,):
        require(each.is_possible, f"the output is {each}", f"no tensor has more than {LARGEST_TENSOR} bytes")
    return types


def missing_input(layer: ILayer, position: int) -> Finding:
    """The finding that a layer lacks an input it cannot do without."""
    return layer.finding(
        "NL101",
        f"input {position} of {layer.name!r} is missing",
        reason("NL101"),
        f"call set_input({position}, tensor) on the layer",
    )


def _with_values(layer: ILayer, inputs: list[TensorType | None], outputs: Types) -> Types:
    """The types of the outputs, with their values where these follow from known values and are small."""
    evaluate = getattr(layer, "evaluate", None)
    types = outputs if isinstance(outputs, tuple) else (outputs,)
    if evaluate is None or not types or not _foldable(layer, inputs, types):
        return outputs
    try:
        with np.errstate(all="ignore"):
            made = evaluate(*(None if each is None else each.value for each in inputs))
    except LayerError:
        return outputs
    values: tuple[Array, ...] = made if isinstance(made, tuple) else (made,)
    known = tuple(replace(each, value=value, shape=value.shape) for each, value in zip(types, values, strict=True))
    return known if isinstance(outputs, tuple) else known[0]


def _foldable(layer: ILayer, inputs: list[TensorType | None], outputs: tuple[TensorType, ...]) -> bool:
    small = all(each.value is None and 0 <= each.nbytes <= LARGEST_KNOWN_VALUE for each in outputs)
    known = all(each is None or each.value is not None for each in inputs)
    return small and known and getattr(layer, "is_foldable", False)
