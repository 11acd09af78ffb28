"""The documentation: its examples run, its links have targets, and its rules exist."""

import contextlib
import doctest
import io
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import netloop
from netloop.model.check.rule import RULES
from netloop.model.layers import LayerMethods
from netloop.tools.cli import main
from tests.project import method_docstrings, methods
from tests.project.pages import DOCS, FENCE, PAGES, ROOT, Example, examples, name_of
from tests.project.test_surface import NAMES_ONLY, has_method, has_property
from tests.support.peers import openvino as openvino  # importing it forks, which JAX forbids once it runs

TENSORRT = "coming-from-tensorrt.md"
LINKED = [
    *(ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *(ROOT / "benchmarks" / name for name in ("README.md", "notes.md")),
    *PAGES,
]

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
CODE = re.compile(r"\bNL\d{3}\b")
PATH = re.compile(r"`((?:netloop|tests|samples|docs)/[\w./]*)`")
NAME_IN_FILE = re.compile(r"`(\w+)` in `(netloop/[\w./]+\.py)`")


each_page_with_examples = pytest.mark.parametrize(
    "path", [page for page in PAGES if "```python" in page.read_text(encoding="utf-8")], ids=name_of
)
each_linked_page = pytest.mark.parametrize("path", LINKED, ids=name_of)


def run(example: Example, page: str, names: dict[str, Any]) -> str:
    """What an example prints; the line numbers in its messages are those of the page, on a stack without callers."""
    printed = io.StringIO()
    code = compile("\n" * (example.line - 1) + example.source, page, "exec")
    with contextlib.redirect_stdout(printed), ThreadPoolExecutor(1) as thread:
        thread.submit(exec, code, names).result()
    return printed.getvalue()


@pytest.mark.slow
@each_page_with_examples
def test_examples_print_what_the_page_says(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where examples write files
    names: dict[str, Any] = {"__name__": path.stem}
    for example in examples(path.read_text(encoding="utf-8")):
        printed = run(example, name_of(path), names)

        if example.output is not None:
            same = doctest.OutputChecker().check_output(example.output, printed, doctest.ELLIPSIS)
            assert same, f"{name_of(path)}:{example.line} prints\n{printed}\nand the page says\n{example.output}"


@pytest.mark.slow
@pytest.mark.eight_devices
@pytest.mark.parametrize("page", ["laptop-to-cluster", "sharding"])
def test_examples_of_several_devices_run_on_eight(page, tmp_path, monkeypatch):
    test_examples_print_what_the_page_says(ROOT / "docs" / f"{page}.md", tmp_path, monkeypatch)


def prose(path: Path) -> str:
    """A page without its code blocks."""
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def anchors(path: Path) -> set[str]:
    """The anchors of the headings of a page."""
    headings = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(prose(path)))
    return {heading.replace(" ", "-") for heading in headings}


@each_linked_page
def test_links_lead_somewhere(path):
    for link in LINK.findall(prose(path)):
        if link.startswith(("https://", "mailto:")):
            continue
        target, _, anchor = link.partition("#")
        file = (path.parent / target).resolve() if target else path
        assert file.exists(), f"{name_of(path)} links to {link}"
        # a picture's says on which pages it is shown
        known = {"only-light", "only-dark"} if file.suffix == ".png" else anchors(file) if anchor else ()
        assert not anchor or anchor in known, f"{name_of(path)} links to {link}"


def test_pages_are_reached_from_the_index():
    index, decisions = ROOT / "docs" / "index.md", ROOT / "docs" / "decisions" / "README.md"
    linked = {(page.parent / link).resolve() for page in (index, decisions) for link in LINK.findall(prose(page))}

    assert [name_of(page) for page in DOCS if page not in {*linked, index}] == []


@pytest.fixture(scope="module")
def codes():
    """The codes of all errors in the sources."""
    sources = "".join(path.read_text(encoding="utf-8") for path in Path(netloop.__file__).parent.rglob("*.py"))
    return set(RULES) | set(CODE.findall(sources))


@each_linked_page
def test_rules_exist(path, codes):
    assert set(CODE.findall(path.read_text(encoding="utf-8"))) <= codes


@each_linked_page
def test_files_exist(path):
    assert [value for value in PATH.findall(path.read_text(encoding="utf-8")) if not (ROOT / value).exists()] == []


def test_architecture_names_what_is_in_the_files():
    named = NAME_IN_FILE.findall((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))

    assert named
    assert [name for name, file in named if not re.search(rf"(def|class) {name}\b", (ROOT / file).read_text())] == []


def test_architecture_names_every_room():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rooms = [path.stem for path in Path(netloop.__file__).parent.iterdir() if path.suffix == ".py" or path.is_dir()]

    assert [room for room in rooms if f"`{room}`" not in text and room != "__pycache__"] == []


def test_readme_shows_what_the_demo_prints(capsys):
    blocks = [block[2] for block in FENCE.finditer((ROOT / "README.md").read_text(encoding="utf-8"))]
    shown = next(block for block in blocks if block.startswith("model: "))

    assert main(["demo"]) == 0

    assert without_times(capsys.readouterr().out) == without_times(shown)


def without_times(text: str) -> str:
    return re.sub(r"\d+\.\d+", "...", text)


def test_page_of_layers_has_the_table_of_methods():
    assert methods.PAGE.read_text(encoding="utf-8") == methods.page(), "python -m tests.project.methods"


def test_methods_say_what_the_classes_of_layers_say():
    differing = [path.name for path, text in method_docstrings.files().items() if path.read_text("utf-8") != text]
    assert not differing, "python -m tests.project.method_docstrings"


def test_every_argument_of_a_method_is_documented():
    documented = LayerMethods.add_topk.__doc__ or ""

    assert "axes: the axis, as a bitmask with one bit." in documented
    assert "TensorRT supports k" in documented


def test_table_has_every_method_that_adds_something():
    there = {name for name in dir(netloop.INetworkDefinition) if methods.adds(netloop.INetworkDefinition, name)}

    assert set(re.findall(r"`(add_\w+)`", methods.table())) == there


def test_readme_calls_nothing_missing_that_is_there():
    _, _, missing = (ROOT / "README.md").read_text(encoding="utf-8").partition("## What is not there yet\n")
    names = re.findall(r"`(add_\w+)`", missing.partition("\n## ")[0])

    assert names
    assert not [name for name in names if methods.adds(netloop.INetworkDefinition, name)]


def section_of(page: str, heading: str) -> str:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return text.partition(f"## {heading}\n")[2].partition("\n## ")[0]


def test_page_for_users_of_tensorrt_names_what_has_only_a_name():
    rows = re.findall(r"^\| (`.*?) \|", section_of(TENSORRT, "What has only a name"), re.MULTILINE)

    assert {name for row in rows for name in re.findall(r"`(?:\w+\.)?(\w+)`", row)} == NAMES_ONLY | {
        *("add_plugin", "add_plugin_v2", "load_library", "deregister_library")
    }


def test_page_for_users_of_tensorrt_names_in_python_what_is_there():
    names = re.findall(r"`(\w+)\.(\w+)`", section_of(TENSORRT, "From C++"))
    classes = {name: getattr(netloop, name) for name, _ in names if name not in ("trt", "TripLimit")}

    assert len(classes) > 10
    assert [
        (name, member)
        for name, member in names
        if name in classes and not (has_method(classes[name], member) or has_property(classes[name], member))
    ] == []


def test_semantics_has_the_order_of_the_source():
    source = (ROOT / "netloop" / "model" / "layers" / "loop.py").read_text(encoding="utf-8")
    classes = re.findall(r"^class (I\w+)", source, re.MULTILINE)
    headings = " ".join(HEADING.findall(prose(ROOT / "docs" / "loops.md")))

    places = [headings.find(f"`{name}`") for name in classes if f"`{name}`" in headings]

    assert len(places) >= 5
    assert places == sorted(places)
