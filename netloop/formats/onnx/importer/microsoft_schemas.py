"""The schemas of onnxruntime's own operators, which the package onnx does not have.

``microsoft_schemas.json`` has the facts, written by ``python -m tests.project.microsoft_schemas``: a name that ends in
``?`` is optional, one that ends in ``*`` stands for any number.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from onnx import defs, helper

MICROSOFT = "com.microsoft"
"""The domain of most of these operators."""

FILE = Path(__file__).with_suffix(".json")

OPTIONS = {"?": defs.OpSchema.FormalParameterOption.Optional, "*": defs.OpSchema.FormalParameterOption.Variadic}
ANY = "T"
"""The constraint that stands for all types: the layers check types."""


@cache
def facts() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """The inputs, outputs and attributes of each operator, by domain and name."""
    return json.loads(FILE.read_text(encoding="utf-8"))["operators"]


@cache
def microsoft_schema(domain: str, op: str) -> defs.OpSchema | None:
    """The schema of an operator of onnxruntime; None for any other."""
    values = facts().get(domain, {}).get(op)
    if values is None:
        return None
    return defs.OpSchema(
        op,
        domain,
        1,
        inputs=[_parameter(value) for value in values["inputs"]],
        outputs=[_parameter(value) for value in values["outputs"]],
        type_constraints=[(ANY, ["tensor(float)"], "")],
        attributes=[_attribute(name, value) for name, value in values["attributes"].items()],
    )


def _parameter(name: str) -> defs.OpSchema.FormalParameter:
    option = OPTIONS.get(name[-1], defs.OpSchema.FormalParameterOption.Single)
    return defs.OpSchema.FormalParameter(name.rstrip("?*"), ANY, param_option=option)


def _attribute(name: str, entry: Mapping[str, Any]) -> defs.OpSchema.Attribute:
    if "default" in entry:
        return defs.OpSchema.Attribute(name, helper.make_attribute(name, entry["default"]))
    return defs.OpSchema.Attribute(
        name, getattr(defs.OpSchema.AttrType, entry["type"]), required=entry.get("required", False)
    )
