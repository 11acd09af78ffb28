"""A parser of untrusted XML into a tree of elements.

The document is read in pieces, and refused as soon as one of its bounds is passed, so that the tree never takes more
than a few times the memory of the document. One with a DOCTYPE is refused as soon as the parser reaches it: only a
DOCTYPE can define entities, which could expand without bounds or name other files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NoReturn
from xml.parsers import expat

from netloop.formats.shared.file_kinds import advice_on
from netloop.values.diagnostics import Finding, ModelError, quoted, reason

DEEPEST = 256
"""The deepest nesting of elements."""
MOST_ELEMENTS = 1 << 21
MOST_ATTRIBUTES = 1000
"""The most attributes of an element."""
LONGEST_TAG = 1 << 20
"""The longest tag, with its attributes, and the longest comment, in bytes; about, as the parser reads in pieces."""
LONGEST_TEXT = 1 << 10
"""The longest text of an element, in characters; only numbers are ever read from one."""
LARGEST_DOCUMENT = 1 << 29
"""The largest document, in bytes, without weights, which are in a file of their own."""

ENCODINGS = {"utf-8", "us-ascii", "ascii"}
UTF_16 = b"\xff\xfe", b"\xfe\xff"
"""The first bytes of a document in UTF-16."""
PIECE = 1 << 16


SAVE_AGAIN = "save the model again, with openvino.save_model"
XML = (b"<?xml", b"<net")
"""How documents begin."""


class Element:
    """An element.

    Attributes:
        tag: its name.
        line: the line of its start tag, from 1.
        children: its child elements.
        text: its text, outside of the children.
    """

    # A list for each element without children, and a dict for each one's attributes, take most of the memory of a tree.
    __slots__ = ("_attributes", "children", "line", "tag", "text")

    def __init__(self, tag: str, attributes: Sequence[str], line: int) -> None:
        self.tag = tag
        self._attributes = tuple(attributes)
        self.line = line
        self.children: list[Element] | tuple[()] = ()
        self.text = ""

    def add(self, child: Element) -> None:
        """Add a child."""
        if self.children:
            self.children.append(child)
        else:
            self.children = [child]

    @property
    def attributes(self) -> Mapping[str, str]:
        """Its attributes."""
        return dict(zip(self._attributes[::2], self._attributes[1::2], strict=True))

    def all(self, *tags: str) -> Iterator[Element]:
        """The children with one of some names."""
        return (element for element in self.children if element.tag in tags)

    def first(self, *tags: str) -> Element | None:
        """The first child with one of some names; None if there is none."""
        return next(self.all(*tags), None)


class _TreeBuilder:
    """Builds the tree of the elements of some names, without those inside of others, while expat reads the document."""

    def __init__(self, name: str, kept: Collection[str]) -> None:
        self.root: Element | None = None
        self._name = name
        self._kept = kept
        self._open: list[Element] = []
        self._left_out = 0
        self._count = 0
        # The encoding is given, so that no codec is looked up by a name from the document.
        self._parser = expat.ParserCreate("utf-8")
        self._parser.buffer_text = self._parser.ordered_attributes = True
        self._parser.XmlDeclHandler = self._declaration
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = self._doctype

    def read(self, data: bytes) -> Element:
        if data.startswith(UTF_16):
            self._refuse("the document is in UTF-16, but must be in UTF-8")
        view = memoryview(data)
        try:
            for start in range(0, len(data), PIECE):
                end = min(start + PIECE, len(data))
                self._parser.Parse(view[start:end], False)
                if end - self._parser.CurrentByteIndex > LONGEST_TAG:
                    self._refuse(f"the document has a tag or a comment of more than {LONGEST_TAG} bytes")
            self._parser.Parse(b"", True)
        except (expat.ExpatError, ValueError) as error:
            fix = SAVE_AGAIN if data.startswith(XML) else advice_on(data)
            raise ModelError(self._finding(f"the document is not well-formed XML: {error}", fix)) from error
        assert self.root is not None
        return self.root

    def _finding(self, what: str, fix: str = SAVE_AGAIN) -> Finding:
        return Finding("NL751", what, f"{self._name}:{self._parser.CurrentLineNumber}", reason("NL751"), fix)

    def _refuse(self, what: str) -> NoReturn:
        raise ModelError(self._finding(what))

    def _declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.lower() not in ENCODINGS:
            self._refuse(f"the document is in {quoted(encoding)}, but must be in UTF-8")

    def _start(self, tag: str, attributes: Sequence[str]) -> None:
        self._count += 1
        if len(self._open) + self._left_out >= DEEPEST:
            self._refuse(f"elements are nested more than {DEEPEST} deep")
        if self._count > MOST_ELEMENTS:
            self._refuse(f"the document has more than {MOST_ELEMENTS} elements")
        if len(attributes) > 2 * MOST_ATTRIBUTES:
            self._refuse(f"<{tag}> has {len(attributes) // 2} attributes, and at most {MOST_ATTRIBUTES} are allowed")
        if self._left_out or (self._open and tag not in self._kept):
            self._left_out += 1
            return
        element = Element(tag, attributes, self._parser.CurrentLineNumber)
        if self._open:
            self._open[-1].add(element)
        else:
            self.root = element
        self._open.append(element)

    def _end(self, tag: str) -> None:
        if self._left_out:
            self._left_out -= 1
        else:
            self._open.pop()

    def _characters(self, text: str) -> None:
        if not self._left_out and not text.isspace():
            element = self._open[-1]
            element.text += text
            if len(element.text) > LONGEST_TEXT:
                self._refuse(f"the text of <{element.tag}> has more than {LONGEST_TEXT} characters")

    def _doctype(self, *declared: object) -> None:
        self._refuse("the document has a DOCTYPE")


def parse(data: bytes, name: str, kept: Collection[str]) -> Element:
    """Parse a document, called ``name`` in messages; return its root, with the elements of the names ``kept`` in it.

    Raises:
        ModelError: it is not well-formed XML in UTF-8, has a DOCTYPE, or passes a bound.
    """
    if len(data) > LARGEST_DOCUMENT:
        raise ModelError(Finding("NL751", f"the document has {len(data)} bytes", name, reason("NL751"), SAVE_AGAIN))
    return _TreeBuilder(name, kept).read(data)
