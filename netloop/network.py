"""A network: its inputs and outputs, its layers, and the methods that add them."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from netloop.diagnostics import Finding, NetworkError
from netloop.dims import Dims, weights_array
from netloop.enums import (
    ActivationType,
    CumulativeOperation,
    DataType,
    ElementWiseOperation,
    FillOperation,
    GatherMode,
    MatrixOperation,
    NetworkDefinitionCreationFlag,
    ReduceOperation,
    ScatterMode,
    TopKOperation,
    UnaryOperation,
)
from netloop.graph.infer import TypeTable
from netloop.graph.layer import ILayer, check_instance, check_member, check_tensor
from netloop.graph.place import call_site
from netloop.graph.tensor import ITensor
from netloop.layers.assertion import IAssertionLayer
from netloop.layers.conditional import IIfConditional
from netloop.layers.gather import IGatherLayer, IOneHotLayer, IScatterLayer
from netloop.layers.loop import ILoop
from netloop.layers.matrix import IEinsumLayer, IMatrixMultiplyLayer
from netloop.layers.pointwise import (
    IActivationLayer,
    ICastLayer,
    IElementWiseLayer,
    IIdentityLayer,
    ISelectLayer,
    IUnaryLayer,
)
from netloop.layers.rearrange import IConcatenationLayer, IShuffleLayer, ISqueezeLayer, IUnsqueezeLayer
from netloop.layers.reduce import ICumulativeLayer, IReduceLayer, ISoftMaxLayer, ITopKLayer
from netloop.layers.slice import ISliceLayer
from netloop.layers.sources import IConstantLayer, IFillLayer, IShapeLayer
from netloop.types import TensorType, numpy_type

if TYPE_CHECKING:
    from netloop.dims import Weights
    from netloop.types import Array

L = TypeVar("L", bound=ILayer)


class INetworkDefinition:
    """A network, built layer by layer. ``network[i]`` is layer number ``i``.

    The ``add_`` methods raise TypeError for an argument of the wrong Python type. Whether types and shapes fit is
    told by :func:`netloop.check`, by :func:`netloop.compile`, and by reading ``shape`` or ``dtype`` of a tensor: until
    then ``set_input`` may mend it.

    Attributes:
        name: its name.
        builder: the builder that made it.
        flags: the creation flags, a bit each.
        layers: its layers, in the order in which they were added.
        inputs, outputs: its inputs and outputs, in the order in which they were added and marked.
        loops, conditionals: those that were added.
        types: the types of its tensors.
    """

    def __init__(self, builder: Any = None, flags: int = 0) -> None:
        self.name = "Unnamed Network 0"
        self.builder = builder
        self.flags = operator.index(flags)
        self.error_recorder: Any = None
        self.layers: list[ILayer] = []
        self.inputs: list[ITensor] = []
        self.outputs: list[ITensor] = []
        self.loops: list[ILoop] = []
        self.conditionals: list[IIfConditional] = []
        self.types = TypeTable()
        self.types.shape_tensors = self.shape_tensors

    # ------------------------------------------------------------------ inputs, outputs, layers

    def add_input(self, name: str, dtype: DataType, shape: Sequence[int]) -> ITensor:
        """An input of the network; -1 in the shape stands for a length that each run tells.

        Raises:
            NetworkError: an input of this name is there already.
        """
        check_instance("name", name, str)
        check_member("dtype", dtype, DataType)
        if any(each.name == name for each in self.inputs):
            why = "the inputs and outputs of a network are told apart by name"
            raise NetworkError(Finding("NL104", f"an input {name!r} is there already", str(call_site()), why, at=self))
        declared = TensorType(numpy_type(dtype), tuple(Dims(shape)))
        tensor = ITensor(name, self.types, None, len(self.inputs), declared)
        self.inputs.append(tensor)
        return tensor

    def mark_output(self, tensor: ITensor) -> None:
        """Make a tensor an output of the network."""
        check_tensor(tensor, "tensor")
        if tensor.types is not self.types:
            what = f"tensor {tensor.name!r} is of another network"
            why = "a network gives out its own tensors"
            raise NetworkError(Finding("NL103", what, str(call_site()), why, at=tensor))
        if not tensor.is_network_output:
            tensor.is_network_output = True
            self.outputs.append(tensor)

    def unmark_output(self, tensor: ITensor) -> None:
        """Make a tensor no output any more."""
        if check_tensor(tensor, "tensor").is_network_output:
            tensor.is_network_output = False
            self.outputs.remove(tensor)

    def remove_tensor(self, tensor: ITensor) -> None:
        """Take away an input that no layer reads; any other tensor stays."""
        if tensor in self.inputs and not tensor.uses and not tensor.is_network_output:
            self.inputs.remove(tensor)
            for position, each in enumerate(self.inputs):
                each.position = position

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
        loop = ILoop(self._add, f"(Unnamed Loop* {len(self.loops)})")
        self.loops.append(loop)
        return loop

    def add_if_conditional(self) -> IIfConditional:
        """A conditional; its own methods give it a condition, inputs and outputs."""
        conditional = IIfConditional(self._add, f"(Unnamed IfConditional* {len(self.conditionals)})")
        self.conditionals.append(conditional)
        return conditional

    # ------------------------------------------------------------------ layers without inputs

    def add_constant(self, shape: Sequence[int], weights: Array | Weights) -> IConstantLayer:
        """The numbers ``weights`` in the shape ``shape``."""
        return self._add(IConstantLayer(shape=Dims(shape), weights=weights_array(weights)), [])

    def add_fill(self, shape: Sequence[int], op: FillOperation, output_type: DataType = DataType.FLOAT) -> IFillLayer:
        """A tensor of evenly spaced or random numbers."""
        return self._add(IFillLayer(shape=Dims(shape), operation=op, to_type=output_type), [])

    # ------------------------------------------------------------------ element by element

    def add_activation(self, input: ITensor, type: ActivationType) -> IActivationLayer:
        """An activation function of every element."""
        return self._add(IActivationLayer(type=type), [check_tensor(input, "input")])

    def add_unary(self, input: ITensor, op: UnaryOperation) -> IUnaryLayer:
        """A function of every element."""
        return self._add(IUnaryLayer(op=op), [check_tensor(input, "input")])

    def add_elementwise(self, input1: ITensor, input2: ITensor, op: ElementWiseOperation) -> IElementWiseLayer:
        """Two tensors combined element by element."""
        tensors = [check_tensor(input1, "input1"), check_tensor(input2, "input2")]
        return self._add(IElementWiseLayer(op=op), tensors)

    def add_select(self, condition: ITensor, then_input: ITensor, else_input: ITensor) -> ISelectLayer:
        """Elements of ``then_input`` where the condition is true, of ``else_input`` elsewhere."""
        tensors = [
            check_tensor(condition, "condition"),
            check_tensor(then_input, "then_input"),
            check_tensor(else_input, "else_input"),
        ]
        return self._add(ISelectLayer(), tensors)

    def add_cast(self, input: ITensor, to_type: DataType) -> ICastLayer:
        """Every element converted to another type."""
        return self._add(ICastLayer(to_type=to_type), [check_tensor(input, "input")])

    def add_identity(self, input: ITensor) -> IIdentityLayer:
        """The input itself."""
        return self._add(IIdentityLayer(), [check_tensor(input, "input")])

    # ------------------------------------------------------------------ products

    def add_matrix_multiply(
        self, input0: ITensor, op0: MatrixOperation, input1: ITensor, op1: MatrixOperation
    ) -> IMatrixMultiplyLayer:
        """The product of two matrices, of batches of them, or of a matrix and a vector."""
        tensors = [check_tensor(input0, "input0"), check_tensor(input1, "input1")]
        return self._add(IMatrixMultiplyLayer(op0=op0, op1=op1), tensors)

    def add_einsum(self, inputs: Sequence[ITensor], equation: str) -> IEinsumLayer:
        """A sum of products over the axes that an equation names."""
        return self._add(IEinsumLayer(equation=equation), _tensors(inputs))

    # ------------------------------------------------------------------ along axes

    def add_softmax(self, input: ITensor) -> ISoftMaxLayer:
        """Softmax along one axis, the third from the end until ``axes`` is set."""
        return self._add(ISoftMaxLayer(axes=1 << _third_from_end(input)), [check_tensor(input, "input")])

    def add_reduce(self, input: ITensor, op: ReduceOperation, axes: int, keep_dims: bool) -> IReduceLayer:
        """A sum, product, maximum, minimum or mean over the axes of a bitmask."""
        return self._add(IReduceLayer(op=op, axes=axes, keep_dims=keep_dims), [check_tensor(input, "input")])

    def add_topk(
        self, input: ITensor, op: TopKOperation, k: int, axes: int, indices_type: DataType = DataType.INT32
    ) -> ITopKLayer:
        """The ``k`` largest or smallest elements along an axis, and their indices."""
        made = ITopKLayer(op=op, k=k, axes=axes, indices_type=indices_type)
        return self._add(made, [check_tensor(input, "input")])

    def add_cumulative(
        self, input: ITensor, axis: ITensor, op: CumulativeOperation, exclusive: bool, reverse: bool
    ) -> ICumulativeLayer:
        """Running sums along an axis."""
        tensors = [check_tensor(input, "input"), check_tensor(axis, "axis")]
        return self._add(ICumulativeLayer(op=op, exclusive=exclusive, reverse=reverse), tensors)

    # ------------------------------------------------------------------ by index

    def add_gather(self, input: ITensor, indices: ITensor, axis: int) -> IGatherLayer:
        """The slices of ``input`` along ``axis`` that ``indices`` name."""
        tensors = [check_tensor(input, "input"), check_tensor(indices, "indices")]
        return self._add(IGatherLayer(axis=axis), tensors)

    def add_gather_v2(self, input: ITensor, indices: ITensor, mode: GatherMode) -> IGatherLayer:
        """The parts of ``input`` that ``indices`` name, as ``mode`` reads them."""
        tensors = [check_tensor(input, "input"), check_tensor(indices, "indices")]
        return self._add(IGatherLayer(mode=mode), tensors)

    def add_scatter(self, data: ITensor, indices: ITensor, updates: ITensor, mode: ScatterMode) -> IScatterLayer:
        """``data`` with ``updates`` written where ``indices`` say."""
        tensors = [check_tensor(data, "data"), check_tensor(indices, "indices"), check_tensor(updates, "updates")]
        return self._add(IScatterLayer(mode=mode), tensors)

    def add_one_hot(self, indices: ITensor, values: ITensor, depth: ITensor, axis: int) -> IOneHotLayer:
        """Along a new axis of length ``depth``, ``values[1]`` where the index is, ``values[0]`` elsewhere."""
        tensors = [check_tensor(indices, "indices"), check_tensor(values, "values"), check_tensor(depth, "depth")]
        return self._add(IOneHotLayer(axis=axis), tensors)

    # ------------------------------------------------------------------ shapes

    def add_shape(self, input: ITensor) -> IShapeLayer:
        """The shape of a tensor, as int64."""
        return self._add(IShapeLayer(), [check_tensor(input, "input")])

    def add_shuffle(self, input: ITensor) -> IShuffleLayer:
        """Transpose, reshape, transpose."""
        return self._add(IShuffleLayer(), [check_tensor(input, "input")])

    def add_slice(
        self, input: ITensor, start: Sequence[int], shape: Sequence[int], stride: Sequence[int]
    ) -> ISliceLayer:
        """A strided box of ``input``; ``shape`` is the shape of the output."""
        made = ISliceLayer(start=Dims(start), shape=Dims(shape), stride=Dims(stride))
        return self._add(made, [check_tensor(input, "input")])

    def add_concatenation(self, inputs: Sequence[ITensor]) -> IConcatenationLayer:
        """Tensors joined along one axis, the third from the end until ``axis`` is set."""
        tensors = _tensors(inputs)
        axis = _third_from_end(tensors[0]) if tensors else 0
        return self._add(IConcatenationLayer(axis=axis), tensors)

    def add_squeeze(self, input: ITensor, axes: ITensor | None = None) -> ISqueezeLayer:
        """Axes of length 1 dropped: those in ``axes``, or all."""
        tensors = [check_tensor(input, "input")] + ([] if axes is None else [check_tensor(axes, "axes")])
        return self._add(ISqueezeLayer(), tensors)

    def add_unsqueeze(self, input: ITensor, axes: ITensor) -> IUnsqueezeLayer:
        """Axes of length 1 added at the positions ``axes`` of the output."""
        return self._add(IUnsqueezeLayer(), [check_tensor(input, "input"), check_tensor(axes, "axes")])

    # ------------------------------------------------------------------ assertion

    def add_assertion(self, condition: ITensor, message: str) -> IAssertionLayer:
        """End the run with ``message`` if an element of ``condition`` is false."""
        return self._add(IAssertionLayer(message=message), [check_tensor(condition, "condition")])

    # ------------------------------------------------------------------ the whole

    def _add(self, layer: L, inputs: Sequence[ITensor | None]) -> L:
        layer.attach(self.types, len(self.layers), inputs)
        self.layers.append(layer)
        return layer

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

    def copy(self) -> INetworkDefinition:
        """A network of its own with equal layers, wired alike; the arrays of constants are shared."""
        twin = INetworkDefinition(self.builder, self.flags)
        twin.name = self.name
        tensors: dict[ITensor, ITensor] = {}
        for tensor in self.inputs:
            tensors[tensor] = _copy_tensor(tensor, twin.types, None)
        twins: dict[int, Any] = {}
        for kind, many in ((ILoop, self.loops), (IIfConditional, self.conditionals)):
            for each in many:
                twins[id(each)] = made = kind(twin._add, each.name)
                made.place = each.place
        twin.loops = [twins[id(each)] for each in self.loops]
        twin.conditionals = [twins[id(each)] for each in self.conditionals]
        for layer in self.layers:
            twin.layers.append(made := _copy_layer(layer, twin.types, twins))
            tensors.update(zip(layer.outputs, made.outputs, strict=True))
        for layer, made in zip(self.layers, twin.layers, strict=True):
            vars(made)["inputs"] = [None if each is None else tensors[each] for each in layer.inputs]
            for position, tensor in enumerate(made.inputs):
                if tensor is not None:
                    tensor.uses[made, position] = None
        twin.inputs = [tensors[each] for each in self.inputs]
        twin.outputs = [tensors[each] for each in self.outputs]
        return twin


def _copy_tensor(tensor: ITensor, types: TypeTable, producer: ILayer | None) -> ITensor:
    twin = ITensor.__new__(ITensor)
    vars(twin).update(vars(tensor))
    twin.types, twin.producer, twin.uses = types, producer, {}
    twin.dimension_names = dict(tensor.dimension_names)
    return twin


def _copy_layer(layer: ILayer, types: TypeTable, twins: dict[int, Any]) -> ILayer:
    twin = object.__new__(type(layer))
    own = vars(twin)
    own.update(vars(layer))
    own["types"] = types
    own["outputs"] = tuple(_copy_tensor(each, types, twin) for each in layer.outputs)
    for name in ("loop", "conditional"):
        if name in own:
            own[name] = twins[id(own[name])]
            own[name].layers.append(twin)
    return twin


def _at(items: Sequence[Any], index: int) -> Any:
    return items[index] if 0 <= index < len(items) else None


def _tensors(inputs: Iterable[ITensor]) -> list[ITensor]:
    return [check_tensor(each, f"inputs[{position}]") for position, each in enumerate(inputs)]


def _third_from_end(tensor: ITensor) -> int:
    """The axis that TensorRT takes where none is given."""
    found = check_tensor(tensor, "input").types.of(tensor)
    return max(0, found.rank - 3) if isinstance(found, TensorType) else 0
