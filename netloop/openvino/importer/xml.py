"""A parser of untrusted XML into a tree of elements.

A document with a DOCTYPE is refused as soon as the parser reaches it: only a DOCTYPE can define entities, which could
expand without bounds or name other files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from netloop.diagnostics import Finding, ModelError, reason

DEEPEST = 256
"""The deepest nesting of elements."""
MOST_ELEMENTS = 1 << 22
LARGEST_DOCUMENT = 1 << 29
"""The largest document, in bytes, without weights, which are in a file of their own."""


@dataclass(eq=False, slots=True)
class Element:
    """An element.

    Attributes:
        tag: its name.
        attributes: its attributes.
        line: the line of its start tag, from 1.
        children: its child elements.
        text: its text, outside of the children.
    """

    tag: str
    attributes: Mapping[str, str]
    line: int
    children: list[Element] = field(default_factory=list["Element"])
    text: str = ""

    def all(self, *tags: str) -> Iterator[Element]:
        """The children with one of some names."""
        return (each for each in self.children if each.tag in tags)

    def first(self, *tags: str) -> Element | None:
        """The first child with one of some names; None if there is none."""
        return next(self.all(*tags), None)


class _TreeBuilder:
    """Builds the tree while expat reads the document."""

    def __init__(self, name: str) -> None:
        self.root: Element | None = None
        self._name = name
        self._open: list[Element] = []
        self._count = 0
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = self._doctype

    def read(self, data: bytes) -> Element:
        try:
            self._parser.Parse(data, True)
        except (expat.ExpatError, ValueError, LookupError) as error:
            raise ModelError(self._finding(f"the document is not well-formed XML: {error}")) from error
        assert self.root is not None
        return self.root

    def _finding(self, what: str) -> Finding:
        return Finding("NL751", what, f"{self._name}:{self._parser.CurrentLineNumber}", reason("NL751"))

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if len(self._open) >= DEEPEST:
            raise ModelError(self._finding(f"elements are nested more than {DEEPEST} deep"))
        if self._count > MOST_ELEMENTS:
            raise ModelError(self._finding(f"the document has more than {MOST_ELEMENTS} elements"))
        element = Element(tag, attributes, self._parser.CurrentLineNumber)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def _end(self, tag: str) -> None:
        self._open.pop()

    def _characters(self, text: str) -> None:
        if not text.isspace():
            self._open[-1].text += text

    def _doctype(self, *declared: object) -> None:
        raise ModelError(self._finding("the document has a DOCTYPE"))


def parse(data: bytes, name: str) -> Element:
    """Parse a document, called ``name`` in messages; return its root.

    Raises:
        ModelError: it is not well-formed XML, has a DOCTYPE, or is too large.
    """
    if len(data) > LARGEST_DOCUMENT:
        raise ModelError(Finding("NL751", f"the document has {len(data)} bytes", name, reason("NL751")))
    return _TreeBuilder(name).read(data)
