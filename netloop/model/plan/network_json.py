"""The conversion of networks to JSON and back.

::

    {"name": "...", "flags": 0,
     "files": ["model.py"],
     "arrays": [{"dtype": "FLOAT", "shape": [2, 3]}],
     "inputs": [{"name": "x", "dtype": "FLOAT", "shape": [-1, 3]}],
     "loops": [{"name": "...", "place": [0, 41]}],
     "conditionals": [],
     "layers": [{"kind": "IIteratorLayer", "name": "...", "place": [0, 42],
                 "attributes": {"loop": 0, "axis": 0, "reverse": false},
                 "inputs": [[-1, 0]], "outputs": [{"name": "..."}]}],
     "outputs": [[7, 0]]}

A tensor is ``[layer, output]``, or ``[-1, input]`` for an input of the network; a layer may read tensors of later ones,
and ``null`` is a missing input. A place is ``[file, line]``. Attributes refer to loops, conditionals and arrays by
number, and to members of enumerations by name. Numbers that are not finite are the strings nan, inf and -inf. Other
properties of a tensor or layer are present only if they differ from the default: ``metadata``, ``num_ranks``,
``location``, ``allowed_formats``, ``broadcast_across_batch``, ``dimension_names``; ``is_inner`` for a tensor whose
``dtype`` was set, and ``is_converted`` for the output of the cast that follows it. An input that is a ``sequence`` has
that as true, and the shape of each tensor, or null; one that is ``optional`` has that as true. An array that is
``absent`` has no file.
``marks``, if present, has the marks: ``debug`` and ``shapes`` are tensors, ``unfused`` is true, ``names`` are pairs of
a layer's number and the name of its weights, ``refittable`` are such names. ``build``, if present, is the record of an
engine's build, in a form that only its writer defines.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from netloop.model.graph import ILayer, ITensor
from netloop.model.graph.tensor import ALL_FORMATS
from netloop.model.layers.conditional import IIfConditional, IIfConditionalBoundaryLayer
from netloop.model.layers.loop import ILoop, ILoopBoundaryLayer
from netloop.model.layers.pointwise import ICastLayer
from netloop.model.layers.sources import IConstantLayer
from netloop.model.marking import Marks
from netloop.model.network import INetworkDefinition
from netloop.model.plan import npy_arrays
from netloop.model.plan.json_reader import JsonValue
from netloop.model.plan.layer_kinds import Codec, PlanKind, codec_of, kind_of, kinds
from netloop.values.diagnostics import Finding, NetworkError, SourceLocation, quoted
from netloop.values.dims import Dims, DimsLike
from netloop.values.enums import DataType, TensorLocation
from netloop.values.map_types import MapType, map_type
from netloop.values.types import Array, OptionalType, SequenceType, TensorType, data_type, numpy_type, type_in_form

Fields = dict[str, JsonValue]
G = TypeVar("G", ILoop, IIfConditional)

NETWORK_INPUT = -1

# fmt: off
LAYER_EXTRAS: dict[str, tuple[Codec, Any]] = {
    "metadata":               (codec_of(str),            ""),
    "num_ranks":              (codec_of(int),            1),
}
TENSOR_EXTRAS: dict[str, tuple[Codec, Any]] = {
    "location":               (codec_of(TensorLocation), TensorLocation.DEVICE),
    "allowed_formats":        (codec_of(int),            ALL_FORMATS),
    "broadcast_across_batch": (codec_of(bool),           False),
}
OUTPUT_EXTRAS: dict[str, tuple[Codec, Any]] = {
    "is_inner":               (codec_of(bool),           False),
    "is_converted":           (codec_of(bool),           False),
}
# fmt: on
"""The optional properties of layers, of tensors, and of outputs of layers, each with its codec and default."""

NAMES = "dimension_names"
SEQUENCE, OPTIONAL, KEY = "sequence", "optional", "key"
BUILD = "build"
MARKS = "marks"
ABSENT = "absent"
LAYER_FIELDS = ("kind", "name", "place", "attributes", "inputs", "outputs")
FIELDS = ("name", "flags", "files", "arrays", "inputs", "loops", "conditionals", "layers", "outputs")


# ---------------------------------------------------------------------------- writing


class NetworkWriter:
    """Writes a network as a document; the weights of the constants ``without`` are left out.

    Attributes:
        arrays: the arrays that the document refers to by number, each with its element type, without duplicates.
        absent: the numbers of arrays that are left out.
    """

    def __init__(self, network: INetworkDefinition, without: Sequence[IConstantLayer] = ()) -> None:
        self.arrays: list[tuple[DataType, Array]] = [
            (data_type(constant.weights.dtype), constant.weights) for constant in without
        ]
        self.absent = range(len(without))
        self._network = network
        self._numbers: dict[Any, int] = {}
        self._seen = {id(constant.weights): number for number, constant in enumerate(without)}
        self._equal: dict[Any, int] = {}
        self._files: dict[str, int] = {}
        for group in (network.loops, network.conditionals):
            self._numbers.update((conditional, number) for number, conditional in enumerate(group))
        self._tensors = {tensor: [NETWORK_INPUT, number] for number, tensor in enumerate(network.inputs)}
        for number, layer in enumerate(network.layers):
            self._tensors.update((tensor, [number, tensor.position]) for tensor in layer.outputs)

    def document(self) -> dict[str, Any]:
        """Return the document.

        Raises:
            NetworkError: a document cannot hold something in the network.
        """
        network = self._network
        values: dict[str, Any] = dict.fromkeys(FIELDS)
        values["name"] = self._json(network, "name", codec_of(str))
        values["flags"] = self._json(network, "flags", codec_of(int))
        values["inputs"] = [self._input(tensor) for tensor in network.inputs]
        values["loops"] = [self._group(loop) for loop in network.loops]
        values["conditionals"] = [self._group(conditional) for conditional in network.conditionals]
        values["layers"] = [self._layer(layer) for layer in network.layers]
        values["outputs"] = [self._reference(tensor, network) for tensor in network.outputs]
        values["files"] = list(self._files)
        values["arrays"] = [self._array(number) for number in range(len(self.arrays))]
        marks = self._marks(network.marks)
        return {**values, MARKS: marks} if marks else values

    def _array(self, number: int) -> dict[str, Any]:
        dtype, array = self.arrays[number]
        result = {"dtype": dtype.name, "shape": list(array.shape)}
        return {**result, ABSENT: True} if number in self.absent else result

    def _marks(self, marks: Marks) -> dict[str, Any]:
        values: dict[str, Any] = {
            "debug": [self._reference(tensor, tensor) for tensor in marks.debug],
            "unfused": marks.unfused,
            "shapes": [self._reference(shape, shape) for shape in marks.shapes],
            "names": [[key.index, name] for key, name in marks.names.items()],
            "refittable": list(marks.refittable),
        }
        return {name: value for name, value in values.items() if value}

    @property
    def present(self) -> list[tuple[DataType, Array]]:
        """The arrays that have a file."""
        return self.arrays[len(self.absent) :]

    def number_of(self, part: Any) -> int:
        """The number of a loop or conditional."""
        return self._numbers[part]

    def number_of_array(self, array: Array) -> int:
        """The number of an array."""
        if id(array) not in self._seen:
            dtype = data_type(array.dtype)
            key = dtype, array.shape, hashlib.sha256(npy_arrays.elements(array, dtype)).digest()
            self._seen[id(array)] = number = self._equal.setdefault(key, len(self.arrays))
            if number == len(self.arrays):
                self.arrays.append((dtype, array))
        return self._seen[id(array)]

    def _layer(self, layer: ILayer) -> dict[str, Any]:
        if kinds().get(type(layer).__name__) is not type(layer):
            what = f"{layer.described} is of a kind that plans do not have"
            raise _unwritable(layer, what, "only netloop's own kinds of layers can be read")
        codecs = kind_of(type(layer)).codecs.items()
        return {
            "kind": type(layer).__name__,
            "name": self._json(layer, "name", codec_of(str)),
            "place": self._place(layer.source_location),
            "attributes": {name: self._json(layer, name, codec) for name, codec in codecs},
            "inputs": [None if tensor is None else self._reference(tensor, layer) for tensor in layer.inputs],
            "outputs": [self._tensor(tensor) for tensor in layer.outputs],
            **self._extras(layer, LAYER_EXTRAS),
        }

    def _input(self, tensor: ITensor) -> dict[str, Any]:
        declared = tensor.declared
        assert declared is not None, f"the input {quoted(tensor.name)} has no type"
        shape = self._written(tensor, "shape", codec_of(DimsLike | None), declared.held_shape)
        result = {**self._tensor(tensor), "dtype": data_type(declared.dtype).name, "shape": shape}
        if isinstance(declared, MapType):
            return {**result, KEY: data_type(declared.key).name}
        kinds = {SEQUENCE: isinstance(declared.present, SequenceType), OPTIONAL: isinstance(declared, OptionalType)}
        return {**result, **{name: True for name, holds in kinds.items() if holds}}

    def _tensor(self, tensor: ITensor) -> dict[str, Any]:
        result = {"name": tensor.name, **self._extras(tensor, {**TENSOR_EXTRAS, **OUTPUT_EXTRAS})}
        named = [
            [self._written(tensor, NAMES, codec_of(int), axis), self._written(tensor, NAMES, codec_of(str), name)]
            for axis, name in tensor.dimension_names.items()
        ]
        return {**result, NAMES: named} if named else result

    def _group(self, group: ILoop | IIfConditional) -> dict[str, Any]:
        return {"name": self._json(group, "name", codec_of(str)), "place": self._place(group.source_location)}

    def _extras(self, at: Any, extras: dict[str, tuple[Codec, Any]]) -> dict[str, Any]:
        return {
            name: self._json(at, name, codec) for name, (codec, usual) in extras.items() if getattr(at, name) != usual
        }

    def _place(self, place: SourceLocation | None) -> list[int | str]:
        assert place is not None, "layers in a network have a source location"
        return [self._files.setdefault(place.file, len(self._files)), place.node or place.line]

    def _reference(self, tensor: ITensor, reader: Any) -> list[int]:
        if tensor not in self._tensors:
            what = f"tensor {quoted(tensor.name)} is no longer in the network"
            raise _unwritable(reader, what, "remove_tensor removed this input, and it is still in use")
        return self._tensors[tensor]

    def _json(self, at: Any, name: str, codec: Codec) -> Any:
        return self._written(at, name, codec, getattr(at, name))

    def _written(self, at: Any, name: str, codec: Codec, value: Any) -> Any:
        try:
            return codec.write(value, self)
        except ValueError as error:
            raise _unwritable(at, f"{name} of {type(at).__name__} {quoted(at.name)} {error}") from error.__cause__


def _unwritable(at: Any, what: str, why: str = "") -> NetworkError:
    where = str(getattr(at, "where", "") or getattr(at, "source_location", ""))
    return NetworkError(Finding("NL714", f"the network cannot be saved: {what}", where, why, at=at))


# ---------------------------------------------------------------------------- reading


class NetworkReader:
    """Reads a document, and the files of its arrays, as a network.

    Attributes:
        build: the record of the build; None if there is none.
        absent: the constants whose weights were left out; they are zeros.
    """

    def __init__(self, document: JsonValue, files: Sequence[memoryview]) -> None:
        self._fields = document.fields(FIELDS, (BUILD, MARKS))
        self.build = self._fields.get(BUILD)
        self._files = [value.any_text() for value in self._fields["files"].items()]
        self.absent: list[IConstantLayer] = []
        self._arrays = self._read_arrays(files)
        self._made = INetworkDefinition(None, self._fields["flags"].whole(0))
        self._made.name = self._fields["name"].text()
        self._wiring: list[JsonValue] = []

    def network(self) -> INetworkDefinition:
        """Return the network.

        Raises:
            FileFormatError: the document does not describe a network.
        """
        result, fields = self._made, self._fields
        result.inputs.extend(self._input(node, position) for position, node in enumerate(fields["inputs"].items()))
        result.loops.extend(self._group(node, ILoop) for node in fields["loops"].items())
        result.conditionals.extend(self._group(node, IIfConditional) for node in fields["conditionals"].items())
        result.layers.extend(self._layer(node, index) for index, node in enumerate(fields["layers"].items()))
        for layer, node in zip(result.layers, self._wiring, strict=True):
            layer.wire(self._inputs(node, kind_of(type(layer))))
        for node in fields["outputs"].items():
            self._mark(node)
        constants = (layer for layer in result.layers if isinstance(layer, IConstantLayer))
        self.absent = [constant for constant in constants if id(constant.weights) in self._zeros]
        if MARKS in fields:
            vars(result)["marks"] = self._marks(fields[MARKS])
        return result

    def loop(self, node: JsonValue) -> ILoop:
        """The loop with a number."""
        return node.numbered(self._made.loops, "a loop")

    def conditional(self, node: JsonValue) -> IIfConditional:
        """The conditional with a number."""
        return node.numbered(self._made.conditionals, "a conditional")

    def array(self, node: JsonValue) -> Array:
        """The array with a number."""
        return node.numbered(self._arrays, "an array")

    def _read_arrays(self, files: Sequence[memoryview]) -> list[Array]:
        nodes = [(node, node.fields(("dtype", "shape"), (ABSENT,))) for node in self._fields["arrays"].items()]
        there = sum(ABSENT not in fields for _, fields in nodes)
        if there != len(files):
            self._fields["arrays"].refuse(f"expected {len(files)} arrays, found {there}")
        left = iter(files)
        result = [_array(node, fields, None if ABSENT in fields else next(left)) for node, fields in nodes]
        self._zeros = {id(array) for (_, fields), array in zip(nodes, result, strict=True) if ABSENT in fields}
        return result

    def _marks(self, node: JsonValue) -> Marks:
        fields = node.fields((), ("debug", "unfused", "shapes", "names", "refittable"))
        debug, shapes, names, refittable = (
            fields[key].items() if key in fields else [] for key in ("debug", "shapes", "names", "refittable")
        )
        return Marks(
            dict.fromkeys(map(self._reference, debug)),
            fields["unfused"].flag() if "unfused" in fields else False,
            dict.fromkeys(map(self._shape_output, shapes)),
            dict(map(self._named_weights, names)),
            dict.fromkeys(value.text() for value in refittable),
        )

    def _shape_output(self, node: JsonValue) -> ITensor:
        tensor = self._reference(node)
        if not tensor.is_network_output:
            node.refuse(f"tensor {quoted(tensor.name)} is not an output")
        return tensor

    def _named_weights(self, node: JsonValue) -> tuple[IConstantLayer, str]:
        number, name = node.pair()
        layer = number.numbered(self._made.layers, "a layer")
        if not isinstance(layer, IConstantLayer):
            number.refuse(f"layer {quoted(layer.name)} is not a constant")
        return layer, name.text()

    def _input(self, node: JsonValue, position: int) -> ITensor:
        fields = node.fields(("name", "dtype", "shape"), (SEQUENCE, OPTIONAL, KEY, *TENSOR_EXTRAS, NAMES))
        return self._tensor(ITensor("", self._made.types, None, position, self._declared(fields)), fields)

    def _declared(self, fields: Fields) -> TensorType:
        if KEY in fields:
            try:
                return map_type(fields[KEY].member(DataType), fields["dtype"].member(DataType))
            except ValueError as error:
                fields[KEY].refuse(str(error))
        sequence, optional = (name in fields and fields[name].flag() for name in (SEQUENCE, OPTIONAL))
        shape = None if sequence and fields["shape"].value is None else self._shape(fields["shape"])
        return type_in_form(numpy_type(fields["dtype"].member(DataType)), shape, sequence, optional)

    def _shape(self, node: JsonValue) -> tuple[int, ...]:
        shape = tuple(value.whole() for value in node.items())
        if len(shape) > Dims.MAX_DIMS:
            node.refuse(f"the shape has {len(shape)} axes", f"a tensor has at most {Dims.MAX_DIMS}")
        return shape

    def _output(self, node: JsonValue, producer: ILayer, position: int) -> ITensor:
        fields = node.fields(("name",), (*TENSOR_EXTRAS, *OUTPUT_EXTRAS, NAMES))
        tensor = self._tensor(ITensor("", self._made.types, producer, position), fields)
        own = {name: codec.read(fields[name], self) for name, (codec, _) in OUTPUT_EXTRAS.items() if name in fields}
        if own.get("is_converted") and not isinstance(producer, ICastLayer):
            node.refuse(f"tensor {quoted(tensor.name)} is converted, and is not the output of a cast")
        vars(tensor).update(own)
        return tensor

    def _tensor(self, tensor: ITensor, fields: Fields) -> ITensor:
        """Set the name and the optional properties of a tensor from fields."""
        try:
            tensor.name = fields["name"].text()
        except ValueError as error:
            fields["name"].refuse(str(error))
        for name, (codec, _) in TENSOR_EXTRAS.items():
            if name in fields:
                setattr(tensor, name, codec.read(fields[name], self))
        for node in fields[NAMES].items() if NAMES in fields else ():
            axis, name = node.pair()
            if axis.whole() in tensor.dimension_names:
                axis.refuse(f"axis {axis.value} has two names")
            tensor.set_dimension_name(axis.whole(), name.text())
        return tensor

    def _group(self, node: JsonValue, cls: Callable[..., G]) -> G:
        fields = node.fields(("name", "place"))
        return cls(self._made, fields["name"].text(), self._place(fields["place"]))

    def _layer(self, node: JsonValue, index: int) -> ILayer:
        fields = node.fields(LAYER_FIELDS, LAYER_EXTRAS)
        self._wiring.append(fields["inputs"])
        kind = kind_of(fields["kind"].one_of(kinds(), "a kind of layer"))
        layer = object.__new__(kind.cls)
        own = vars(layer)
        own.update(self._attributes(fields["attributes"], kind))
        own.update(
            (name, codec.read(fields[name], self)) for name, (codec, _) in LAYER_EXTRAS.items() if name in fields
        )
        place = self._place(fields["place"])
        own.update(types=self._made.types, index=index, name=fields["name"].text(), source_location=place)
        nodes = fields["outputs"].items()
        if len(nodes) != layer.NUM_OUTPUTS:
            fields["outputs"].refuse(f"the layer has {len(nodes)} outputs, its kind {layer.NUM_OUTPUTS}")
        own["outputs"] = tuple(self._output(node, layer, position) for position, node in enumerate(nodes))
        if isinstance(layer, ILoopBoundaryLayer):
            layer.loop.layers.append(layer)
        elif isinstance(layer, IIfConditionalBoundaryLayer):
            layer.conditional.layers.append(layer)
        return layer

    def _attributes(self, node: JsonValue, kind: PlanKind) -> dict[str, Any]:
        fields = node.fields(kind.required, kind.codecs)
        return {name: self._attribute(fields[name], kind, name) for name in kind.codecs if name in fields}

    def _attribute(self, node: JsonValue, kind: PlanKind, name: str) -> Any:
        value = kind.codecs[name].read(node, self)
        if id(value) in self._zeros:
            if kind.cls is not IConstantLayer:
                node.refuse("the array is absent, and the layer is not a constant")
            return value
        try:
            return kind.cls.ATTRIBUTES[name](name, value)
        except (TypeError, ValueError) as error:
            node.refuse(str(error))

    def _inputs(self, node: JsonValue, kind: PlanKind) -> list[ITensor | None]:
        nodes = node.items()
        if not kind.least_inputs <= len(nodes) <= kind.most_inputs:
            takes = f"{kind.least_inputs}" if kind.least_inputs == kind.most_inputs else f"up to {kind.most_inputs}"
            node.refuse(f"the layer has {len(nodes)} inputs, and its kind takes {takes}")
        return [None if node.value is None else self._reference(node) for node in nodes]

    def _reference(self, node: JsonValue) -> ITensor:
        layer, position = node.pair()
        if layer.value == NETWORK_INPUT:
            return position.numbered(self._made.inputs, "an input")
        return position.numbered(layer.numbered(self._made.layers, "a layer").outputs, "an output")

    def _mark(self, node: JsonValue) -> None:
        tensor = self._reference(node)
        if tensor.is_network_output:
            node.refuse(f"tensor {quoted(tensor.name)} is marked as an output twice")
        self._made.mark_output(tensor)

    def _place(self, node: JsonValue) -> SourceLocation:
        file, at = node.pair()
        line, part = (0, at.text()) if isinstance(at.value, str) else (at.whole(0), "")
        return SourceLocation(file.numbered(self._files, "a file"), line, part)


def _array(node: JsonValue, fields: Fields, file: memoryview | None) -> Array:
    dtype, shape = fields["dtype"].member(DataType), [value.whole(0) for value in fields["shape"].items()]
    try:
        if file is None:
            return np.broadcast_to(np.zeros((), numpy_type(dtype)), shape)
        return npy_arrays.load(file, dtype, shape)
    except MemoryError:
        node.refuse("there is not enough memory for the array")
    except ValueError as error:
        what = "there is no such array" if file is None else "the file does not fit the array"
        node.refuse(f"{what}: {error}")
