"""The network that users build: its inputs, outputs and layers.

The methods that add layers are in ``layers/``, next to the layers; the methods that mark tensors are in ``marking.py``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from netloop.model.graph.argument_hints import network_hint
from netloop.model.graph.attributes import check_instance, check_member
from netloop.model.graph.call_site import call_site
from netloop.model.graph.infer import TypeTable
from netloop.model.graph.layer import ILayer
from netloop.model.graph.layer_compat import PLAIN
from netloop.model.graph.listed_layer import as_listed
from netloop.model.graph.tensor import ITensor, declared_type
from netloop.model.layers import LayerMethods
from netloop.model.layers.conditional import IIfConditional
from netloop.model.layers.loop import ILoop
from netloop.model.layers.pointwise import ICastLayer
from netloop.model.layers.sources import IShapeLayer
from netloop.model.marking import MarkMethods, Marks
from netloop.model.nest.listing import listing, listing_html, summary
from netloop.values.checked_attributes import CheckedAttributes, WithStatement
from netloop.values.diagnostics import Finding, NetworkError, SourceLocation, reason
from netloop.values.enums import DataType, NetworkDefinitionCreationFlag
from netloop.values.map_types import map_type
from netloop.values.types import TensorType, numpy_type
from netloop.values.unpicklable import Unpicklable

G = TypeVar("G", ILoop, IIfConditional)


class INetworkDefinition(WithStatement, Unpicklable, LayerMethods, MarkMethods, CheckedAttributes):
    """A network, built layer by layer. ``network[i]`` is layer number ``i``, whose
    ``type`` is its LayerType, as in TensorRT.

    The ``add_`` methods raise TypeError for an argument of the wrong Python type. Whether types and shapes fit is
    checked by :func:`netloop.check`, by :func:`netloop.compile`, and when ``shape`` or ``dtype`` of a tensor is read;
    until then ``set_input`` can still correct them. With ``Builder.none_on_error``, the methods log an error that no
    later call can correct, and return None.

    Attributes:
        name: the name.
        builder: the builder that made the network.
        flags: the creation flags, one bit each.
        layers: the layers, in the order in which they were added.
        inputs, outputs: the inputs and outputs, in the order in which they were added and marked.
        loops, conditionals: the loops and conditionals, in the order in which they were added.
        types: the types of the tensors.
        marks: the marked tensors in addition to the outputs.
        source_location: the line of the user's script that made the network.
    """

    ARGUMENT_HINT = staticmethod(network_hint)
    FAMILY = "structure"
    UNLISTED = frozenset((
        *("add", "conditionals", "convert", "copy", "inputs", "is_shape_tensor", "layers", "loops", "marks", "network"),
        *("none_on_error", "outputs", "report", "shape_tensors", "source_location", "types", "warn_once"),
        *("weights_name", "withdraw"),
    ))  # fmt: skip
    UNPICKLABLE = (
        "cannot be pickled, as it is of a class of your own; pickle netloop.plan.dumps(network), and call "
        "netloop.plan.loads in the other process"
    )

    name: str = "Unnamed Network 0"
    error_recorder: Any = None

    builder: Any
    flags: int
    layers: list[ILayer]
    inputs: list[ITensor]
    outputs: list[ITensor]
    loops: list[ILoop]
    conditionals: list[IIfConditional]
    types: TypeTable
    source_location: SourceLocation

    def __init__(self, builder: Any = None, flags: int = 0) -> None:
        own = vars(self)
        own["builder"], own["flags"] = builder, operator.index(flags)
        own["types"], own["marks"], own["source_location"] = TypeTable(), Marks(), call_site()
        own.update((name, []) for name in ("layers", "inputs", "outputs", "loops", "conditionals"))
        recorder = getattr(builder, "error_recorder", None)
        if recorder is not None:
            self.error_recorder = recorder
        self.types.owner = self
        self._warned: set[str] = set()

    # ------------------------------------------------------------------ inputs, outputs, layers

    def add_input(self, name: str, dtype: DataType, shape: Sequence[int]) -> ITensor:
        """Add an input; a dim of -1 in the shape is known only when the network is called.

        Raises:
            NetworkError: the network already has an input of this name.
        """
        return self._add_input(name, dtype, shape)

    def add_sequence_input(self, name: str, dtype: DataType, shape: Sequence[int] | None = None) -> ITensor:
        """Add an input that is a sequence of tensors, passed as a list of arrays; a netloop extension.

        Args:
            name: the name.
            dtype: the element type of all tensors.
            shape: the shape of each tensor, with -1 for a dim that varies; None if the rank varies too.

        Raises:
            NetworkError: the network already has an input of this name.
        """
        return self._add_input(name, dtype, shape, sequence=True)

    def add_optional_input(
        self, name: str, dtype: DataType, shape: Sequence[int] | None = None, sequence: bool = False
    ) -> ITensor:
        """Add an input that may be absent: a call may pass None for it; a netloop extension.

        Args:
            name: the name.
            dtype: the element type.
            shape: the shape of the tensor, or of each tensor of a sequence; None is allowed only for a sequence.
            sequence: whether the input is a sequence of tensors.

        Raises:
            NetworkError: the network already has an input of this name.
        """
        return self._add_input(name, dtype, shape, check_instance("sequence", sequence, bool), optional=True)

    def add_map_input(self, name: str, key: DataType, dtype: DataType) -> ITensor:
        """Add an input that is a map, passed as a dict; a netloop extension.

        Args:
            name: the name.
            key: the type of the keys: INT64 or STRING.
            dtype: the type of the values: FLOAT, DOUBLE, INT64 or STRING.

        Raises:
            NetworkError: the network already has an input of this name.
            ValueError: no map has keys or values of this type.
        """
        types = check_member("key", key, DataType), check_member("dtype", dtype, DataType)
        return self._declare(name, lambda: map_type(*types))

    def _add_input(
        self, name: str, dtype: DataType, shape: Sequence[int] | None, sequence: bool = False, optional: bool = False
    ) -> ITensor:
        check_member("dtype", dtype, DataType)
        return self._declare(name, lambda: declared_type(dtype, shape, sequence, optional))

    def _declare(self, name: str, declared: Callable[[], TensorType]) -> ITensor:
        """Add an input, whose type is made after its name is checked."""
        check_instance("name", name, str)
        if any(tensor.name == name for tensor in self.inputs):
            what = f"the network already has an input {name!r}"
            raise NetworkError(
                Finding("NL104", what, str(call_site()), reason("NL104"), "choose another name", at=self)
            )
        tensor = ITensor("", self.types, None, len(self.inputs), declared())
        tensor.name = name
        self.inputs.append(tensor)
        return tensor

    def mark_output(self, tensor: ITensor) -> None:
        """Make a tensor an output of the network, with the element type that its ``dtype`` was set to."""
        super().mark_output(tensor)
        if tensor.asked_dtype is not None:
            self.convert(tensor, tensor.asked_dtype)

    def remove_tensor(self, tensor: ITensor) -> None:
        """Remove an input that no layer reads, for good; for any other tensor, do nothing."""
        if tensor in self.inputs and not tensor.uses and not tensor.is_network_output:
            self.inputs.remove(tensor)
            self.marks.debug.pop(tensor, None)
            vars(tensor)["types"] = INetworkDefinition().types  # so that every call refuses it
            for position, other in enumerate(self.inputs):
                vars(other)["position"] = position

    @property
    def num_layers(self) -> int:
        """The number of layers, including the boundary layers of loops and conditionals."""
        return len(self.layers)

    @property
    def num_inputs(self) -> int:
        """The number of inputs."""
        return len(self.inputs)

    @property
    def num_outputs(self) -> int:
        """The number of outputs."""
        return len(self.outputs)

    @property
    def has_implicit_batch_dimension(self) -> bool:
        """False: all axes are part of the shapes."""
        return False

    def get_layer(self, index: int) -> Any:
        """Layer number ``index``; None if there is none. Its ``type`` is a LayerType, as of ``network[index]``."""
        layer: ILayer | None = _at(self.layers, index)
        return None if layer is None else as_listed(layer)

    def get_input(self, index: int) -> ITensor | Any:
        """Input number ``index``; None if there is none."""
        return _at(self.inputs, index)

    def get_output(self, index: int) -> ITensor | Any:
        """Output number ``index``; None if there is none."""
        return _at(self.outputs, index)

    def get_flag(self, flag: NetworkDefinitionCreationFlag) -> bool:
        """Whether a creation flag was set."""
        return bool(self.flags >> int(flag) & 1)

    def __len__(self) -> int:
        return len(self.layers)

    # Any, as each layer has the attributes of its kind
    def __getitem__(self, index: int) -> Any:
        try:
            return as_listed(self.layers[operator.index(index)])
        except IndexError:
            raise IndexError(f"the layers of the network have the numbers below {len(self)}, not {index}") from None

    def __iter__(self) -> Iterator[Any]:
        return map(as_listed, self.layers)

    # ------------------------------------------------------------------ loops and conditionals

    def add_loop(self) -> ILoop:
        """Add a loop; its methods add its trip limits, iterators, recurrences and outputs."""
        loop = ILoop(self, f"(Unnamed Loop* {len(self.loops)})")
        self.loops.append(loop)
        return loop

    def add_if_conditional(self) -> IIfConditional:
        """Add a conditional; its methods set its condition, and add its inputs and outputs."""
        conditional = IIfConditional(self, f"(Unnamed IfConditional* {len(self.conditionals)})")
        self.conditionals.append(conditional)
        return conditional

    # ------------------------------------------------------------------ settable types of tensors, as in TensorRT 10

    def convert(self, tensor: ITensor, dtype: DataType) -> None:
        """Accept an input, or return an output, in an element type other than the one the layers compute with."""
        is_seen = tensor.is_network_input or tensor.is_network_output
        vars(tensor)["asked_dtype"] = None if is_seen else dtype
        if not is_seen and isinstance(self.types.of(tensor), Finding):
            return  # a later input may complete its layer, as the length of a loop output does
        if not tensor.type.is_tensor:
            raise AttributeError(f"{tensor.name!r} is {tensor.type}, and its element type cannot be set")
        if tensor.dtype is dtype:
            return
        if not is_seen:
            what = f"{tensor.name!r} stays {tensor.dtype.name} until it is marked as an output"
            self.warn_once(f"dtype of {tensor.name}", what)
        elif not {tensor.dtype, dtype} <= PLAIN:
            what = f"{tensor.name!r} stays {tensor.dtype.name}: a conversion to {dtype.name} needs a scale"
            self.warn_once(f"dtype of {tensor.name}", f"{what}; use add_quantize or add_dequantize")
        elif tensor.is_network_input:
            self._convert_input(tensor, dtype)
        else:
            self._convert_output(tensor, dtype)

    def _convert_input(self, tensor: ITensor, dtype: DataType) -> None:
        readers = [
            (reader, index)
            for reader, index in tensor.uses
            if not any(tensor.is_converted for tensor in reader.outputs)
        ]
        before = tensor.dtype
        vars(tensor)["declared"] = tensor.type.with_dtype(numpy_type(dtype))
        self.types.forget([tensor])
        if readers:
            converted = self.add_cast(tensor, before).outputs[0]
            vars(converted)["is_converted"] = True
            for reader, index in readers:
                reader.set_input(index, converted)

    def _convert_output(self, tensor: ITensor, dtype: DataType) -> None:
        producer = tensor.producer
        assert producer is not None
        if not tensor.is_converted:
            inner = producer.part_with_output(tensor.position)
            producer = self.add_cast(inner, dtype)
            producer.take_output(tensor)
        assert isinstance(producer, ICastLayer)
        producer.to_type = dtype

    # ------------------------------------------------------------------ reports to the builder

    @property
    def none_on_error(self) -> bool:
        """Whether ``add_`` methods log why a layer cannot be made and return None, as the builder decides."""
        return self.builder is not None and self.builder.none_on_error

    def report(self, finding: Finding) -> None:
        """Log why a layer cannot be made."""
        self.builder.report(finding)

    def warn_once(self, topic: str, what: str) -> None:
        """Log a harmless difference, once per topic, if a builder made the network."""
        if self.builder is not None and topic not in self._warned:
            self._warned.add(topic)
            self.builder.warn(what)

    # ------------------------------------------------------------------ the whole

    def shape_tensors(self, counts: Callable[[ITensor], bool] = lambda tensor: True) -> frozenset[ITensor]:
        """The tensors on whose values the shape of some tensor depends, through tensors that count alone."""
        deciding = (
            tensor
            for layer in self.layers
            for position, tensor in enumerate(layer.inputs)
            if tensor is not None and position in layer.SHAPE_INPUTS
        )
        return sources_of_values(deciding, counts)

    def __repr__(self) -> str:
        """A line; the listing of the layers is ``str(network)``."""
        return f"<INetworkDefinition {summary(self)}>"

    def __str__(self) -> str:
        """A listing: a line for each layer, indented by loops and branches."""
        return listing(self)

    def _repr_html_(self) -> str:
        """The listing for notebooks, in which loops and conditionals fold."""
        return listing_html(self)

    def __copy__(self) -> INetworkDefinition:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> INetworkDefinition:
        return self.copy()

    def copy(
        self, *, shares_weights: bool = False, sharing: Collection[ILayer] = (), types: TypeTable | None = None
    ) -> INetworkDefinition:
        """Return a network with copies of all layers, their wiring and their arrays.

        Args:
            shares_weights: whether the layers of both share their arrays, which must not be written to then.
            sharing: the layers that share weights, if not all.
            types: types of the tensors for certain inputs, which those of the copy have; None for the declared ones.
        """
        network = INetworkDefinition(self.builder, self.flags)
        network.name = self.name
        vars(network)["source_location"] = self.source_location
        copies = _Copies(network, self.layers if shares_weights else sharing)
        network.loops.extend(copies.of_group(loop) for loop in self.loops)
        network.conditionals.extend(copies.of_group(conditional) for conditional in self.conditionals)
        network.inputs.extend(copies.of_tensor(tensor, None) for tensor in self.inputs)
        network.layers.extend(copies.of_layer(layer) for layer in self.layers)
        for layer, copied in zip(self.layers, network.layers, strict=True):
            copied.wire(copies.tensors[tensor] if tensor is not None else None for tensor in layer.inputs)
        network.outputs.extend(copies.tensors[tensor] for tensor in self.outputs)
        for original, copied in zip(self.inputs, network.inputs, strict=True):
            vars(copied)["declared"] = original.declared if types is None else types[original]
        vars(network)["marks"] = self.marks.copied(copies.tensors, network.layers)
        network.types.learn(types or self.types, copies.tensors.items(), with_values=shares_weights)
        return network


def sources_of_values(
    tensors: Iterable[ITensor], counts: Callable[[ITensor], bool] = lambda tensor: True
) -> frozenset[ITensor]:
    """Some tensors, and those on whose values theirs depend, through tensors that count alone."""
    values: dict[ITensor, None] = {}
    stack = [*tensors]
    while stack:
        tensor = stack.pop()
        if tensor not in values:
            values[tensor] = None
            producer = tensor.producer
            if producer is not None and not isinstance(producer, IShapeLayer):
                stack += [tensor for tensor in producer.type_inputs() if tensor is not None and counts(tensor)]
    return frozenset(values)


class _Copies:
    """The parts of a copied network, by their originals."""

    def __init__(self, network: INetworkDefinition, sharing: Collection[ILayer]) -> None:
        self.network = network
        self.sharing = frozenset(sharing)
        self.tensors: dict[ITensor, ITensor] = {}
        self.groups: dict[Any, Any] = {}

    def of_group(self, group: G) -> G:
        self.groups[group] = result = type(group)(self.network, group.name, group.source_location)
        return result

    def of_tensor(self, tensor: ITensor, producer: ILayer | None) -> ITensor:
        self.tensors[tensor] = result = object.__new__(ITensor)
        own = vars(result)
        own.update(vars(tensor))
        own["types"], own["producer"], own["uses"] = self.network.types, producer, {}
        own["dimension_names"] = dict(tensor.dimension_names)
        return result

    def of_layer(self, layer: ILayer) -> ILayer:
        result = object.__new__(type(layer))
        own = vars(result)
        own.update(vars(layer))
        own["types"] = self.network.types
        own["outputs"] = tuple(self.of_tensor(tensor, result) for tensor in layer.outputs)
        own.update(layer.unshared())
        if layer not in self.sharing:
            own.update(layer.unshared_arrays())
        for name in ("loop", "conditional"):
            if name in own:
                own[name] = self.groups[own[name]]
                own[name].layers.append(result)
        return result


def _at(items: Sequence[Any], index: int) -> Any:
    return items[index] if 0 <= index < len(items) else None
