"""The levels of the package, and limits for every module."""

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import netloop
from tests.project.levels import LEVELS, PAGE, page

PACKAGE = Path(netloop.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

LEVEL_OF = {name: number for number, level in enumerate(LEVELS) for name in level.modules}
TOP = len(LEVELS) - 1

CYCLES = [
    # A graph refers both ways: a tensor has a producer and a type table, a layer has tensors, and the table walks both.
    # ``layer_compat`` is a base class of layers, and ``layer_text`` their text.
    # Imports at run time go one way, from layer to infer and tensor.
    {f"netloop.graph.{name}" for name in ("infer", "layer", "layer_compat", "layer_text", "tensor")},
]
"""Modules that import each other, imports for annotations included, each with the reason."""

MOST_LINES_OF_A_FILE = 493
MOST_LINES_OF_A_FUNCTION = 33

each_module = pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
Function = ast.FunctionDef | ast.AsyncFunctionDef
Import = ast.Import | ast.ImportFrom


def part_of(path: Path) -> str:
    """The module or folder at the root of the package that a file belongs to."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def dotted(path: Path) -> str:
    return ".".join(["netloop", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path, node: Import) -> list[str]:
    """The modules that an import names; for ``from a import b`` both ``a`` and ``a.b``."""
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    package = ["netloop", *path.relative_to(PACKAGE).parts[:-1]]
    base = package[: len(package) + 1 - node.level] if node.level else []
    source = ".".join([*base, *([node.module] if node.module else [])])
    return [source, *(f"{source}.{each.name}" for each in node.names)]


def imports(path: Path, node: ast.AST) -> Iterator[Import]:
    """The imports below a node, those under TYPE_CHECKING included: they too make a reader open the other file."""
    return (child for child in ast.walk(node) if isinstance(child, Import))


def is_part(name: str) -> bool:
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()


def may_import(here: str, there: str) -> bool:
    below = LEVEL_OF[there] < LEVEL_OF[here]
    return below or here == there or LEVEL_OF[here] == LEVEL_OF[there] == TOP


def parts_imported(path: Path) -> set[str]:
    parts: set[str] = set()
    for node in imports(path, parse(path)):
        names = [name.split(".") for name in imported(path, node)]
        inside = [name for name in names if name[0] == "netloop"]
        named = {name[1] for name in inside if len(name) > 1 and is_part(name[1])}
        parts |= named or ({"__init__"} if inside else set())
    return parts


def functions(tree: ast.Module) -> list[Function]:
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


@each_module
def test_every_module_has_a_level(path):
    assert part_of(path) in LEVEL_OF


@each_module
def test_imports_point_down(path):
    here = part_of(path)

    assert [there for there in sorted(parts_imported(path)) if not may_import(here, there)] == []


def test_modules_import_no_one_that_imports_them():
    names = {dotted(path) for path in MODULES}
    graph = {
        dotted(path): {
            name
            for node in imports(path, parse(path))
            for name in imported(path, node)
            if name in names and name != dotted(path) and not dotted(path).startswith(f"{name}.")
        }
        for path in MODULES
        if path.name != "__init__.py"
    }
    for cycle in CYCLES:
        for module in cycle:
            graph[module] -= cycle

    graphlib.TopologicalSorter(graph).prepare()


def test_architecture_shows_the_levels():
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.project.levels"


@each_module
def test_nothing_is_imported_inside_a_function(path):
    assert [node for function in functions(parse(path)) for node in imports(path, function)] == []


@each_module
def test_nothing_is_unpickled(path):
    nodes = list(ast.walk(parse(path)))
    modules = {name.split(".")[0] for node in nodes if isinstance(node, Import) for name in imported(path, node)}
    options = [node.value for node in nodes if isinstance(node, ast.keyword) and node.arg == "allow_pickle"]

    assert not modules & {"pickle", "_pickle", "cloudpickle", "dill", "marshal", "shelve"}
    assert all(isinstance(each, ast.Constant) and each.value is False for each in options)


@each_module
def test_no_text_becomes_code(path):
    calls = [node.func for node in ast.walk(parse(path)) if isinstance(node, ast.Call)]

    assert not {each.id for each in calls if isinstance(each, ast.Name)} & {"eval", "exec", "__import__"}


@each_module
def test_every_module_has_a_docstring(path):
    assert ast.get_docstring(parse(path))


@each_module
def test_files_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES_OF_A_FILE


def lines_of(function: Function) -> int:
    """The length of a function, its docstring left out."""
    assert function.end_lineno is not None
    first = function.body[0]
    documented = ast.get_docstring(function) is not None and first.end_lineno is not None
    return function.end_lineno - function.lineno + 1 - (first.end_lineno - first.lineno + 1 if documented else 0)


@each_module
def test_functions_are_short(path):
    long = {each.name: lines_of(each) for each in functions(parse(path)) if lines_of(each) > MOST_LINES_OF_A_FUNCTION}

    assert not long
