"""Nodes of a model: operator, attributes as Python values, and checks against the standard."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, cast

import onnx
from onnx import AttributeProto, defs

from netloop.formats.onnx.importer.function_calls import domain_of
from netloop.formats.onnx.importer.microsoft_schemas import microsoft_schema
from netloop.formats.onnx.importer.model import NEWEST
from netloop.formats.onnx.tensors import array_of, dense_of, texts
from netloop.formats.shared.import_errors import present
from netloop.values.diagnostics import did_you_mean, plain, quoted, require

Bindings = Mapping[str, AttributeProto]
"""The attributes of the call of a function, by name."""


def schema_of(domain: str, op: str, version: int) -> defs.OpSchema | None:
    """The schema of an operator in a version of its domain; None if neither the standard nor onnxruntime has it."""
    is_known = abs(version) < LARGEST_VERSION and defs.has(op, version, domain)
    return defs.get_schema(op, version, domain) if is_known else microsoft_schema(domain, op)


def needs_version(domain: str, op: str) -> bool:
    """Whether the meaning of an operator depends on the version of its domain."""
    return _numbers_of_versions().get((domain, op), 1) > 1


@cache
def _numbers_of_versions() -> Mapping[tuple[str, str], int]:
    """The number of versions of each operator of the standard, by domain and name."""
    return Counter((schema.domain, schema.name) for schema in defs.get_all_schemas_with_history())


LARGEST_VERSION = 1 << 31
"""The versions that the package onnx has room for."""


@dataclass(frozen=True)
class ImportedNode:
    """A node of a model.

    Attributes:
        proto: the node.
        version: the version of its domain that the model imports.
        number: its number in its graph.
        bindings: the attributes of the function that it belongs to.
        directory: the folder of external tensors; None if there is none.
        outermost: the number of the node of the model's own graph that it is, or is inside.
        calls: the nodes that call the functions around it, the outermost first.
    """

    proto: onnx.NodeProto
    version: int
    number: int = 0
    bindings: Bindings = field(default_factory=dict[str, AttributeProto])
    directory: Path | None = None
    outermost: int = 0
    calls: "tuple[ImportedNode, ...]" = ()

    @property
    def op(self) -> str:
        """The name of the operator."""
        return self.proto.op_type

    @property
    def domain(self) -> str:
        """Its domain; empty for ONNX's own."""
        return domain_of(self.proto.domain)

    @property
    def key(self) -> tuple[str, str, str]:
        """The domain, name and overload: the key of the model's functions."""
        return self.domain, self.op, self.proto.overload

    @property
    def operator(self) -> str:
        """The operator in messages, ``Slice-13`` or ``my.domain::Slice-1``."""
        return plain(f"{self.domain and self.domain + '::'}{self.op}-{self.since}")

    @property
    def description(self) -> str:
        """The node in messages: name, after those of the calls of functions around it, and operator."""
        path = "/".join(node.name for node in (*self.calls, self))
        return f"node {quoted(path)} ({self.operator})"

    @property
    def definition(self) -> str:
        """The node in the function that it belongs to, whatever calls that."""
        function = self.calls[-1].operator if self.calls else ""
        return f"{function} {self.name} {self.operator}"

    @property
    def name(self) -> str:
        """The name of the node, or its operator and number if it has none."""
        return self.proto.name or f"{self.op}_{self.number}"

    @cached_property
    def schema(self) -> defs.OpSchema | None:
        """The schema of the operator; None if the standard has none."""
        return schema_of(self.domain, self.op, self.version)

    @property
    def since(self) -> int:
        """The version of the operator: the one in which it last changed."""
        return self.schema.since_version if self.schema else self.version

    @cached_property
    def attributes(self) -> dict[str, AttributeProto]:
        """The attributes of the node, with those of the function around it filled in."""
        protos = {attribute.name: self._filled_in(attribute) for attribute in self.proto.attribute}
        return {name: attribute for name, attribute in protos.items() if attribute is not None}

    def _filled_in(self, own: AttributeProto) -> AttributeProto | None:
        return self.bindings.get(own.ref_attr_name) if own.ref_attr_name else own

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute as a Python value: the node's, or the default of the standard, or ``default``.

        Tensors are arrays, strings are str, lists are lists; a graph is a GraphProto.
        """
        proto = self.attributes.get(name)
        if proto is None and self.schema is not None and name in self.schema.attributes:
            standard = self.schema.attributes[name].default_value
            proto = standard if standard.type != AttributeProto.UNDEFINED else None
        return default if proto is None else self._value(proto)

    def _value(self, proto: AttributeProto) -> Any:
        what = f"attribute {quoted(proto.name)} is of a type that netloop does not support"
        return present(VALUES.get(proto.type), what)(proto, self.directory)

    def check(self) -> None:
        """Check the attributes, inputs and outputs against the schema.

        Raises:
            LayerError: they do not match.
        """
        names = [attribute.name for attribute in self.proto.attribute]
        require(len(set(names)) == len(names), f"an attribute is given twice: {sorted(names)}")
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
        """Whether an input is optional."""
        assert self.schema is not None
        kinds = [parameter.option for parameter in self.schema.inputs]
        return kinds[min(position, len(kinds) - 1)] == defs.OpSchema.FormalParameterOption.Optional

    def _check_attributes(self, schema: defs.OpSchema) -> None:
        for name, attribute in self.attributes.items():
            fix = did_you_mean(name, schema.attributes) or self._later(name)
            standard = present(schema.attributes.get(name), f"{self.operator} has no attribute {quoted(name)}", fix=fix)
            wanted: int = cast(Any, standard.type).value
            require(
                attribute.type in (AttributeProto.UNDEFINED, wanted),
                f"attribute {quoted(name)} is {_kind(attribute.type)}, but must be {_kind(wanted)}",
            )
        missing = [
            name for name, attribute in schema.attributes.items() if attribute.required and name not in self.attributes
        ]
        require(not missing, f"{self.operator} needs the attributes {missing}")

    def _later(self, attribute: str) -> str:
        """The advice on an attribute that the operator has in a later version; empty if it never has it."""
        newest = schema_of(self.domain, self.op, NEWEST.get(self.domain, 1))
        has = newest is not None and attribute in newest.attributes
        return (
            f"a later version of {self.op} has it: export the model for a later version of the operators" if has else ""
        )


UNLIMITED = 1 << 20


def _kind(code: int) -> str:
    return AttributeProto.AttributeType.Name(code).lower().replace("ints", "a list of ints")


# fmt: off
VALUES: dict[int, Any] = {
    AttributeProto.INT:           lambda proto, directory: proto.i,
    AttributeProto.INTS:          lambda proto, directory: list(proto.ints),
    AttributeProto.FLOAT:         lambda proto, directory: proto.f,
    AttributeProto.FLOATS:        lambda proto, directory: list(proto.floats),
    AttributeProto.STRING:        lambda proto, directory: texts([proto.s])[0],
    AttributeProto.STRINGS:       lambda proto, directory: texts(proto.strings),
    AttributeProto.TENSOR:        lambda proto, directory: array_of(proto.t, directory),
    AttributeProto.SPARSE_TENSOR: lambda proto, directory: dense_of(proto.sparse_tensor, directory),
    AttributeProto.GRAPH:         lambda proto, directory: proto.g,
    AttributeProto.TYPE_PROTO:    lambda proto, directory: proto.tp,
}
# fmt: on
"""The conversions of attributes to Python values, by type."""
