"""When the package imports its public names."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import netloop
from tests.support.examples import mostly_slow

PACKAGE = Path(netloop.__file__).parent
ON_DEMAND = vars(netloop)["_ON_DEMAND"]


def run(program: str) -> str:
    """What a program prints in a process of its own."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=200, check=True)
    return done.stdout


def test_import_of_the_package_imports_no_jax_and_no_numpy():
    assert run("import sys, netloop; print({'jax', 'numpy'} & {*sys.modules})") == "set()\n"


def test_attribute_that_tools_look_for_imports_nothing():
    assert run("import sys, netloop; print(hasattr(netloop, '__wrapped__'), 'jax' in sys.modules)") == "False False\n"


def test_first_name_imports_all():
    assert run("import netloop; netloop.volume; print('Builder' in vars(netloop))") == "True\n"


@pytest.mark.slow
def test_star_imports_the_public_names():
    assert run("from netloop import *; print(compile.__module__, float32)") == "netloop.api.engine DataType.FLOAT\n"


@pytest.mark.parametrize(
    "module",
    mostly_slow(1, ["netloop.compiler.execution.gradient", "netloop.api.engine_plan", "netloop.values.diagnostics"]),
)
def test_module_of_the_package_can_be_imported_first(module):
    assert run(f"import {module}; print('Builder' in vars(__import__('netloop')))") == "False\n"


def test_modules_take_only_modules_from_the_package_itself():
    texts = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    # to parse all takes seconds
    nodes = [node for text in texts if "from netloop import" in text for node in ast.walk(ast.parse(text))]
    taken = {name.name for node in nodes if isinstance(node, ast.ImportFrom) and node.module == "netloop"
             for name in node.names}  # fmt: skip

    assert taken - {"*", "__version__"} <= {*ON_DEMAND}


@pytest.mark.slow
def test_name_that_somebody_has_set_stays():
    program = "netloop.compare = 5; getattr(netloop, 'nothing', None); print(netloop.compare, callable(netloop.check))"

    assert run(f"import netloop; {program}") == "5 True\n"
    assert run(f"import netloop; netloop.compile; {program}") == "5 True\n"


def test_misspelt_name_has_a_hint():
    with pytest.raises(AttributeError, match="TensorRT removed it; use OnnxParser"):
        netloop.CaffeParser  # noqa: B018


def test_names_listed_for_type_checkers_are_those_on_demand():
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    listed = {name.asname for node in block.body if isinstance(node, ast.ImportFrom) for name in node.names}

    assert listed - {None} == {*ON_DEMAND}
