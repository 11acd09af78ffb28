"""The imports of ``netloop/public_names.py``, made from what the modules define.

Public are all classes that are named like TensorRT's interfaces, ``I...``, all enumerations of the modules ``enums``,
and the names listed below. ``python -m tests.project.exports`` writes the imports into the file. It reads the sources
and does not import them, so that it also works while an import is missing.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "netloop"
FILE = PACKAGE / "public_names.py"
BLOCK = re.compile(r"^from netloop\.\S+ import .*\n(?:from netloop\.\S+ import .*\n)+", re.MULTILINE)
INTERFACE = re.compile(r"I[A-Z]")
OLDER = "netloop.tools.compat.versions."
"""The modules with the names of older versions of TensorRT, which are not netloop's own."""

NAMED = {
    "api": """
        Batches Builder Cancelled Comparison Difference EngineInspector Logger Profiler Refitter RequestState Runtime
        SlotEngine SlotRequest Stepper compare compile get_builder_plugin_registry get_nv_onnx_parser_version
        init_libnvinfer_plugins load shard
    """,
    "model.check": "check",
    "model.weights": "Weights",
    "values.diagnostics": "explain",
    "values.dims": "Dims Dims2 Dims3 Dims4 DimsHW Permutation volume",
    "compiler.execution": "ShardedEngine to_jax",
    "formats.from_jax": "from_jax",
    "model.plugins": """
        DimsExprs DynamicPluginTensorDesc FallbackString InterfaceInfo JaxPlugin JaxPluginCreator KernelLaunchParams
        PluginField PluginFieldCollection PluginFieldCollection_ PluginTensorDesc get_plugin_registry jax_plugin
    """,
    "tools.report": "report report_difference",
    "compiler.tuning": "TimingCacheKey TimingCacheValue",
    "values.types": "nptype",
}
"""Public classes and functions that neither rule covers, by the folder or module that defines them."""

OTHERS = """
values.diagnostics: DeviceWarning ExecutionError FileFormatError Finding InputError ModelError ModelWarning
values.diagnostics: NetloopError NetworkError Severity=_Severity
compiler.passes: PASSES
model.reference: LazySequence Trace evaluate trace
"""
"""Public names of packages that export them themselves; ``a=b`` for one with another name in ``netloop``."""


def is_public(module: str, node: ast.stmt) -> bool:
    """Whether a statement defines something public, by its name or as an enumeration with members."""
    if not isinstance(node, ast.ClassDef | ast.FunctionDef) or module.startswith(OLDER):
        return False
    inside = [names for part, names in NAMED.items() if f"{module}.".startswith(f"netloop.{part}.")]
    if any(node.name in names.split() for names in inside):
        return True
    has_members = any(isinstance(step, ast.Assign) and isinstance(step.value, ast.Constant) for step in node.body)
    return isinstance(node, ast.ClassDef) and (
        bool(INTERFACE.match(node.name)) or (module.endswith("enums") and has_members)
    )


def public() -> Iterator[tuple[str, str, str]]:
    """The module, the name in it, and the public name, of all that is public."""
    for path in PACKAGE.rglob("*.py"):
        module = ".".join(("netloop", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if is_public(module, node):
                yield module, node.name, node.name
    for line in OTHERS.split("\n")[1:-1]:
        module, _, names = line.partition(": ")
        for name in names.split():
            own, _, other = name.partition("=")
            yield f"netloop.{module}", own, other or own


def order(export: tuple[str, str, str]) -> tuple[str, bool, bool, str]:
    """The order in which ruff sorts imports: constants, classes, functions."""
    module, name, _ = export
    return module, not name.isupper(), name[0].islower(), name.lower()


def text() -> str:
    """``netloop/public_names.py`` with the imports of today."""
    lines = [f"from {module} import {name} as {known_as}\n" for module, name, known_as in sorted(public(), key=order)]
    return BLOCK.sub(lambda _: "".join(lines), FILE.read_text(encoding="utf-8"), count=1)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
