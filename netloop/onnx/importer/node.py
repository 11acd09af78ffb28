"""A node of a model: its operator, and its attributes as Python values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import onnx
from onnx import AttributeProto, defs

from netloop.diagnostics import did_you_mean, require
from netloop.onnx.importer.function_calls import domain_of
from netloop.onnx.tensors import array_of, dense_of

Bindings = Mapping[str, AttributeProto]
"""The attributes that the call of a function gave, by name."""


def schema_of(domain: str, op: str, version: int) -> defs.OpSchema | None:
    """What the standard says of an operator, as of a version of its domain; None if it has no such operator."""
    return defs.get_schema(op, version, domain) if defs.has(op, version, domain) else None


@dataclass(frozen=True)
class OnnxNode:
    """A node of a model.

    Attributes:
        proto: the node.
        version: the version of the operators of its domain.
        number: its number in its graph.
        bindings: the attributes of the function that it is part of.
        directory: the folder of the files that hold tensors; None if there is none.
        outermost: the number of the node of the model that it is, or is inside of.
        functions: the functions that it is inside of.
    """

    proto: onnx.NodeProto
    version: int
    number: int = 0
    bindings: Bindings = field(default_factory=dict[str, AttributeProto])
    directory: Path | None = None
    outermost: int = 0
    functions: tuple[str, ...] = ()

    @property
    def op(self) -> str:
        """The name of the operator."""
        return self.proto.op_type

    @property
    def domain(self) -> str:
        """Its domain; nothing for that of ONNX itself."""
        return domain_of(self.proto.domain)

    @property
    def key(self) -> tuple[str, str, str]:
        """What a function in its place is found by: domain, name and overload."""
        return self.domain, self.op, self.proto.overload

    @property
    def operator(self) -> str:
        """The operator as messages put it, ``Slice-13`` or ``my.domain::Slice-1``."""
        return f"{self.domain and self.domain + '::'}{self.op}-{self.since}"

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.label

    @property
    def label(self) -> str:
        """The name of the node, or where it has none its operator and number."""
        return self.proto.name or f"{self.op}_{self.number}"

    @cached_property
    def schema(self) -> defs.OpSchema | None:
        """What the standard says of the operator; None if it has no such operator."""
        return schema_of(self.domain, self.op, self.version)

    @property
    def since(self) -> int:
        """The version of the operator: that in which it last changed."""
        return self.schema.since_version if self.schema else self.version

    @cached_property
    def given(self) -> dict[str, AttributeProto]:
        """The attributes that the node has, those of the function around it filled in."""
        found = {each.name: self._filled_in(each) for each in self.proto.attribute}
        return {name: each for name, each in found.items() if each is not None}

    def _filled_in(self, own: AttributeProto) -> AttributeProto | None:
        return self.bindings.get(own.ref_attr_name) if own.ref_attr_name else own

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute as a Python value, as the node gives it, or else by the default of the standard, or by yours.

        Tensors are arrays, texts are str, lists are lists; a graph is a GraphProto.
        """
        found = self.given.get(name)
        if found is None and self.schema is not None and name in self.schema.attributes:
            standard = self.schema.attributes[name].default_value
            found = standard if standard.type != AttributeProto.UNDEFINED else None
        return default if found is None else self._value(found)

    def _value(self, proto: AttributeProto) -> Any:
        convert = VALUES.get(proto.type)
        require(convert is not None, f"attribute {proto.name!r} is of a type that networks have no use for")
        assert convert is not None
        return convert(proto, self.directory)

    def check(self) -> None:
        """Complain of attributes, inputs and outputs that the standard does not give the operator.

        Raises:
            LayerError: there are such.
        """
        names = [each.name for each in self.proto.attribute]
        require(len(set(names)) == len(names), f"an attribute is there twice: {sorted(names)}")
        if self.schema is None:
            return
        self._check_attributes(self.schema)
        counts = len(self.proto.input), len(self.proto.output)
        limits = (self.schema.min_input, self.schema.max_input), (self.schema.min_output, self.schema.max_output)
        for count, (least, most), what in zip(counts, limits, ("inputs", "outputs"), strict=True):
            span = str(least) if least == most else f"{least} or more" if most > UNLIMITED else f"{least} to {most}"
            require(least <= count <= most, f"the node has {count} {what}, and {self.operator} {span}")
        needed = [
            position for position, name in enumerate(self.proto.input) if not name and not self._is_optional(position)
        ]
        require(not needed, f"input {needed and needed[0]} is left out, and {self.operator} needs it")

    def _is_optional(self, position: int) -> bool:
        """Whether an input may be left out."""
        assert self.schema is not None
        kinds = [each.option for each in self.schema.inputs]
        return kinds[min(position, len(kinds) - 1)] == defs.OpSchema.FormalParameterOption.Optional

    def _check_attributes(self, schema: defs.OpSchema) -> None:
        for name, each in self.given.items():
            known = schema.attributes.get(name)
            fix = did_you_mean(name, schema.attributes)
            require(known is not None, f"{self.operator} has no attribute {name!r}", fix=fix)
            assert known is not None
            wanted: int = cast(Any, known.type).value
            require(
                each.type in (AttributeProto.UNDEFINED, wanted),
                f"attribute {name!r} is {_kind(each.type)}, and must be {_kind(wanted)}",
            )
        missing = [name for name, each in schema.attributes.items() if each.required and name not in self.given]
        require(not missing, f"{self.operator} needs the attributes {missing}")


UNLIMITED = 1 << 20


def _kind(code: int) -> str:
    return AttributeProto.AttributeType.Name(code).lower().replace("ints", "a list of ints")


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


# fmt: off
VALUES: dict[int, Any] = {
    AttributeProto.INT:           lambda proto, directory: proto.i,
    AttributeProto.INTS:          lambda proto, directory: list(proto.ints),
    AttributeProto.FLOAT:         lambda proto, directory: proto.f,
    AttributeProto.FLOATS:        lambda proto, directory: list(proto.floats),
    AttributeProto.STRING:        lambda proto, directory: _text(proto.s),
    AttributeProto.STRINGS:       lambda proto, directory: [_text(each) for each in proto.strings],
    AttributeProto.TENSOR:        lambda proto, directory: array_of(proto.t, directory),
    AttributeProto.SPARSE_TENSOR: lambda proto, directory: dense_of(proto.sparse_tensor, directory),
    AttributeProto.GRAPH:         lambda proto, directory: proto.g,
    AttributeProto.TYPE_PROTO:    lambda proto, directory: proto.tp,
}
# fmt: on
"""What makes a Python value of an attribute."""
