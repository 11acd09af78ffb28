"""The messages of the V2 protocol over gRPC, as far as they are used."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

DESCRIPTORS: Any = import_module("google.protobuf.descriptor_pb2")
FACTORY: Any = import_module("google.protobuf.message_factory")
POOL: Any = import_module("google.protobuf.descriptor_pool")

PACKAGE = "inference"
SERVICE = f"{PACKAGE}.GRPCInferenceService"

FIELDS = {
    "Empty": "",
    "Live": "bool live",
    "Ready": "bool ready",
    "NameAndVersion": "string name, string version",
    "ServerMetadata": "string name, string version, string* extensions",
    "TensorMetadata": "string name, string datatype, int64* shape",
    "ModelMetadata": "string name, string* versions, string platform, TensorMetadata* inputs, TensorMetadata* outputs",
    "Parameter": "bool bool_, int64 int64_, string string_, double double_, uint64 uint64_",
    "Contents": "bool* bool_, int32* int_, int64* int64_, uint32* uint_, uint64* uint64_, float* fp32, double* fp64, "
    "bytes* bytes_",
    "Input": "string name, string datatype, int64* shape, Parameter% parameters, Contents contents",
    "Requested": "string name, Parameter% parameters",
    "Output": "string name, string datatype, int64* shape, Parameter% parameters, Contents contents",
    "InferRequest": "string model_name, string model_version, string id, Parameter% parameters, Input* inputs, "
    "Requested* outputs, bytes* raw_inputs",
    "InferResponse": "string model_name, string model_version, string id, Parameter% parameters, Output* outputs, "
    "bytes* raw_outputs",
    "StreamResponse": "string error_message, InferResponse infer_response",
    "IndexEntry": "string name, string version, string state",
    "Index": "IndexEntry* models",
    "LoadRequest": "string repository_name, string model_name",
}
"""The fields of each message, whose numbers count from 1: lists with a star, maps from texts with a percent sign.

The names are netloop's own: the protocol sends the numbers alone.
"""

CHOICES = "Parameter"
"""The message of which one field is set."""


def _file() -> Any:
    file = DESCRIPTORS.FileDescriptorProto(name="netloop_v2.proto", package=PACKAGE, syntax="proto3")
    for name, fields in FIELDS.items():
        message = file.message_type.add(name=name)
        for number, (kind, mark, field) in enumerate(_fields(fields), 1):
            added = message.field.add(
                name=field, number=number, **_type(f"{field}Entry" if mark == "%" else kind, name)
            )
            is_repeated = mark in ("*", "%")
            added.label = added.LABEL_REPEATED if is_repeated else added.LABEL_OPTIONAL
            if mark == "%":
                entry = message.nested_type.add(name=f"{field}Entry")
                entry.options.map_entry = True
                entry.field.add(name="key", number=1, label=added.LABEL_OPTIONAL, **_type("string", name))
                entry.field.add(name="value", number=2, label=added.LABEL_OPTIONAL, **_type(kind, name))
            if name == CHOICES:
                added.oneof_index = 0
        if name == CHOICES:
            message.oneof_decl.add(name="choice")
    return file


def _fields(text: str) -> Iterator[tuple[str, str, str]]:
    """The type, the mark and the name of each field."""
    for word in filter(None, text.split(", ")):
        kind, name = word.split()
        mark = kind[-1] if kind[-1] in "*%" else ""
        yield kind.rstrip("*%"), mark, name


def _type(kind: str, message: str) -> dict[str, Any]:
    """The type of a field: a scalar of protocol buffers, a message, or the entry of a map of its own message."""
    if kind in FIELDS:
        return {"type_name": f".{PACKAGE}.{kind}", "type": DESCRIPTORS.FieldDescriptorProto.TYPE_MESSAGE}
    if kind.endswith("Entry"):
        return {"type_name": f".{PACKAGE}.{message}.{kind}", "type": DESCRIPTORS.FieldDescriptorProto.TYPE_MESSAGE}
    return {"type": DESCRIPTORS.FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")}


def _classes() -> dict[str, Any]:
    # a pool of its own: clients in the same process have messages of the same package
    pool = POOL.DescriptorPool()
    pool.Add(_file())
    return {name: FACTORY.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in FIELDS}


MESSAGES = _classes()
"""The class of each message."""
