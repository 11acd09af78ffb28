"""Type inference: the types of the tensors of a network, computed on demand and kept until an edit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from netloop.values.diagnostics import Finding, LayerError, reason
from netloop.values.types import (
    LARGEST_KNOWN_VALUE,
    Array,
    OptionalType,
    TensorType,
    UnrankedType,
    join,
    require_possible,
)

if TYPE_CHECKING:
    from netloop.model.graph.layer import ILayer, Types
    from netloop.model.graph.tensor import ITensor
    from netloop.values.enums import DataType

TENSORS_ONLY = "only their own family of layers, loops and conditionals take sequences and optional values"

NO_STRINGS = "only layers for strings, and layers that move elements or test them for equality, take strings"
USE_CAST = "convert texts that are numbers with add_cast"

Known = TensorType | Finding
"""The type of a tensor, or the finding why it has none."""


class Owner:
    """The interface by which tensors and layers call their network. This class, for those in none, does nothing."""

    def shape_tensors(self) -> frozenset[ITensor]:
        """The tensors whose values decide the shape of some tensor."""
        return frozenset()

    def is_shape_tensor(self, tensor: ITensor) -> bool:
        """Whether the shape of some tensor depends on the value of this one."""
        return tensor in self.shape_tensors()

    def convert(self, tensor: ITensor, dtype: DataType) -> None:
        """Give an input or output another element type than the layers compute with."""

    def warn_once(self, topic: str, what: str) -> None:
        """Log a hint, once for each topic."""


class TypeTable:
    """The types of all tensors of a network.

    The types of a layer's outputs follow from those of its inputs (``ILayer.infer``); where the values of all inputs
    are known, the value of the output is too, by the layer's ``evaluate``. The walk keeps its own stack, so that a
    network may have any depth. ``inputs``, the types of the inputs of a call, are known; a branch that is
    not possible for them is an error only if it is taken.

    Attributes:
        owner: the network that the tensors are in.
        is_of_call: whether the types are those of a call.
    """

    def __init__(self, inputs: Mapping[ITensor, TensorType] | None = None) -> None:
        self.is_of_call = inputs is not None
        self._inputs = dict(inputs or {})
        self._known: dict[ITensor, Known] = dict(self._inputs)
        self._widened: dict[ITensor, TensorType] = {}
        self._unchecked: list[ILayer] = []
        self.owner = Owner()

    def __getitem__(self, tensor: ITensor) -> TensorType:
        """The type of a tensor, which must have one."""
        type_ = self.of(tensor)
        assert isinstance(type_, TensorType), f"no type for {tensor.name!r}: {type_}"
        return type_

    def of(self, tensor: ITensor) -> Known:
        """The type of a tensor, or the finding why it has none."""
        while tensor not in self._known:
            self._walk(tensor)
            self._widen()
        return self._known[tensor]

    def give(self, tensor: ITensor, type_: TensorType) -> None:
        """Take a type that does not follow from those of the inputs as that of a tensor that nothing has read yet."""
        self._known[tensor] = self._inputs[tensor] = type_

    def learn(self, other: TypeTable, pairs: Iterable[tuple[ITensor, ITensor]], *, with_values: bool) -> None:
        """Take over what another table knows: the type of the first tensor of each pair is that of the second too.

        If its types are those of a call, those that follow from them are too.
        Known values may be views of arrays of layers, so ``with_values`` is for layers that share theirs.
        """
        self.is_of_call |= other.is_of_call
        for tensor, copy in pairs:
            type_ = other._known.get(tensor)
            if isinstance(type_, TensorType) and (with_values or type_.value is None):
                self._known.setdefault(copy, type_)
            if tensor in other._widened:
                self._widened[copy] = other._widened[tensor]

    def finding(self, layer: ILayer) -> Finding | None:
        """The finding at a layer itself; None if it is valid, or only something that it depends on is not."""
        for tensor in layer.type_inputs():
            if tensor is not None:
                self.of(tensor)
        type_ = self.of(layer.outputs[0]) if layer.outputs else self._infer(layer)
        return type_ if isinstance(type_, Finding) and type_.at is layer else None

    def forget(self, tensors: Iterable[ITensor]) -> None:
        """Forget the types of tensors, and of all that depend on them."""
        for tensor in self._forgotten(tensors):
            self._widened.pop(tensor, None)

    def _forgotten(self, tensors: Iterable[ITensor]) -> list[ITensor]:
        """Forget types, except widened ones, and return the tensors that had them."""
        stack = list(tensors)
        forgotten: list[ITensor] = []
        while stack:
            tensor = stack.pop()
            # those of a call may lie behind a recurrence, whose length is widened, and do not follow from it
            if tensor not in self._inputs and self._known.pop(tensor, None) is not None:
                forgotten.append(tensor)
                stack.extend(other for layer, _ in tensor.uses for other in layer.dependent_tensors())
        return forgotten

    def _widen(self) -> None:
        """Make a length of a recurrence unknown if its next value changes it, until all next values fit."""
        # This ends, since types only lose information here: a length never becomes known again.
        while self._unchecked:
            layer = self._unchecked.pop()
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
                unknown = [tensor for tensor in layer.type_inputs() if tensor is not None and tensor not in self._known]
                if unknown and layer not in entered:
                    entered.add(layer)
                    stack.extend(reversed(unknown))
                elif unknown:
                    self._learn(layer, self._cycle(layer, entered))
                else:
                    self._learn(layer, self._infer(layer))

    def _cycle(self, layer: ILayer, entered: set[ILayer]) -> Finding:
        """The finding that a layer depends on itself, by a cycle of layers that were entered and have no types yet."""
        path = [layer]
        while path.count(path[-1]) == 1:
            unknown = (
                tensor.producer for tensor in path[-1].type_inputs() if tensor is not None and tensor not in self._known
            )
            path.append(next(layer for layer in unknown if layer in entered))
        cycle = path[path.index(path[-1]) :]
        return layer.finding(
            "NL102",
            f"{layer.name!r} depends on itself: " + " <- ".join(repr(layer.name) for layer in cycle[:10]),
            reason("NL102"),
            "carry the value through ILoop.add_recurrence",
        )

    def _learn(self, layer: ILayer, result: Types | Finding) -> None:
        types = result if isinstance(result, tuple) else (result,) * len(layer.outputs)
        for tensor, type in zip(layer.outputs, types, strict=True):
            wide = self._widened.get(tensor)
            if isinstance(type, TensorType) and wide is not None:
                type = join(type, wide) or type
            self._known.setdefault(tensor, type)
        if layer.feedback() is not None:
            self._unchecked.append(layer)

    def input_types(self, layer: ILayer) -> list[Known | None]:
        """The types or findings from which the types of the outputs of a layer follow."""
        return [None if tensor is None else self._known[tensor] for tensor in layer.type_inputs()]

    def _infer(self, layer: ILayer) -> Types | Finding:
        types: list[TensorType | None] = []
        inputs = self.input_types(layer)
        for position, result in enumerate(layer.possible_types(inputs) if self.is_of_call else inputs):
            if isinstance(result, Finding):
                return result
            if result is None and _is_required(layer, position):
                return missing_input(layer, position)
            if result is not None and layer.TENSORS_ONLY and not result.is_tensor:
                return layer.finding_of(_no_tensor(position, result))
            if result is not None and result.is_string and not layer.TAKES_STRINGS:
                return layer.finding_of(LayerError(f"input {position} takes no {result}", NO_STRINGS, USE_CAST))
            types.append(result)
        if len(types) < layer.REQUIRED_INPUTS:
            return missing_input(layer, len(types))
        try:
            return outputs_with_values(layer, types, _possible(layer.infer(*types)))
        except LayerError as error:
            return layer.finding_of(error)


def _is_required(layer: ILayer, position: int) -> bool:
    """Whether an input may not be None: only those that have a parameter of their own can be optional."""
    return position < layer.REQUIRED_INPUTS or layer.MAX_INPUTS <= position < len(layer.inputs)


def _no_tensor(position: int, type_: TensorType) -> LayerError:
    if isinstance(type_, UnrankedType):
        what = f"input {position} is {type_}, as the branches of a conditional have different ranks"
        return LayerError(what, "only an output of the network may have the rank of the branch taken", "reshape one")
    return LayerError(f"input {position} takes a tensor, not {_a(type_)}", TENSORS_ONLY)


def _a(type_: TensorType) -> str:
    return f"an {type_}" if isinstance(type_, OptionalType) else f"a {type_}"


def _possible(types: Types) -> Types:
    """Return ``types``; raise if one exceeds the largest size of a tensor.

    Raises:
        LayerError: one is.
    """
    for type_ in types if isinstance(types, tuple) else (types,):
        require_possible(type_, "the output")
    return types


def missing_input(layer: ILayer, position: int) -> Finding:
    """The finding that a layer lacks a required input."""
    return layer.finding(
        "NL101",
        f"input {position} of {layer.name!r} is missing",
        reason("NL101"),
        f"call set_input({position}, tensor) on the layer",
    )


def known_outputs(layer: ILayer, inputs: list[TensorType | None]) -> tuple[Array, ...] | None:
    """The values of a layer's outputs for inputs of these types, if all are known; None if they are not."""
    if not _all_known(inputs):
        return None
    try:
        types = outputs_with_values(layer, inputs, layer.infer(*inputs))
    except LayerError:
        return None
    values = [type.value for type in (types if isinstance(types, tuple) else (types,))]
    return None if any(value is None for value in values) else tuple(value for value in values if value is not None)


def outputs_with_values(layer: ILayer, inputs: list[TensorType | None], outputs: Types) -> Types:
    """Return the types of the outputs, with their values where these are small and follow from known values."""
    evaluate = getattr(layer, "evaluate", None)
    types = outputs if isinstance(outputs, tuple) else (outputs,)
    if evaluate is None or not types or not _foldable(layer, types):
        return outputs
    if not _all_known(inputs):
        return _with_elements(layer, inputs, outputs) if isinstance(outputs, TensorType) else outputs
    try:
        with np.errstate(all="ignore"):
            arrays = evaluate(*(None if tensor_type is None else tensor_type.value for tensor_type in inputs))
    except LayerError:
        return outputs
    values: tuple[Array, ...] = arrays if isinstance(arrays, tuple) else (arrays,)
    valued = tuple(replace(type_, value=value, shape=value.shape) for type_, value in zip(types, values, strict=True))
    return valued if isinstance(outputs, tuple) else valued[0]


def _with_elements(layer: ILayer, inputs: list[TensorType | None], output: TensorType) -> TensorType:
    """Return the type of an output, with those of its elements that follow from known elements of the inputs."""
    present = [tensor_type for tensor_type in inputs if tensor_type is not None]
    if output.partial is not None:
        return output
    # only layers that join inputs make a partly known value of known and unknown ones; asking the others costs 40 us
    is_joined = getattr(layer, "MOVED_INPUTS", 0) > 1 and any(type_.value is not None for type_ in present)
    if not is_joined and all(type_.partial is None for type_ in present):
        return output
    if any(type_.elements() is None for type_ in present):
        return output
    partial = getattr(layer, "partial", None)
    try:
        elements = partial and partial(*(tensor_type and tensor_type.elements() for tensor_type in inputs))
    except LayerError:
        return output
    if elements is None or elements.mask.all():
        return output
    return replace(output, partial=elements) if np.ma.is_masked(elements) else replace(output, value=elements.data)


def _foldable(layer: ILayer, outputs: tuple[TensorType, ...]) -> bool:
    small = all(tensor_type.value is None and 0 <= tensor_type.nbytes <= LARGEST_KNOWN_VALUE for tensor_type in outputs)
    return small and getattr(layer, "is_foldable", False)


def _all_known(types: Iterable[TensorType | None]) -> bool:
    return all(tensor_type is None or tensor_type.value is not None for tensor_type in types)
