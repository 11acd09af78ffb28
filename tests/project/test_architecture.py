"""The wings of the package, and limits for every module. Each rule is one test, which lists all that break it."""

import ast
import graphlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import netloop
from tests.project.levels import PAGE, WINGS, page

PACKAGE = Path(netloop.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

WING_NAMES = [wing.name for wing in WINGS]
LEVEL_OF = {
    (wing.name, name): level for wing in WINGS for level, names in enumerate(wing.levels) for name in names.split()
}
FACE = len(WINGS)
"""The place of the public names, above all wings."""

CYCLES = [
    # A graph refers both ways: a tensor has a producer and a type table, a layer has tensors, and the table walks both.
    # ``layer_compat`` is a base class of layers, and ``layer_text`` their text.
    # Imports at run time go one way, from layer to infer and tensor.
    {f"netloop.model.graph.{name}" for name in ("infer", "layer", "layer_compat", "layer_text", "tensor")},
]
"""Modules that import each other, imports for annotations included, each with the reason."""

SHARED_CLASS_NAMES = {
    # a program, and the same with its sharding in the file of the sharded engine; in a package of CUDA's, its source
    "Program": ["compiler/execution/sharded_engine.py", "compiler/lower/program.py", "tools/compat/cuda_core.py"],
    # two packages of CUDA's have these names
    "Device": ["tools/compat/cuda_core.py", "tools/compat/pycuda_driver.py"],
    "Event": ["tools/compat/cuda_core.py", "tools/compat/pycuda_driver.py"],
    "Stream": ["tools/compat/cuda_core.py", "tools/compat/pycuda_driver.py"],
    # TensorRT's ``ILogger.Severity`` of a message, and that of a finding
    "Severity": ["api/logger.py", "values/diagnostics/finding.py"],
}
"""The files of the names that several classes have, each with the reason."""

OLDER = "tools/compat/versions/"
"""The folder of classes that have the names of TensorRT's once more, in the meaning of older versions."""

MOST_LINES_OF_A_FUNCTION = 60
LINES_OF_MOST_FUNCTIONS = 20
"""The length that 95 of 100 functions do not exceed."""
MOST_LINES_OF_A_FILE = 600
LINES_OF_MOST_FILES = 350
"""The length that 95 of 100 files do not exceed."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
Import = ast.Import | ast.ImportFrom


def dotted(path: Path) -> str:
    return ".".join(["netloop", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")


def shown(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """All nodes of a module."""
    return list(ast.walk(parse(path)))


def imported(path: Path, node: Import) -> list[str]:
    """The modules that an import names; for ``from a import b`` both ``a`` and ``a.b``."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    package = ["netloop", *path.relative_to(PACKAGE).parts[:-1]]
    base = package[: len(package) + 1 - node.level] if node.level else []
    source = ".".join([*base, *([node.module] if node.module else [])])
    return [source, *(f"{source}.{alias.name}" for alias in node.names)]


def imports(nodes: Iterable[ast.AST]) -> Iterator[Import]:
    """The imports among nodes, those under TYPE_CHECKING included: they too make a reader open the other file."""
    return (node for node in nodes if isinstance(node, Import))


def names_imported(path: Path) -> set[str]:
    """The modules of netloop that a module imports."""
    names = {name for node in imports(nodes_of(path)) for name in imported(path, node)}
    return {name for name in names if name in DOTTED}


DOTTED = {dotted(path) for path in MODULES}


def place_of(module: str) -> tuple[int, str]:
    """The place of the wing of a module, from the bottom up, and the part of the wing that the module belongs to."""
    _, *parts = module.split(".")
    if not parts or parts[0] not in WING_NAMES:
        return FACE, ""
    return WING_NAMES.index(parts[0]), parts[1] if len(parts) > 1 else ""


def points_down(here: str, there: str) -> bool:
    (wing, part), (other_wing, other_part) = place_of(here), place_of(there)
    if wing != other_wing:
        return other_wing < wing or (WING_NAMES[wing:] == ["tools"] and there == "netloop")  # as users import it
    name = WING_NAMES[wing] if wing < FACE else ""
    ordered = part != other_part and (name, part) in LEVEL_OF and (name, other_part) in LEVEL_OF
    return not ordered or LEVEL_OF[name, other_part] < LEVEL_OF[name, part]


def functions(path: Path) -> list[Function]:
    return [node for node in nodes_of(path) if isinstance(node, Function)]


def test_class_names_are_used_once():
    """Two classes of one name make a reader take one idea for the other, also if one of them is private."""
    classes = [
        (node.name.lstrip("_"), shown(path))
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, ast.ClassDef) and not shown(path).startswith(OLDER)
    ]
    places = {name: [path for other, path in classes if other == name] for name, _ in classes}

    assert {name: paths for name, paths in places.items() if len(paths) > 1} == SHARED_CLASS_NAMES


def test_every_part_of_a_wing_has_a_level():
    parts = {
        (path.relative_to(PACKAGE).parts[0], path.relative_to(PACKAGE).with_suffix("").parts[1])
        for path in MODULES
        if path.relative_to(PACKAGE).parts[0] in WING_NAMES
    }
    flat = {wing.name for wing in WINGS if not wing.levels}
    assert {part for part in parts if part[1] != "__init__" and part[0] not in flat} == {*LEVEL_OF}


def test_imports_point_down():
    arrows = [(dotted(path), name) for path in MODULES for name in sorted(names_imported(path))]

    assert [f"{here} imports {there}" for here, there in arrows if not points_down(here, there)] == []


def test_modules_import_no_one_that_imports_them():
    graph = {
        dotted(path): {
            name for name in names_imported(path) if name != dotted(path) and not dotted(path).startswith(f"{name}.")
        }
        for path in MODULES
        if path.name != "__init__.py"
    }
    for cycle in CYCLES:
        for module in cycle:
            graph[module] -= cycle

    graphlib.TopologicalSorter(graph).prepare()


def test_architecture_shows_the_wings():
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.project.levels"


def test_nothing_is_imported_inside_a_function():
    assert [
        f"{shown(path)}: {function.name}"
        for path in MODULES
        for function in functions(path)
        for _ in imports(ast.walk(function))
    ] == []


def test_nothing_is_unpickled():
    readers = {"pickle", "_pickle", "cloudpickle", "dill", "marshal", "shelve"}
    for path in MODULES:
        nodes = nodes_of(path)
        modules = {name.split(".")[0] for node in nodes if isinstance(node, Import) for name in imported(path, node)}
        options = [node.value for node in nodes if isinstance(node, ast.keyword) and node.arg == "allow_pickle"]

        assert not modules & readers, path
        assert all(isinstance(option, ast.Constant) and option.value is False for option in options), path


def test_no_text_becomes_code():
    calls = [(path, node.func) for path in MODULES for node in nodes_of(path) if isinstance(node, ast.Call)]
    named = {(shown(path), function.id) for path, function in calls if isinstance(function, ast.Name)}

    assert {call for call in named if call[1] in {"eval", "exec", "__import__"}} == set()


def test_every_module_has_a_docstring():
    assert [shown(path) for path in MODULES if not ast.get_docstring(parse(path))] == []


def test_files_are_short():
    lengths = {shown(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}

    assert {path: lines for path, lines in lengths.items() if lines > MOST_LINES_OF_A_FILE} == {}
    assert exceeded(lengths.values(), LINES_OF_MOST_FILES) <= 0.05


def lines_of(function: Function) -> int:
    """The length of a function, its docstring left out."""
    assert function.end_lineno is not None
    first = function.body[0]
    documented = ast.get_docstring(function) is not None and first.end_lineno is not None
    return function.end_lineno - function.lineno + 1 - (first.end_lineno - first.lineno + 1 if documented else 0)


def test_functions_are_short():
    lengths = {(shown(path), function.name): lines_of(function) for path in MODULES for function in functions(path)}

    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES_OF_A_FUNCTION} == {}
    assert exceeded(lengths.values(), LINES_OF_MOST_FUNCTIONS) <= 0.05


def exceeded(lengths, limit):
    """The share of lengths above a limit."""
    lengths = [*lengths]
    return sum(length > limit for length in lengths) / len(lengths)


ONE_CALLER = {
    "improve": "compiler/recipe.py",
    "of_platform": "compiler/recipe.py",
    "of_host": "compiler/recipe.py",
    "compile_lowered": "compiler/xla_compilation.py",
    "raised_recursion_limit": "compiler/xla_compilation.py",
    "compiler_options": "compiler/xla_compilation.py",
}
"""The functions that make programs, and the module that calls them for all engines."""


def test_programs_are_made_in_one_place():
    calls = [(shown(path), node.func) for path in MODULES for node in nodes_of(path) if isinstance(node, ast.Call)]
    callers = {name: {path for path, function in calls if ast.unparse(function) == name} for name in ONE_CALLER}

    assert callers == {name: {path} for name, path in ONE_CALLER.items()}
