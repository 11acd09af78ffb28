"""MkDocs hooks for this repository: ``mkdocs.yml`` names this file.

- Links of ``docs/`` to files outside it, which work on GitHub, lead to the repository.
- The API reference is made from the public names of ``netloop``, so that none is forgotten.
- An entry of the navigation that ends in ``/`` stands for the pages of that folder.
"""

import enum
import inspect
import logging
import posixpath
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import netloop

ROOT = Path(__file__).parent.parent
BRANCH = "main"
LINK_OUT = re.compile(r"\]\((\.\./[^)\s#]*)(#[^)\s]*)?\)")
# a warning of a logger of MkDocs fails a strict build
log = logging.getLogger("mkdocs.hooks.site")


class Group(NamedTuple):
    """A page of the API reference.

    Attributes:
        file: the name of the page in ``api/``.
        title: its heading.
        has: whether a public name belongs to it; the first group that takes a name has it.
    """

    file: str
    title: str
    has: Callable[[str, Any], bool]


WORK = {
    "Batches",
    "check",
    "explain",
    "evaluate",
    "trace",
    "report",
    "report_difference",
    "LazySequence",
    "Trace",
    "compile",
    "compare",
    "to_jax",
}
RESULTS = {"Comparison", "Difference", "Finding", "Severity"}
NETWORK = {"Builder", "INetworkDefinition", "ITensor", "Weights", "Permutation", "volume", "nptype"}
LENGTHS = {"Dims", "Dims2", "Dims3", "Dims4", "DimsHW"}
CONTROL = {"ILoop", "IIfConditional", "IAttention"}

CONTRACT = {"infer", "evaluate", "lower", "formula", "element", "beyond_tensorrt"}
"""What each kind of layer defines for netloop, and no script calls."""
ROLE = re.compile(r":(?:attr|class|func|meth|mod):(?=<code>)")
"""What Sphinx reads before a name in a docstring."""


def _is_plugin(name: str, value: Any) -> bool:
    return "plugin" in f"{value.__module__}.{name}".lower()


GROUPS = (
    Group("functions", "Checking, evaluating and compiling", lambda name, _: name in WORK | RESULTS),
    Group("errors", "Errors", lambda _, value: _is_class(value, Exception)),
    Group("network", "Networks", lambda name, _: name in NETWORK or name in LENGTHS),
    Group("layers", "Layers", lambda name, value: name in CONTROL or _is_class(value, netloop.ILayer)),
    Group("plugins", "Plugins", _is_plugin),
    Group("enums", "Enumerations", lambda _, value: _is_class(value, enum.Enum)),
    Group("runtime", "Building and running as with TensorRT", lambda *_: True),
)
MODULES = {
    "formats": ("File formats", ("onnx", "openvino", "stablehlo", "deploy", "plan", "script", "safetensors", "wts")),
    "tools": ("Services and tools", ("serve", "peers", "sandbox", "compat")),
}
"""The modules of netloop that have public names of their own: the title of each page, and the modules on it."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make anchors as GitHub does, for which the links in ``docs/`` are written, and list folders in the navigation."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = _slug
    config.nav = _listed(config.nav, Path(config.docs_dir))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the API reference."""
    for name, text in _api_pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links out of ``docs/`` to the repository."""
    folder = posixpath.join("docs", posixpath.dirname(page.file.src_uri))

    def led(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[1]))
        if target.startswith("docs/"):
            return link[0]
        if not (ROOT / target).exists():
            log.warning("%s links to %s, which is not there", page.file.src_uri, link[1])
        kind = "tree" if (ROOT / target).is_dir() else "blob"
        return f"]({config.repo_url}/{kind}/{BRANCH}/{target}{link[2] or ''})"

    return LINK_OUT.sub(led, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leave out what only Sphinx reads."""
    return ROLE.sub("", html)


def _slug(heading: str, separator: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


def _listed(nav: Any, docs: Path) -> Any:
    """A navigation with the pages of its folders listed."""
    if isinstance(nav, list):
        return [_listed(each, docs) for each in nav]
    if isinstance(nav, dict):
        return {title: _listed(each, docs) for title, each in nav.items()}
    if isinstance(nav, str) and nav.endswith("/"):
        pages = sorted(page.relative_to(docs).as_posix() for page in (docs / nav).glob("*.md"))
        # the overview of a folder comes first
        return _api_names() if nav == "api/" else sorted(pages, key=lambda page: not page.endswith("README.md"))
    return nav


def _api_names() -> list[str]:
    """The pages of the API reference, in order."""
    return ["api/index.md", *(f"api/{each.file}.md" for each in GROUPS), *(f"api/{file}.md" for file in MODULES)]


def _api_pages() -> dict[str, str]:
    """The API reference: an overview, a page for each group, and those of the modules with names of their own."""
    members: dict[str, list[str]] = {each.file: [] for each in GROUPS}
    for name, value in _public(netloop).items():
        group = next(each for each in GROUPS if each.has(name, value))
        members[group.file].append(name)

    pages = {"api/index.md": _overview(members)}
    for each in GROUPS:
        lines = [f"# {each.title}", *(_entry("netloop", name) for name in members[each.file])]
        pages[f"api/{each.file}.md"] = "\n\n".join(lines + ([_element_types()] if each.file == "enums" else []))
    shown = {name for _, modules in MODULES.values() for name in modules}
    for name in dir(netloop):
        if isinstance(getattr(netloop, name), ModuleType) and name not in {*shown, "tensorrt"}:
            log.warning("netloop.%s has public names, and no page in the API reference", name)
    for file, (title, modules) in MODULES.items():
        pages[f"api/{file}.md"] = "\n\n".join([f"# {title}", *map(_module, modules)])
    return pages


def _overview(members: dict[str, list[str]]) -> str:
    """All public names with the first sentence of their documentation."""
    parts = ["# API reference", "The public names of `netloop`, which scripts import as `trt`."]
    for group in GROUPS:
        rows = [f"| [`{name}`][{_path('netloop', name)}] | {_first_sentence(name)} |" for name in members[group.file]]
        parts += [f"## {group.title}", "\n".join(["| name | |", "|---|---|", *rows])]
    for title, modules in MODULES.values():
        parts += [f"## {title}", "\n".join(f"- [`netloop.{name}`][netloop.{name}]" for name in modules)]
    return "\n\n".join(parts) + "\n"


def _public(module: ModuleType) -> dict[str, Any]:
    """The classes and functions that a module shows, by name; one that has two names is there once."""
    names = (name for name in dir(module) if name in getattr(module, "__all__", [name]))
    values = {name: getattr(module, name) for name in names if not name.startswith("_")}
    shown = {name: value for name, value in values.items() if inspect.isclass(value) or inspect.isfunction(value)}
    own = {name: value for name, value in shown.items() if value.__module__.startswith("netloop.")}
    return dict(sorted(own.items(), key=lambda item: item[0].lower()))


def _module(name: str) -> str:
    """The functions and classes of a module."""
    module = import_module(f"netloop.{name}")
    head = f"## `{module.__name__}` {{ #{module.__name__} }}\n\n{(module.__doc__ or '').strip()}"
    return "\n\n".join([head, *(_entry(module.__name__, name, level=3) for name in _public(module))])


def _entry(module: str, name: str, level: int = 2) -> str:
    """What has mkdocstrings write the documentation of a name."""
    value = getattr(import_module(module), name)
    options = {"heading_level": str(level)}
    if _is_class(value, netloop.ILayer) and value is not netloop.ILayer:
        options["members"] = _flow(_own(value))
    elif inspect.isclass(value) and (inherited := _inherited(value)):
        options["inherited_members"] = _flow(inherited)
    lines = (f"      {option}: {text}" for option, text in options.items())
    return "\n".join([f"::: {_path(module, name)}", "    options:", *lines])


def _flow(names: list[str]) -> str:
    return f"[{', '.join(names)}]"


def _path(module: str, name: str) -> str:
    """Where mkdocstrings, which reads sources and runs none, finds a public name."""
    shown = import_module(module)
    is_imported = name not in getattr(shown, "_ON_DEMAND", ())
    return f"{module if is_imported else getattr(shown, name).__module__}.{name}"


def _own(layer: type) -> list[str]:
    """The members that a kind of layer adds to those of all layers, which are documented with ``ILayer``."""
    names = (name for name in vars(layer) if not name.startswith("_") and name not in CONTRACT)
    return [name for name in names if not hasattr(netloop.ILayer, name)]


def _inherited(cls: type) -> list[str]:
    """The members of a class that come from classes of netloop without a page, such as the ``add_`` methods."""
    public = [base for base in cls.__mro__[1:] if getattr(netloop, base.__name__, None) is base]
    own = [base for base in cls.__mro__[1:] if base.__module__.startswith("netloop") and base not in public]
    hidden = [base for base in own if not any(issubclass(each, base) for each in public)]
    return sorted({name for base in hidden for name in vars(base) if not name.startswith("_") and not name.isupper()})


def _element_types() -> str:
    """The short names of the element types."""
    short = ((name, value) for name in dir(netloop) if isinstance(value := getattr(netloop, name), netloop.DataType))
    rows = [f"| `{name}` | `DataType.{value.name}` |" for name, value in short]
    return "\n".join(["## Element types", "", "| short name | member |", "|---|---|", *rows, ""])


def _first_sentence(name: str) -> str:
    """The first paragraph of the documentation of a public name, as far as its first full stop."""
    paragraph = (inspect.getdoc(getattr(netloop, name)) or "").partition("\n\n")[0].replace("\n", " ")
    sentence = re.split(r"(?<=\.) (?=[A-Z])", paragraph)[0]
    return re.sub(r":\w+:`([^`]+)`", r"`\1`", sentence).replace("``", "`").replace("|", r"\|")


def _is_class(value: Any, base: type) -> bool:
    return inspect.isclass(value) and issubclass(value, base)
