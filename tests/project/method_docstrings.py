"""The docstrings of the ``add_`` methods, made from those of the classes of their layers.

An editor shows the docstring of the method where a network is built, and the reader of a reference that of the class.
The first paragraph of a method is its own; what follows is that of the class, with the attributes that are arguments.

``python -m tests.project.method_docstrings`` writes the docstrings into the files.
"""

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

LAYERS = Path(__file__).parents[2] / "netloop" / "model" / "layers"
WIDTH = 120
INDENT = "    "
LITERAL = re.compile(r"^(\s|=|[A-Z]\w+:\n)|::$", re.MULTILINE)
"""What only paragraphs have whose lines are to stay: tables, indented lines and sections."""
BRACKETS = re.compile(r"\[[^]]*\]")
BASE = {"loop", "metadata"}
"""Attributes that a method does not leave to the user."""
RENAMED = {
    "causal": "causal_kind",
    "kernel_shape": "kernel_size_nd",
    "output_type": "to_type",
    "reduce_op": "reduce_operation",
    "window_size": "window_size_nd",
}
"""The attributes of arguments that have another name, where the call of the class does not show it."""
SECTION = re.compile(r"^([A-Z][a-z]+):$", re.MULTILINE)
ENTRY = re.compile(r"^(\w+(?:, \w+)*): (.*(?:\n +.*)*)", re.MULTILINE)
OF_ANOTHER_CLASS = {"IAttention": "IAttentionOutputLayer"}
"""The classes that say what a layer computes, of layers that are several objects."""
BY_HAND = {"add_plugin", "add_plugin_v2", "add_plugin_v3"}
"""The methods of plugins, which are not documented by a class of layers."""


class Docstring(NamedTuple):
    """A docstring in parts.

    Attributes:
        summary: its first paragraph.
        body: the paragraphs before the first section.
        sections: the text of each section, without indentation.
    """

    summary: str
    body: str
    sections: Mapping[str, str]

    @classmethod
    def of(cls, node: ast.ClassDef | ast.FunctionDef) -> "Docstring":
        """The docstring of a class or function."""
        text, *rest = SECTION.split(ast.get_docstring(node) or "")
        summary, _, body = text.strip().partition("\n\n")
        sections = {title: textwrap.dedent(part).strip() for title, part in zip(rest[::2], rest[1::2], strict=True)}
        return cls(" ".join(summary.split()), body.strip(), sections)

    def entries(self, section: str) -> dict[str, str]:
        """The text of each name in a section."""
        found = ENTRY.findall(self.sections.get(section, ""))
        return {name: " ".join(text.split()) for names, text in found for name in names.split(", ")}


class Method(NamedTuple):
    """An ``add_`` method in a file.

    Attributes:
        node: its definition.
        layer: the class of the layer that it adds.
    """

    node: ast.FunctionDef
    layer: ast.ClassDef

    def docstring(self) -> str:
        """The docstring that the method should have."""
        own, of_class = Docstring.of(self.node), Docstring.of(self.layer)
        attributes, by_argument = of_class.entries("Attributes"), self._attribute_by_argument(of_class)
        arguments = [
            f"{name}: {attributes[by_argument[name]] if name in by_argument else self._input(name)}"
            for name in self._arguments
        ]
        others = [f"``{name}``" for name in attributes if name not in {*by_argument.values(), *BASE}]
        further = f"Further attributes of the layer, which have defaults: {', '.join(others)}." if others else ""
        parts = [own.summary, of_class.body, _section("Args", arguments), further]
        parts += [_section("Raises", [text]) for text in [own.sections.get("Raises", "")] if text]
        return "\n\n".join(map(_wrapped, filter(None, parts)))

    @property
    def _arguments(self) -> dict[str, str]:
        """The arguments and their annotations."""
        return {
            argument.arg: ast.unparse(argument.annotation) for argument in self.node.args.args if argument.annotation
        }

    def _input(self, name: str) -> str:
        tensors = [argument for argument, annotation in self._arguments.items() if "ITensor" in annotation]
        assert name in tensors, f"the class of {self.node.name} documents no attribute for {name}"
        optional = ", or None" if "None" in self._arguments[name] else ""
        if "Sequence" in self._arguments[name]:
            return "the inputs, in order."
        return f"the input{optional}." if len(tensors) == 1 else f"input {tensors.index(name)}{optional}."

    def _attribute_by_argument(self, of_class: Docstring) -> dict[str, str]:
        """The attribute that says what an argument is, by the name of the argument."""
        known = of_class.entries("Attributes")
        calls = [node for node in ast.walk(self.node) if isinstance(node, ast.Call)]
        of_layer = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == self.layer.name]
        result = {name: name for name in self._arguments if name in known}
        result |= {
            name: attribute for name, attribute in RENAMED.items() if name in self._arguments and attribute in known
        }
        for keyword in (keyword for call in of_layer for keyword in call.keywords if keyword.arg in known):
            names = {node.id for node in ast.walk(keyword.value) if isinstance(node, ast.Name)}
            result |= {name: str(keyword.arg) for name in self._arguments if name in names and name not in result}
        return {name: attribute for name, attribute in result.items() if "ITensor" not in self._arguments[name]}


def _section(title: str, entries: Iterable[str]) -> str:
    lines = (textwrap.fill(entry, WIDTH - 12, subsequent_indent=INDENT) for entry in entries)
    return f"{title}:\n" + textwrap.indent("\n".join(lines), INDENT)


def _wrapped(part: str) -> str:
    """The paragraphs of a text in lines of the width of a method's docstring."""
    return "\n\n".join(text if LITERAL.search(text) else _filled(text) for text in part.split("\n\n"))


def _filled(paragraph: str) -> str:
    """A paragraph in lines that end in no index of a formula, of which the first has room for quotation marks."""
    joined = BRACKETS.sub(lambda match: match[0].replace(" ", "\0"), paragraph)
    return textwrap.fill(joined, WIDTH - 8, initial_indent="   ").removeprefix("   ").replace("\0", " ")


def methods(source: ast.Module, classes: Mapping[str, ast.ClassDef]) -> Iterator[Method]:
    """The methods of a file that add layers."""
    for cls in (node for node in source.body if isinstance(node, ast.ClassDef)):
        for node in cls.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("add_") and node.name not in BY_HAND:
                layer = ast.unparse(node.returns) if node.returns else ""
                yield Method(node, classes[OF_ANOTHER_CLASS.get(layer, layer)])


def documented(text: str, classes: Mapping[str, ast.ClassDef]) -> str:
    """The text of a file with the docstrings that its methods should have."""
    lines = text.splitlines()
    for method in sorted(methods(ast.parse(text), classes), key=lambda method: method.node.lineno, reverse=True):
        before = method.node.body[0]
        docstring = textwrap.indent(f'"""{method.docstring()}\n"""', 2 * INDENT, lambda line: bool(line.strip()))
        lines[before.lineno - 1 : before.end_lineno] = docstring.splitlines()
    return "\n".join(lines) + "\n"


def files() -> dict[Path, str]:
    """The files of layers, with the texts that they should have."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(LAYERS.glob("*.py"))}
    nodes = (node for text in texts.values() for node in ast.parse(text).body)
    classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
    return {path: documented(text, classes) for path, text in texts.items()}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
