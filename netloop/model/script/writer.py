"""The statements of a script, written while they are carried out on a second network.

Each call that adds a layer is made on that network too. What then still differs from the layer of the network that is
written follows as assignments and ``set_input`` calls, so defaults need no table here.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from netloop.model.graph import ILayer, ITensor
from netloop.model.layers.attention import IAttention, IAttentionInputLayer, IAttentionOutputLayer
from netloop.model.layers.conditional import IIfConditional, IIfConditionalBoundaryLayer
from netloop.model.layers.loop import ILoop, ILoopBoundaryLayer
from netloop.model.network import INetworkDefinition
from netloop.model.plugins.description import description
from netloop.model.plugins.interfaces import IPluginV3
from netloop.model.script.calls import Method, methods
from netloop.model.script.values import Names, ScriptWeights, expression
from netloop.values.diagnostics import NetworkError
from netloop.values.map_types import MapType
from netloop.values.types import OptionalType, SequenceType, TensorType, data_type

TENSOR_EXTRAS = ("location", "allowed_formats", "broadcast_across_batch")
"""Properties of any tensor that scripts may set."""

OF_ATTENTION = ("decomposable", "query_form", "key_value_form", "normalization_quantize_to_type")
INPUTS_OF_ATTENTION = ("mask", "query_lengths", "key_value_lengths", "normalization_quantize_scale")
"""The attributes of an attention that its ``add_`` method does not take: values, and tensors."""


class ScriptWriter:
    """Writes the statements that build a network; attributes that are ``left_out`` are not set.

    Attributes:
        weights: the arrays that the statements read.
    """

    def __init__(self, network: INetworkDefinition, left_out: frozenset[str] = frozenset()) -> None:
        self.weights = ScriptWeights()
        self._left_out = left_out
        self._network = network
        self._names = Names()
        self._layers_named = Counter(layer.name for layer in network.layers)
        self._lines: list[str] = []
        self._made = INetworkDefinition(None, network.flags)
        self._parts: dict[Any, Any] = {network: self._made}
        self._texts: dict[Any, str] = {network: "network"}
        self._later: dict[ITensor, list[tuple[ILayer, int, str]]] = {}

    def lines(self) -> list[str]:
        """Return the statements.

        Raises:
            NetworkError: a plugin has no name by which a script could find its creator.
        """
        if self._network.name != self._made.name:
            self._lines.append(f"network.name = {self._network.name!r}")
        for layer, name in self._network.marks.names.items():
            # weights are named by their array, so even small ones are in the file
            self.weights.read(layer.weights, name)
        for tensor in self._network.inputs:
            self._add_input(tensor)
        for layer in in_order(self._network.layers):
            self._add_layer(layer)
        self._mark()
        return self._lines

    # ------------------------------------------------------------------ inputs

    def _add_input(self, tensor: ITensor) -> None:
        declared = tensor.declared
        assert declared is not None, "an input has a type"
        dtype, shape = data_type(declared.dtype), declared.held_shape
        arguments: list[Any] = [tensor.name, dtype, shape if shape is None else tuple(shape)]
        method = "add_input"
        if isinstance(declared, OptionalType):
            method = "add_optional_input"
            arguments.append(isinstance(declared.present, SequenceType))
        elif isinstance(declared, SequenceType):
            method = "add_sequence_input"
        elif isinstance(declared, MapType):
            method, arguments = "add_map_input", [tensor.name, data_type(declared.key), dtype]
        copy = getattr(self._made, method)(*arguments)
        self._assign(tensor, copy, f"network.{method}({', '.join(map(expression, arguments))})", "input")

    def _assign(self, tensor: ITensor, copy: ITensor, text: str, otherwise: str) -> None:
        """Write the assignment of a tensor to a variable, and its settings."""
        self._parts[tensor] = copy
        name = self._texts[tensor] = self._names.of(tensor.name, otherwise)
        type_ = tensor.types.of(tensor)
        comment = f"  # {type_}" if isinstance(type_, TensorType) else ""
        self._lines.append(f"{name} = {self._named(tensor, copy, text)}{comment}")
        self._set(tensor, copy, TENSOR_EXTRAS)
        for axis, label in tensor.dimension_names.items():
            self._lines.append(f"{name}.set_dimension_name({axis}, {label!r})")
            copy.set_dimension_name(axis, label)

    def _named(self, part: Any, copy: Any, text: str) -> str:
        """The expression of a layer, tensor, loop or conditional with the name and metadata that it has to have."""
        metadata = getattr(part, "metadata", "")
        if part.name == copy.name and not metadata:
            return text
        copy.name = part.name
        if metadata:
            copy.metadata = metadata
        return f"named({text}, {part.name!r}{f', {metadata!r}' if metadata else ''})"

    def _set(self, part: Any, copy: Any, attributes: Iterable[str], variable: str = "") -> None:
        """Write assignments of the attributes in which a part of the network differs from the one made so far."""
        variable = variable or self._texts[part]
        for name in attributes:
            value = getattr(part, name)
            if not same(value, getattr(copy, name)):
                self._lines.append(f"{variable}.{name} = {self._expression(value, f'{variable}_{name}')}")
                setattr(copy, name, value)

    def _expression(self, value: Any, name: str) -> str:
        if isinstance(value, ITensor | ILoop | IIfConditional):
            return self._texts[value]
        if isinstance(value, list):
            return f"[{', '.join(self._expression(element, name) for element in value)}]"
        if isinstance(value, IPluginV3):
            return self._plugin(value)
        return self.weights.expression(value, name) if isinstance(value, np.ndarray) else expression(value)

    def _plugin(self, plugin: IPluginV3) -> str:
        name, version, namespace, fields = description(plugin)
        weights = self.weights.expression
        text = ", ".join(
            f"trt.PluginField({field.name!r}, {weights(field.data, field.name)}, {expression(field.type)})"
            for field in fields
        )
        return f"plugin({name!r}, {version!r}, {namespace!r}, [{text}])"

    # ------------------------------------------------------------------ layers

    def _add_layer(self, layer: ILayer) -> None:
        if isinstance(layer, IAttentionInputLayer):
            self._add_attention(layer)
        elif isinstance(layer, IAttentionOutputLayer):
            self._finish_attention(layer)
        else:
            method, copy = self._best_call(layer, self._owner_of(layer))
            variable = self._variable(layer)
            call = f"{self._texts[self._owner_of(layer)]}.{method.name}({self._arguments(method, layer, variable)})"
            named = self._named(layer, copy, call)
            settings = self._settings(layer, copy, variable)
            waits = any(copy is layer for waiting in self._later.values() for layer, _, _ in waiting)
            if settings or waits or layer.num_outputs > 1 or (layer.num_outputs and named != call):
                self._lines += [f"{variable} = {named}", *settings]
                named = variable
            elif not layer.num_outputs:
                self._lines.append(named)
            self._assign_outputs(layer, copy, named)

    def _arguments(self, method: Method, layer: ILayer, variable: str) -> str:
        values = zip(method.parameters, method.arguments(layer), strict=True)
        try:
            return ", ".join(self._expression(value, f"{variable}_{parameter.name}") for parameter, value in values)
        except ValueError as error:
            what = f"the network cannot be written as a script: the plugin of {layer.described} {error}"
            raise NetworkError(layer.finding("NL714", what)) from error.__cause__

    def _variable(self, layer: ILayer) -> str:
        # importers give all layers of a node its name, which would hide what each of them is
        name = layer.name if self._layers_named[layer.name] == 1 else ""
        return self._names.of(name, f"{_label(layer)}_layer")

    def _owner_of(self, layer: ILayer) -> Any:
        """The object whose method adds a layer: the network, or its loop or conditional, which is added first."""
        if isinstance(layer, ILoopBoundaryLayer):
            return self._group(layer.loop, self._network.loops, "loop")
        if isinstance(layer, IIfConditionalBoundaryLayer):
            return self._group(layer.conditional, self._network.conditionals, "if_conditional")
        return self._network

    def _group(self, group: Any, groups: list[Any], kind: str) -> Any:
        for value in groups:
            if value not in self._parts:
                self._parts[value] = copy = getattr(self._made, f"add_{kind}")()
                variable = self._texts[value] = self._names.of(value.name, kind.removeprefix("if_"))
                self._lines += ["", f"{variable} = {self._named(value, copy, f'network.add_{kind}()')}"]
            if value is group:
                break
        return group

    def _best_call(self, layer: ILayer, owner: Any) -> tuple[Method, ILayer]:
        """Add the layer to the second network by the method that leaves the fewest attributes to be set."""
        candidates = methods()[type(layer)]
        best = candidates[0]
        if len(candidates) > 1:
            count = len(self._made.layers)
            differences: list[int] = []
            for candidate in candidates:
                differences.append(self._differences(layer, self._call(candidate, layer, owner)))
                self._made.withdraw(count)
            best = candidates[differences.index(min(differences))]
        return best, self._call(best, layer, owner)

    def _call(self, method: Method, layer: ILayer, owner: Any) -> ILayer:
        arguments = [self._made_part(argument) for argument in method.arguments(layer)]
        return getattr(self._parts[owner], method.name)(*arguments)

    def _made_part(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._made_part(element) for element in value]
        return self._parts[value] if isinstance(value, ITensor) else value

    def _differences(self, layer: ILayer, copy: ILayer) -> int:
        differ = [
            attribute for attribute in layer.ATTRIBUTES if not same(getattr(layer, attribute), getattr(copy, attribute))
        ]
        return len(differ) + len(layer.ATTRIBUTES) * len(layer.READ_ONLY & {*differ} - {"loop", "conditional"})

    def _settings(self, layer: ILayer, made: ILayer, variable: str) -> list[str]:
        """The statements that set what the call left different, and the inputs that it does not take."""
        before, self._lines = self._lines, []
        self._set(layer, made, ["num_ranks"], variable)
        self._set(
            layer,
            made,
            [attribute for attribute in layer.ATTRIBUTES if attribute not in layer.READ_ONLY | self._left_out],
            variable,
        )
        for index, tensor in enumerate(layer.inputs):
            present = made.inputs[index] if index < made.num_inputs else None
            if tensor is not None and (tensor not in self._parts or present is not self._parts[tensor]):
                self._set_input(made, index, tensor, variable)
        settings, self._lines = self._lines, before
        return settings

    def _set_input(self, made: ILayer, index: int, tensor: ITensor, variable: str) -> None:
        """Set an input now if its tensor is there, else as soon as it is."""
        if tensor not in self._texts:
            self._later.setdefault(tensor, []).append((made, index, variable))
            return
        self._lines.append(f"{variable}.set_input({index}, {self._texts[tensor]})")
        made.set_input(index, self._parts[tensor])

    def _assign_outputs(self, layer: ILayer, made: Any, text: str) -> None:
        """Write the assignments of the outputs of a layer, and the statements that wait for them."""
        for tensor in layer.outputs:
            self._assign(
                tensor, made.get_output(tensor.position), f"{text}.get_output({tensor.position})", _label(layer)
            )
            for waiting, index, name in self._later.pop(tensor, []):
                self._set_input(waiting, index, tensor, name)

    # ------------------------------------------------------------------ attentions, which are two layers

    def _add_attention(self, layer: IAttentionInputLayer) -> None:
        ((output, _), *_) = layer.outputs[0].uses
        attention = IAttention(output)  # pyright: ignore[reportArgumentType]
        values = [attention.norm_op, attention.causal_kind]
        copy = self._made.add_attention_v2(*map(self._made_part, layer.inputs), *values)
        self._parts[output] = copy
        self._parts.update(zip(layer.outputs, copy.input_layer.outputs, strict=True))
        variable = self._texts[output] = self._variable(output)
        arguments = ", ".join(self._expression(tensor, "") for tensor in [*layer.inputs, *values])
        call = self._named(attention, copy, f"network.add_attention_v2({arguments})")
        self._lines.append(f"{variable} = {call}")

    def _finish_attention(self, layer: IAttentionOutputLayer) -> None:
        attention, copy, variable = IAttention(layer), self._parts[layer], self._texts[layer]
        self._set(attention, copy, ["num_ranks", *OF_ATTENTION], variable)
        for name in INPUTS_OF_ATTENTION:
            tensor = getattr(attention, name)
            if tensor is not None:
                self._lines.append(f"{variable}.{name} = {self._texts[tensor]}")
                setattr(copy, name, self._parts[tensor])
        self._assign_outputs(layer, copy, variable)

    # ------------------------------------------------------------------ marks

    def _mark(self) -> None:
        network, marks = self._network, self._network.marks
        self._lines.append("")
        for tensor in network.outputs:
            method = "mark_output_for_shapes" if tensor in marks.shapes else "mark_output"
            self._lines.append(f"network.{method}({self._texts[tensor]})")
        self._lines += [f"network.mark_debug({self._texts[tensor]})" for tensor in marks.debug]
        if marks.unfused:
            self._lines.append("network.mark_unfused_tensors_as_debug_tensors()")
        named = {id(layer.weights): (layer, name) for layer, name in marks.names.items()}
        for layer, name in named.values():
            self._lines.append(f"network.set_weights_name({self.weights.read(layer.weights, name)}, {name!r})")
        self._lines += [f"network.mark_weights_refittable({name!r})" for name in marks.refittable]


def _label(layer: ILayer) -> str:
    return layer.LABEL.lower().replace(" ", "_")


def same(a: Any, b: Any) -> bool:
    """Whether two values of an attribute are equal; NaN equals itself."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return a is b or (isinstance(a, type(b)) and a.dtype == b.dtype and a.tobytes() == b.tobytes())
    return a is b or repr(a) == repr(b)


def in_order(layers: Iterable[ILayer]) -> Iterator[ILayer]:
    """The layers, each after those of the tensors that the method which adds it takes; others are set later."""
    done: set[ILayer] = set()
    for layer in layers:
        waiting = [layer]
        while waiting:
            present = waiting[-1]
            missing = [producer for producer in _producers(present) if producer not in done]
            if missing and present not in done:
                waiting += missing
                continue
            waiting.pop()
            if present not in done:
                done.add(present)
                yield present


def _producers(layer: ILayer) -> list[ILayer]:
    added_by = methods().get(type(layer))
    tensors = layer.inputs[: added_by[0].num_tensors] if added_by else layer.inputs
    return [tensor.producer for tensor in tensors if tensor is not None and tensor.producer is not None]
