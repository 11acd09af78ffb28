"""The schemas of the operators of onnxruntime that netloop imports, taken from the installed onnxruntime.

``python -m tests.project.microsoft_schemas`` writes them into the package.
"""

import json
from typing import Any

import onnx
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as native

from netloop.formats.onnx.importer.microsoft_schemas import FILE, MICROSOFT
from netloop.formats.onnx.importer.operators import TABLE

OPTIONS = {"Optional": "?", "Variadic": "*", "Single": ""}


def imported() -> dict[str, list[str]]:
    """The operators with functions that the standard does not have, by domain and name."""
    names = sorted(TABLE)
    own = [name for domain, name in names if not domain and not onnx.defs.has(name, "")]
    return {"": own, MICROSOFT: [name for domain, name in names if domain == MICROSOFT]}


def installed() -> dict[tuple[str, str], Any]:
    """The schemas of the installed onnxruntime, by domain and name."""
    return {(value.domain, value.name): value for value in native.get_all_operator_schema()}


def facts_of(schema: Any) -> dict[str, Any]:
    """The inputs, outputs and attributes of a schema."""
    return {
        "inputs": [_parameter(tensor) for tensor in schema.inputs],
        "outputs": [_parameter(tensor) for tensor in schema.outputs],
        "attributes": {name: _attribute(attribute) for name, attribute in sorted(schema.attributes.items())},
    }


def _word(member: Any) -> str:
    return str(member).rpartition(".")[2]


def _parameter(given: Any) -> str:
    return given.name + OPTIONS[_word(given.option)]


def _attribute(given: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"type": _word(given.type)}
    if given.required:
        found["required"] = True
    if given._default_value:
        value = onnx.helper.get_attribute_value(onnx.AttributeProto.FromString(given._default_value))
        found["default"] = value.decode() if isinstance(value, bytes) else value
    return found


def text() -> str:
    """The file, with a line for each operator."""
    schemas = installed()
    domains = [
        f"  {json.dumps(domain)}: {{\n"
        + ",\n".join(f"   {json.dumps(name)}: {json.dumps(facts_of(schemas[domain, name]))}" for name in names)
        + "\n  }"
        for domain, names in imported().items()
    ]
    version = json.dumps(onnxruntime.__version__)
    return f'{{\n "onnxruntime": {version},\n "operators": {{\n' + ",\n".join(domains) + "\n }\n}\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
