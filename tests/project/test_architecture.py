"""The floors of the house, and what no room may have."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import netloop

PACKAGE = Path(netloop.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

FLOORS = [
    ["enums", "diagnostics", "atomic_write", "removed_names"],
    ["types", "checked_attributes"],
    ["dims"],
    ["graph", "plugins"],
    ["layers"],
    ["marking"],
    ["network"],
    ["nest", "call_inputs", "values"],
    ["check", "formulas"],
    ["formats", "passes"],
    ["onnx_graph"],
    ["reference", "lower", "onnx", "openvino", "wts", "plan"],
    ["host"],
    ["execution"],
    ["api"],
    ["cli", "demo", "tensorrt", "__init__", "__main__"],
]
"""Rooms by floor, from the ground up. A room is a file or a folder of netloop, and imports from lower floors alone;
only those of the top floor, which are the ways in, may import each other.
"""
FLOOR_OF = {name: floor for floor, names in enumerate(FLOORS) for name in names}
TOP = len(FLOORS) - 1

INSIDE_FUNCTIONS: set[str] = set()
"""Modules that may be imported inside a function."""

MOST_LINES_OF_A_FILE = 500
MOST_LINES_OF_A_FUNCTION = 60

each_module = pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
Function = ast.FunctionDef | ast.AsyncFunctionDef
Import = ast.Import | ast.ImportFrom


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


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
    """The imports below a node that take place when the program runs."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Import):
            yield child
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from (found for other in child.orelse for found in imports(path, other))
        else:
            yield from imports(path, child)


def is_room(name: str) -> bool:
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()


def may_import(here: str, there: str) -> bool:
    below = FLOOR_OF[there] < FLOOR_OF[here]
    return below or here == there or FLOOR_OF[here] == FLOOR_OF[there] == TOP


def rooms_imported(path: Path) -> set[str]:
    rooms: set[str] = set()
    for node in imports(path, parse(path)):
        names = [name.split(".") for name in imported(path, node)]
        inside = [name for name in names if name[0] == "netloop"]
        named = {name[1] for name in inside if len(name) > 1 and is_room(name[1])}
        rooms |= named or ({"__init__"} if inside else set())
    return rooms


def functions(tree: ast.Module) -> list[Function]:
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


@each_module
def test_every_room_has_a_floor(path):
    assert room(path) in FLOOR_OF


@each_module
def test_imports_point_down(path):
    here = room(path)

    assert [there for there in sorted(rooms_imported(path)) if not may_import(here, there)] == []


@each_module
def test_nothing_is_imported_inside_a_function(path):
    found = {
        name for function in functions(parse(path)) for node in imports(path, function) for name in imported(path, node)
    }

    assert found <= INSIDE_FUNCTIONS


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
