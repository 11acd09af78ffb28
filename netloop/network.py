"""A network: its inputs, outputs and layers. The methods that add layers are beside the layers, in ``layers/``,
and those that mark something in ``marks``.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

from netloop.checked_attributes import Settings
from netloop.diagnostics import Finding, NetworkError, reason
from netloop.enums import DataType, NetworkDefinitionCreationFlag
from netloop.graph.call_site import call_site
from netloop.graph.infer import TypeTable
from netloop.graph.layer import ILayer, check_instance, check_member
from netloop.graph.layer_compat import PLAIN
from netloop.graph.tensor import ITensor, declared_type
from netloop.layers.affine import AffineMethods
from netloop.layers.assertion import AssertionMethods
from netloop.layers.attention import AttentionMethods
from netloop.layers.bits import BitMethods
from netloop.layers.collective import CollectiveMethods
from netloop.layers.conditional import IIfConditional
from netloop.layers.convolution import ConvolutionMethods
from netloop.layers.detection import DetectionMethods
from netloop.layers.experts import ExpertMethods
from netloop.layers.fourier import FourierMethods
from netloop.layers.gather import IndexMethods
from netloop.layers.grid_sample import GridSampleMethods
from netloop.layers.loop import ILoop
from netloop.layers.matrix import ProductMethods
from netloop.layers.normalization import NormalizationMethods
from netloop.layers.padding import PaddingMethods
from netloop.layers.plugin import PluginMethods
from netloop.layers.pointwise import ICastLayer, PointwiseMethods
from netloop.layers.pooling import PoolingMethods
from netloop.layers.quantize import QuantizationMethods
from netloop.layers.rearrange import RearrangingMethods
from netloop.layers.reduce import ReductionMethods
from netloop.layers.resample import ResizingMethods
from netloop.layers.sequence import SequenceMethods
from netloop.layers.slice import SliceMethods
from netloop.layers.sources import IShapeLayer, SourceMethods
from netloop.marking import MarkMethods, Marks
from netloop.types import numpy_type


class INetworkDefinition(
    SourceMethods,
    PointwiseMethods,
    ProductMethods,
    ReductionMethods,
    IndexMethods,
    RearrangingMethods,
    SliceMethods,
    ConvolutionMethods,
    PoolingMethods,
    AffineMethods,
    PaddingMethods,
    BitMethods,
    ResizingMethods,
    GridSampleMethods,
    NormalizationMethods,
    AttentionMethods,
    ExpertMethods,
    QuantizationMethods,
    DetectionMethods,
    FourierMethods,
    CollectiveMethods,
    AssertionMethods,
    PluginMethods,
    SequenceMethods,
    MarkMethods,
    Settings,
):
    """A network, built layer by layer. ``network[i]`` is layer number ``i``.

    The ``add_`` methods raise TypeError for an argument of the wrong Python type. Whether types and shapes fit is
    told by :func:`netloop.check`, by :func:`netloop.compile`, and by reading ``shape`` or ``dtype`` of a tensor: until
    then ``set_input`` may mend it. Where ``Builder.none_on_error`` is set, they log what is wrong, and give None.

    Attributes:
        name: its name.
        builder: the builder that made it.
        flags: the creation flags, a bit each.
        layers: its layers, in the order in which they were added.
        inputs, outputs: its inputs and outputs, in the order in which they were added and marked.
        loops, conditionals: those that were added.
        types: the types of its tensors.
        marks: what is marked in it beside its outputs.
    """

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

    def __init__(self, builder: Any = None, flags: int = 0) -> None:
        own = vars(self)
        own["builder"], own["flags"] = builder, operator.index(flags)
        own["types"], own["marks"] = TypeTable(), Marks()
        own.update((name, []) for name in ("layers", "inputs", "outputs", "loops", "conditionals"))
        self.types.owner = self
        self._advised: set[str] = set()

    # ------------------------------------------------------------------ inputs, outputs, layers

    def add_input(self, name: str, dtype: DataType, shape: Sequence[int]) -> ITensor:
        """An input of the network; -1 in the shape stands for a length that each run tells.

        Raises:
            NetworkError: an input of this name is there already.
        """
        return self._add_input(name, dtype, shape)

    def add_sequence_input(self, name: str, dtype: DataType, shape: Sequence[int] | None = None) -> ITensor:
        """An input that is a sequence of tensors: each call gives a list of arrays; netloop's own.

        Args:
            name: the name.
            dtype: the element type of all tensors.
            shape: the shape of each tensor, -1 for a length that varies; None where even the number of axes does.

        Raises:
            NetworkError: an input of this name is there already.
        """
        return self._add_input(name, dtype, shape, sequence=True)

    def add_optional_input(
        self, name: str, dtype: DataType, shape: Sequence[int] | None = None, sequence: bool = False
    ) -> ITensor:
        """An input that may be absent: a call may give None for it; netloop's own.

        Args:
            name: the name.
            dtype: the element type.
            shape: the shape of the tensor, or of each tensor of a sequence; only for a sequence it may be None.
            sequence: whether it is a sequence of tensors.

        Raises:
            NetworkError: an input of this name is there already.
        """
        return self._add_input(name, dtype, shape, check_instance("sequence", sequence, bool), optional=True)

    def _add_input(
        self, name: str, dtype: DataType, shape: Sequence[int] | None, sequence: bool = False, optional: bool = False
    ) -> ITensor:
        check_instance("name", name, str)
        check_member("dtype", dtype, DataType)
        if any(each.name == name for each in self.inputs):
            what = f"an input {name!r} is there already"
            raise NetworkError(Finding("NL104", what, str(call_site()), reason("NL104"), at=self))
        declared = declared_type(dtype, shape, sequence, optional)
        tensor = ITensor("", self.types, None, len(self.inputs), declared)
        tensor.name = name
        self.inputs.append(tensor)
        return tensor

    def mark_output(self, tensor: ITensor) -> None:
        """Make a tensor an output of the network, of the type that its ``dtype`` was set to."""
        super().mark_output(tensor)
        if tensor.asked_dtype is not None:
            self.convert(tensor, tensor.asked_dtype)

    def remove_tensor(self, tensor: ITensor) -> None:
        """Take away an input that no layer reads; any other tensor stays."""
        if tensor in self.inputs and not tensor.uses and not tensor.is_network_output:
            self.inputs.remove(tensor)
            self.marks.debug.pop(tensor, None)
            for position, each in enumerate(self.inputs):
                vars(each)["position"] = position

    @property
    def num_layers(self) -> int:
        """The number of layers, the boundary layers of loops and conditionals counted."""
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
        """False: every axis is in the shape."""
        return False

    def get_layer(self, index: int) -> ILayer | None:
        """Layer number ``index``; None if there is none."""
        return _at(self.layers, index)

    def get_input(self, index: int) -> ITensor | None:
        """Input number ``index``; None if there is none."""
        return _at(self.inputs, index)

    def get_output(self, index: int) -> ITensor | None:
        """Output number ``index``; None if there is none."""
        return _at(self.outputs, index)

    def get_flag(self, flag: NetworkDefinitionCreationFlag) -> bool:
        """Whether a creation flag was set."""
        return bool(self.flags >> int(flag) & 1)

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, index: int) -> ILayer:
        return self.layers[index]

    def __iter__(self) -> Iterator[ILayer]:
        return iter(self.layers)

    def __enter__(self) -> INetworkDefinition:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    # ------------------------------------------------------------------ loops and conditionals

    def add_loop(self) -> ILoop:
        """A loop; its own methods give it limits, iterators, recurrences and outputs."""
        loop = ILoop(self, f"(Unnamed Loop* {len(self.loops)})")
        self.loops.append(loop)
        return loop

    def add_if_conditional(self) -> IIfConditional:
        """A conditional; its own methods give it a condition, inputs and outputs."""
        conditional = IIfConditional(self, f"(Unnamed IfConditional* {len(self.conditionals)})")
        self.conditionals.append(conditional)
        return conditional

    # ------------------------------------------------------------------ types that TensorRT 10 let scripts set

    def convert(self, tensor: ITensor, dtype: DataType) -> None:
        """Take an input, or give an output, in another element type than the layers compute with."""
        is_seen = tensor.is_network_input or tensor.is_network_output
        vars(tensor)["asked_dtype"] = None if is_seen else dtype
        if not tensor.type.is_tensor:
            raise AttributeError(f"{tensor.name!r} is {tensor.type}, the element type of which cannot be set")
        if tensor.dtype is dtype:
            return
        if not is_seen:
            what = f"{tensor.name!r} stays {tensor.dtype.name} until it is marked as an output"
            self.advise(f"dtype of {tensor.name}", what)
        elif not {tensor.dtype, dtype} <= PLAIN:
            what = f"{tensor.name!r} stays {tensor.dtype.name}: between it and {dtype.name} there is a scale"
            self.advise(f"dtype of {tensor.name}", f"{what}, which add_quantize or add_dequantize takes")
        elif tensor.is_network_input:
            self._convert_input(tensor, dtype)
        else:
            self._convert_output(tensor, dtype)

    def _convert_input(self, tensor: ITensor, dtype: DataType) -> None:
        readers = [
            (reader, index) for reader, index in tensor.uses if not any(each.is_converted for each in reader.outputs)
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

    # ------------------------------------------------------------------ what the builder is told

    @property
    def none_on_error(self) -> bool:
        """Whether its builder wants ``add_`` methods to log why a layer cannot be made, and to give None."""
        return self.builder is not None and self.builder.none_on_error

    def report(self, finding: Finding) -> None:
        """Log why a layer cannot be made."""
        self.builder.report(finding)

    def advise(self, topic: str, what: str) -> None:
        """Log something that does no harm, once for each topic, if a builder made the network."""
        if self.builder is not None and topic not in self._advised:
            self._advised.add(topic)
            self.builder.advise(what)

    # ------------------------------------------------------------------ the whole

    def shape_tensors(self) -> frozenset[ITensor]:
        """The tensors on whose values the shape of some tensor depends."""
        found: dict[ITensor, None] = {}
        stack = [
            tensor
            for layer in self.layers
            for position, tensor in enumerate(layer.inputs)
            if tensor is not None and position in layer.SHAPE_INPUTS
        ]
        while stack:
            tensor = stack.pop()
            if tensor not in found:
                found[tensor] = None
                producer = tensor.producer
                if producer is not None and not isinstance(producer, IShapeLayer):
                    stack.extend(filter(None, producer.type_inputs()))
        return frozenset(found)

    def __copy__(self) -> INetworkDefinition:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> INetworkDefinition:
        return self.copy()

    def copy(self, *, shares_weights: bool = False) -> INetworkDefinition:
        """A network of its own with equal layers, wired alike, and with arrays of its own.

        Args:
            shares_weights: whether layers have the same arrays in both, to which nobody may write then.
        """
        twin = INetworkDefinition(self.builder, self.flags)
        twin.name = self.name
        twins = _Twins(twin, shares_weights)
        twin.loops.extend(twins.of_loop(each) for each in self.loops)
        twin.conditionals.extend(twins.of_conditional(each) for each in self.conditionals)
        twin.inputs.extend(twins.of_tensor(each, None) for each in self.inputs)
        twin.layers.extend(twins.of_layer(each) for each in self.layers)
        for layer, made in zip(self.layers, twin.layers, strict=True):
            made.wire(twins.tensors[each] if each is not None else None for each in layer.inputs)
        twin.outputs.extend(twins.tensors[each] for each in self.outputs)
        vars(twin)["marks"] = self.marks.copied(twins.tensors, twin.layers)
        return twin


class _Twins:
    """The copies of the parts of a network, by their originals."""

    def __init__(self, network: INetworkDefinition, shares_weights: bool) -> None:
        self.network = network
        self.shares_weights = shares_weights
        self.tensors: dict[ITensor, ITensor] = {}
        self.groups: dict[Any, Any] = {}

    def of_loop(self, loop: ILoop) -> ILoop:
        self.groups[loop] = twin = ILoop(self.network, loop.name, loop.source_location)
        return twin

    def of_conditional(self, conditional: IIfConditional) -> IIfConditional:
        self.groups[conditional] = twin = IIfConditional(self.network, conditional.name, conditional.source_location)
        return twin

    def of_tensor(self, tensor: ITensor, producer: ILayer | None) -> ITensor:
        self.tensors[tensor] = twin = object.__new__(ITensor)
        own = vars(twin)
        own.update(vars(tensor))
        own["types"], own["producer"], own["uses"] = self.network.types, producer, {}
        own["dimension_names"] = dict(tensor.dimension_names)
        return twin

    def of_layer(self, layer: ILayer) -> ILayer:
        twin = object.__new__(type(layer))
        own = vars(twin)
        own.update(vars(layer))
        own["types"] = self.network.types
        own["outputs"] = tuple(self.of_tensor(each, twin) for each in layer.outputs)
        own.update(layer.unshared())
        if not self.shares_weights:
            own.update(layer.unshared_arrays())
        for name in ("loop", "conditional"):
            if name in own:
                own[name] = self.groups[own[name]]
                own[name].layers.append(twin)
        return twin


def _at(items: Sequence[Any], index: int) -> Any:
    return items[index] if 0 <= index < len(items) else None
