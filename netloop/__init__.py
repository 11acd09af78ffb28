"""TensorRT's network builder with loops and conditionals, on every device that JAX supports.

``import netloop as trt``, build a network as for TensorRT, and then

>>> # engine = trt.compile(network); engine({"x": x})["y"]

The public names are those of ``netloop.public_names``. The first one that is read imports them all, and JAX with them:
until then the command line can parse its arguments without waiting for JAX.
"""

import importlib as _importlib
import sys as _sys
import typing as _typing

from netloop.values.removed_names import unknown as _unknown

if _typing.TYPE_CHECKING:
    from netloop import compat as compat
    from netloop import deploy as deploy
    from netloop import onnx as onnx
    from netloop import openvino as openvino
    from netloop import peers as peers
    from netloop import plan as plan
    from netloop import safetensors as safetensors
    from netloop import sandbox as sandbox
    from netloop import script as script
    from netloop import serve as serve
    from netloop import stablehlo as stablehlo
    from netloop import tensorrt as tensorrt
    from netloop import wts as wts
    from netloop.api.onnx_parser import NodeIndices as NodeIndices
    from netloop.api.onnx_parser import OnnxParser as OnnxParser
    from netloop.api.onnx_parser import ParserError as ParserError
    from netloop.api.onnx_parser import SubGraphCollection as SubGraphCollection
    from netloop.api.onnx_refitter import OnnxParserRefitter as OnnxParserRefitter
    from netloop.deploy import export as export
    from netloop.public_names import *  # noqa: F403
    from netloop.script import to_script as to_script

__version__ = "0.2.0.dev0"

_ON_DEMAND = {
    "tensorrt": "netloop.tensorrt",
    "compat": "netloop.compat",
    "deploy": "netloop.deploy",
    "export": "netloop.deploy",
    "onnx": "netloop.onnx",
    "openvino": "netloop.openvino",
    "peers": "netloop.peers",
    "plan": "netloop.plan",
    "safetensors": "netloop.safetensors",
    "sandbox": "netloop.sandbox",
    "script": "netloop.script",
    "serve": "netloop.serve",
    "stablehlo": "netloop.stablehlo",
    "to_script": "netloop.script",
    "wts": "netloop.wts",
    "OnnxParser": "netloop.api.onnx_parser",
    "OnnxParserRefitter": "netloop.api.onnx_refitter",
    "NodeIndices": "netloop.api.onnx_parser",
    "ParserError": "netloop.api.onnx_parser",
    "SubGraphCollection": "netloop.api.onnx_parser",
}
"""Names that are imported on first use: they need an optional package, or are rarely used."""

_EARLIER = {"Severity": "netloop.values.diagnostics"}
"""Names of earlier releases, which are not listed: TensorRT has other members under them, as ``Logger.Severity``."""

_NAMES = "netloop.public_names"


if not _typing.TYPE_CHECKING:  # a type checker, which has all names above, then finds misspelt ones

    def __getattr__(name: str) -> _typing.Any:
        where = _ON_DEMAND.get(name) or _EARLIER.get(name)
        if where is not None:
            module = _importlib.import_module(where)
            return getattr(module, name, module)
        if name == "__all__":  # of which ``from netloop import *`` asks
            return _public()
        known = globals() if name.startswith("__") or name in globals() else _load()
        if name not in known:
            raise AttributeError(_unknown("module 'netloop'", name), name=name, obj=_sys.modules[__name__])
        return known[name]


def __dir__() -> list[str]:
    """The public names, without the folders of the package that are imported under them."""
    return sorted({name for name in globals() if name.startswith("__")} | {*_public(), *_ON_DEMAND})


def _public() -> list[str]:
    _load()
    return [name for name in vars(_importlib.import_module(_NAMES)) if not name.startswith("_")]


def _load() -> dict[str, _typing.Any]:
    """Import the public names; return them and the names of submodules. A name that somebody has set stays."""
    names = vars(_importlib.import_module(_NAMES))
    globals().update({name: names[name] for name in {*names} - {*globals()} if not name.startswith("_")})
    return globals()
