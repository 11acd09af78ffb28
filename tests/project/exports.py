"""The imports of ``netloop/__init__.py``, made from what the modules define.

Public are all classes that are named like TensorRT's interfaces, ``I...``, all enumerations of the modules ``enums``,
and the ``OTHERS``. ``python -m tests.project.exports`` writes the imports into the file. It reads the sources and does
not import them, so that it also works while an import is missing.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "netloop"
FILE = PACKAGE / "__init__.py"
BLOCK = re.compile(r"^from netloop\.\S+ import .*\n(?:from netloop\.\S+ import .*\n)+", re.MULTILINE)
INTERFACE = re.compile(r"I[A-Z]")

OTHERS = """
api.builder: Builder
api.compare: Comparison Difference compare
api.engine: compile
api.inspector: EngineInspector
api.logger: Logger
api.observers: Profiler
api.plugin_library: init_libnvinfer_plugins
api.refitter: Refitter
api.runtime: Runtime
api.timing_cache: TimingCacheKey TimingCacheValue
check: check explain
diagnostics: ExecutionError FileFormatError Finding InputError ModelError NetloopError NetworkError Severity
dims: Dims Dims2 Dims3 Dims4 DimsHW Permutation Weights volume
execution.to_jax: to_jax
passes: PASSES
plugins.expressions: DimsExprs
plugins.fields: DynamicPluginTensorDesc PluginField PluginFieldCollection PluginFieldCollection_ PluginTensorDesc
plugins.interfaces: InterfaceInfo
plugins.jax_plugin: JaxPlugin JaxPluginCreator jax_plugin
plugins.registry: get_plugin_registry
reference: LazySequence Trace evaluate trace
removed_names: unknown=_unknown
types: nptype
"""
"""Public names that neither rule covers, by module; ``a=b`` for one with another name in the package."""


def is_public(module: str, node: ast.ClassDef) -> bool:
    """Whether a class is public by its name, or as an enumeration with members."""
    has_members = any(isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant) for each in node.body)
    return bool(INTERFACE.match(node.name)) or (module.endswith("enums") and has_members)


def public() -> Iterator[tuple[str, str, str]]:
    """The module, the name in it, and the public name, of all that is public."""
    for path in PACKAGE.rglob("*.py"):
        module = ".".join(("netloop", *path.relative_to(PACKAGE).with_suffix("").parts))
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and is_public(module, node):
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
    """``netloop/__init__.py`` with the imports of today."""
    lines = [f"from {module} import {name} as {known_as}\n" for module, name, known_as in sorted(public(), key=order)]
    return BLOCK.sub(lambda _: "".join(lines), FILE.read_text(encoding="utf-8"), count=1)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
