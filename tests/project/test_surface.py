"""netloop's exports against TensorRT's Python package: names, numbers, parameters and defaults.

``data/tensorrt_surface.json`` has these facts as recorded from that package, and no code.
"""

import ast
import inspect
import json
import re
import sys
import textwrap
from enum import Enum
from functools import cache, cached_property
from inspect import Parameter
from pathlib import Path
from typing import Any

import pytest

import netloop
from netloop.model.graph.layer import BASE_ATTRIBUTES, ILayer
from netloop.model.layers import plugin
from netloop.model.plugins import unavailable
from netloop.values.checked_attributes import CheckedAttributes
from netloop.values.enums import DataType
from tests.project import exports

RECORDED: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "tensorrt_surface.json").read_text())
ON_DEMAND = ("NodeIndices", "OnnxParser", "OnnxParserRefitter", "ParserError", "SubGraphCollection")
EXPORTED = {name: getattr(netloop, name) for name in (*dir(netloop), *ON_DEMAND) if not name.startswith("_")}

TOP_LEVEL: dict[str, list[str]] = json.loads(
    (Path(__file__).parents[1] / "data" / "tensorrt_names.json").read_text(encoding="utf-8")
)
"""The public names of TensorRT's Python package, by its version."""

EXTRA_MEMBERS = {
    "BuilderFlag": {
        "FP16": 40,
        "INT8": 41,
        "BF16": 42,
        "FP8": 43,
        "INT4": 44,
        "FP4": 45,
        "OBEY_PRECISION_CONSTRAINTS": 46,
        "PREFER_PRECISION_CONSTRAINTS": 47,
        "REJECT_EMPTY_ALGORITHMS": 48,
        "WEIGHTLESS": 49,
    },
    "NetworkDefinitionCreationFlag": {"EXPLICIT_BATCH": 0},
    "PreviewFeature": {"PROFILE_SHARING_0806": 40},
    "TacticSource": {"CUBLAS": 40, "CUBLAS_LT": 41, "CUDNN": 42},
}
"""Members of enumerations that TensorRT 11 does not have and scripts for TensorRT 10 use."""
FIRST_OWN = 100
"""The first number of the members that are netloop's own."""

NAMES_ONLY = {
    name
    for name, attribute in {**vars(unavailable), **vars(plugin)}.items()
    if isinstance(attribute, type)
    and issubclass(attribute, unavailable.Unavailable)
    and attribute is not unavailable.Unavailable
}
"""Classes that scripts can name and derive from, and not instantiate."""

DIFFERENT: dict[str, set[str]] = {
    "Builder": {"build_serialized_network"},  # without the form that returns the text of kernels, as there are none
    "ICudaEngine": {"create_execution_context"},  # two forms in one
    "INetworkDefinition": {
        *("add_quantize", "add_dequantize"),  # with the two arguments of TensorRT 10 too
    },
    "IPluginV3": {"__init__"},  # clone makes copies, here and for the three parts
    "IPluginV3OneBuild": {"__init__", "configure_plugin", "get_workspace_size"},  # inp for in, a keyword of Python
    "IPluginV3OneCore": {"__init__"},
    "IPluginV3OneRuntime": {"__init__", "on_shape_change"},  # inp for in
    "DynamicPluginTensorDesc": {"__init__"},  # which may be given what it holds
    "NodeIndices": {"append", "count", "extend", "insert", "pop", "remove"}  # a list, as the next but one
    | ({"__getitem__"} if sys.version_info >= (3, 12) else set()),
    "PluginField": {"size"},  # follows from the data
    "PluginFieldCollection": {"append", "extend", "insert", "pop"}  # a list
    | ({"__getitem__"} if sys.version_info >= (3, 12) else set()),  # whose parameters older Pythons do not report
    "PluginTensorDesc": {"__init__"},  # which may be given what it holds
    "ITensor": {"dtype"},  # settable, as in TensorRT 10
    "IStreamReaderV2": {"read"},  # as Python overrides it: it returns the bytes, and is given no address for them
    "IStreamWriter": {"write"},  # as Python overrides it: it is given the bytes, and no address and size
    "Runtime": {"deserialize_cuda_engine"},  # two forms in one
}
"""Members with other parameters or defaults, or that are settable in only one of the packages."""


def found(dotted: str) -> Any:
    """The export of a name, which may name a nested class."""
    outer, *inner = dotted.split(".")
    value = EXPORTED.get(outer)
    for name in inner:
        value = getattr(value, name, None)
    return value


ENUMS = list(RECORDED["enums"])
CLASSES = [name for name in RECORDED["classes"] if name not in NAMES_ONLY]
CONSTANTS = list(RECORDED["constants"])


def test_package_exports_what_is_public():
    assert exports.FILE.read_text(encoding="utf-8") == exports.text(), "python -m tests.project.exports"


def test_all_names_of_the_module_are_there():
    assert {
        name for kind in ("classes", "enums", "constants") for name in RECORDED[kind] if found(name) is None
    } == set()
    assert [name for release in TOP_LEVEL.values() for name in release if not hasattr(netloop, name)] == []


def test_module_tensorrt_has_all_names_and_the_recorded_version():
    assert not [name for name in (*CLASSES, *ENUMS, *CONSTANTS) if not hasattr(netloop.tensorrt, name.split(".")[0])]
    assert netloop.tensorrt.ILayer is netloop.ILayer
    assert netloop.tensorrt.__version__ == RECORDED["version"]


@pytest.mark.parametrize("name", ENUMS)
def test_enumeration_has_the_recorded_members(name):
    members = {member: int(value) for member, value in found(name).__members__.items()}
    assert {member: value for member, (value, _) in getattr(found(name), "__entries").items()} == found(
        name
    ).__members__

    theirs = {member: number for member, number in members.items() if number < FIRST_OWN}

    assert theirs == RECORDED["enums"][name] | EXTRA_MEMBERS.get(name, {})


@pytest.mark.parametrize("name", CONSTANTS)
def test_constant_stands_for_the_recorded_type(name):
    assert found(name) is DataType[RECORDED["constants"][name].removeprefix("DataType.")]


@pytest.mark.parametrize("name", CLASSES)
def test_class_lacks_only_what_is_listed(name):
    assert missing(name) == []


@pytest.mark.parametrize("name", CLASSES)
def test_class_differs_only_in_what_is_listed(name):
    assert {difference.split(":")[0] for difference in differences(name)} == DIFFERENT.get(name, set()), differences(
        name
    )


def missing(name: str) -> list[str]:
    """The recorded bases, methods and properties that a class lacks."""
    cls, recorded = found(name), RECORDED["classes"][name]
    lineage = [value.__name__ for value in cls.__mro__]
    return [
        *(f"({base})" for base in recorded["bases"] if base not in lineage),
        *(method for method in recorded["methods"] if not has_method(cls, method)),
        *(value for value in recorded["properties"] if not has_property(cls, value)),
    ]


def differences(name: str) -> list[str]:
    """The differences of a class from the record, as ``name: difference``."""
    cls, recorded = found(name), RECORDED["classes"][name]
    overloads = {method: value for method, value in recorded["methods"].items() if has_method(cls, method)}
    properties = {name: access for name, access in recorded["properties"].items() if has_property(cls, name)}
    return [
        *(
            f"{method}: ({ours_as_text(cls, method)}) for ({overload})"
            for method, value in overloads.items()
            for overload in value
            if not covers(parameters(cls, method), overload, several=len(value) > 1)
        ),
        *(f"{name}: to {access}" for name, access in properties.items() if access != access_to(cls, name)),
    ]


# ---------------------------------------------------------------------------- methods


def has_method(cls: type, method: str) -> bool:
    return callable(getattr(cls, method, None))


def parameters(cls: type, method: str) -> list[Parameter] | None:
    """The parameters after ``self``; None where Python does not report them."""
    function = inspect.getattr_static(cls, method, None)
    try:
        if method == "__init__":
            return list(inspect.signature(cls).parameters.values())
        ours = list(inspect.signature(getattr(cls, method)).parameters.values())
    except ValueError:
        return None
    return ours if isinstance(function, staticmethod | classmethod) else ours[1:]


def ours_as_text(cls: type, method: str) -> str:
    return ", ".join(map(str, parameters(cls, method) or []))


def covers(ours: list[Parameter] | None, overload: str, several: bool) -> bool:
    """Whether every call that fits a recorded signature means the same with netloop's parameters.

    Where several signatures are recorded, netloop's covers all: parameters that only some have are optional.
    """
    if ours is None or any(our.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD) for our in ours):
        return True
    theirs = [word.partition("=") for word in overload.split(", ") if word]
    if len(theirs) > len(ours) or (len(theirs) < len(ours) and not several):
        return False
    after_optional = False
    for mine, (name, is_optional, default) in zip(ours, theirs, strict=False):
        if mine.name != name and not re.fullmatch(r"arg\d", name):
            return False
        if is_optional and default_as_text(mine) != default:
            return False
        if not is_optional and mine.default is not Parameter.empty and not (several or after_optional):
            return False
        after_optional |= bool(is_optional)
    return all(mine.default is not Parameter.empty for mine in ours[len(theirs) :])


def default_as_text(parameter: Parameter) -> str:
    value = parameter.default
    return f"{type(value).__name__}.{value.name}" if isinstance(value, Enum) else repr(value)


# ---------------------------------------------------------------------------- properties


def has_property(cls: type, name: str) -> bool:
    if hasattr(cls, name) or name in instance_attributes(cls):
        return True
    kinds = [descendant for descendant in descendants(cls) if not inspect.isabstract(descendant)]
    return inspect.isabstract(cls) and bool(kinds) and all(has_property(kind, name) for kind in kinds)


def descendants(cls: type) -> list[type]:
    """The classes of netloop below a class."""
    below = [subclass for subclass in cls.__subclasses__() if subclass.__module__.startswith("netloop.")]
    return below + [deeper for kind in below for deeper in descendants(kind)]


def access_to(cls: type, name: str) -> str:
    """``write`` if the property can be set on an object of the class, else ``read``."""
    static = inspect.getattr_static(cls, name, None)
    if isinstance(static, property):
        return "read" if static.fset is None else "write"
    if issubclass(cls, CheckedAttributes):
        return "write" if name in cls.defaults else "read"
    if issubclass(cls, ILayer):
        settable = (cls.ATTRIBUTES.keys() | BASE_ATTRIBUTES.keys()) - cls.READ_ONLY
        return "write" if name in settable else "read"
    dataclass = getattr(cls, "__dataclass_params__", None)
    fixed = isinstance(static, cached_property) or (dataclass is not None and dataclass.frozen)
    return "write" if name in instance_attributes(cls) and not fixed else "read"


@cache
def instance_attributes(cls: type) -> frozenset[str]:
    """The attributes that a class of netloop and its bases annotate, or set on ``self``."""
    own = [kind for kind in cls.__mro__ if kind.__module__.startswith("netloop.")]
    annotated = (name for kind in own for name in inspect.get_annotations(kind))
    return frozenset({*annotated, *(name for kind in own for name in set_on_self(kind))})


def set_on_self(cls: type) -> set[str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    stored = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))
    return {
        attribute.attr for attribute in stored if isinstance(attribute.value, ast.Name) and attribute.value.id == "self"
    }


def test_findings_take_no_name_that_tensorrt_has_for_something_else():
    assert not hasattr(netloop.tensorrt, "Severity")
    assert "Severity" not in dir(netloop)
    assert netloop.FindingSeverity is netloop.Severity is type(netloop.Finding("NL101", "what").severity)


LISTED_TOO = {
    "Builder": {"none_on_error", "platform_has_fast_fp16", "platform_has_fast_int8", "platform_has_tf32"},
    "IBuilderConfig": {
        *("algorithm_selector", "clear_quantization_flag", "get_calibration_profile", "get_quantization_flag"),
        *("int8_calibrator", "interruptible", "max_trips", "quantization_flags", "set_calibration_profile"),
        *("set_quantization_flag", "tuning_seconds"),
    },
    "ITensor": {"dynamic_range", "reset_dynamic_range", "set_dynamic_range"},
    "OnnxParser": {"supports_model"},
}
"""The names in ``dir`` that TensorRT 11 lacks: those of version 10, and settings of netloop's own."""


def test_dir_lists_the_names_of_tensorrt():
    logger = netloop.Logger()
    builder = netloop.Builder(logger)
    network = builder.create_network()
    choice = network.add_if_conditional()
    x = network.add_input("x", netloop.float32, (1,))
    parser = netloop.OnnxParser(network, logger)
    listed = (builder, network, builder.create_builder_config(), builder.create_optimization_profile(), x, choice)
    cache = builder.create_builder_config().create_timing_cache(b"")
    for thing in (*listed, network.add_loop(), parser, cache):
        assert not [member for member in dir(thing) if re.match("_[^_]", member)]
        name = type(thing).__name__
        recorded = {**RECORDED["classes"][name]["methods"], **RECORDED["classes"][name]["properties"]}
        ours = {member for member in dir(thing) if not re.match("_|add_", member)}

        assert ours - set(recorded) == LISTED_TOO.get(name, set())


MODULES = [name for name in dir(netloop) if inspect.ismodule(getattr(netloop, name)) and name != "tensorrt"]


def test_listed_modules_are_those_with_public_names():
    folders = {"api", "compiler", "formats", "model", "process", "tools", "values", "public_names"}

    assert set(MODULES) >= {"onnx", "openvino", "plan", "serve"}
    assert not folders & {*dir(netloop), *netloop.__all__}


@pytest.mark.parametrize("name", MODULES)
def test_modules_list_their_public_names(name):
    module = getattr(netloop, name)

    assert all(inspect.getdoc(getattr(module, public)) for public in module.__all__)
    shown = {public for public in vars(module) if not public.startswith("_")}
    assert {public for public in shown if not inspect.ismodule(getattr(module, public))} == set(module.__all__)
