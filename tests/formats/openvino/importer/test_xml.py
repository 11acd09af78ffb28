"""The reader of XML: memory stays in proportion to the document,
and each bound is refused where it is passed."""

import tracemalloc

import pytest

import netloop
from netloop import ModelError
from netloop.formats.openvino.importer import xml
from netloop.formats.openvino.importer.model import TAGS


def refused(data):
    with pytest.raises(ModelError) as caught:
        netloop.openvino.load(data)
    (finding,) = caught.value.findings
    assert finding.code == "NL751"
    return finding.what


def read(data):
    return xml.parse(data, "the model", TAGS)


def peak(data):
    """The most memory that reading a document takes, in multiples of its size."""
    tracemalloc.start()
    try:
        read(data)
        return tracemalloc.get_traced_memory()[1] / len(data)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "element", [b"<x/>", b"<rt_info><a>1</a></rt_info>", b"<dim/>", b'<port id="1"/>', b"<dim>3</dim>"]
)
def test_memory_is_a_small_multiple_of_the_document(element):
    assert peak(b"<net>" + element * 20_000 + b"</net>") < 30


def test_elements_that_no_reader_knows_are_not_kept():
    assert peak(b"<net>" + b"<x/>" * 100_000 + b"</net>") < 1
    assert not read(b"<net><x><layer/></x></net>").children


def test_long_text_is_refused():
    assert refused(b"<net><layers>" + b"a<x/>" * 2000 + b"</layers></net>") == (
        "the text of <layers> has more than 1024 characters"
    )


def test_text_around_children_is_joined():
    (dim,) = read(b"<port><dim>1<x>7</x>2&#51;</dim></port>").children

    assert dim.text == "123"


@pytest.mark.parametrize(
    "data",
    [
        b'<net a="' + b"x" * (3 << 20) + b'"/>',
        b"<net " + b" ".join(b'a%d=""' % number for number in range(400_000)) + b"/>",
        b"<net><!--" + b"x" * (3 << 20) + b"--></net>",
        b"<net>" + b"<" + b"n" * (3 << 20) + b"/></net>",
    ],
    ids=["value", "attributes", "comment", "name"],
)
def test_huge_tag_is_refused_before_it_is_read(data):
    assert refused(data) == "the document has a tag or a comment of more than 1048576 bytes"


def test_tag_of_more_attributes_than_any_layer_has_is_refused():
    data = b"<net " + b" ".join(b'a%d=""' % number for number in range(1001)) + b"/>"

    assert refused(data) == "<net> has 1001 attributes, and at most 1000 are allowed"


def test_too_many_elements_are_refused(monkeypatch):
    monkeypatch.setattr(xml, "MOST_ELEMENTS", 100)

    assert refused(b"<net>" + b"<x/>" * 100 + b"</net>") == "the document has more than 100 elements"


def test_nesting_of_elements_that_no_reader_knows_is_bounded_too():
    assert refused(b"<net>" + b"<x>" * 300) == "elements are nested more than 256 deep"


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1", "no-such", "rot13", "unicode_escape", "idna"])
def test_declared_encoding_other_than_utf_8_is_refused(encoding):
    data = f'<?xml version="1.0" encoding="{encoding}"?><net/>'.encode()

    assert refused(data) == f"the document is in {encoding!r}, but must be in UTF-8"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16"])
def test_utf_16_is_refused(encoding):
    mark = b"" if encoding == "utf-16" else "\ufeff".encode(encoding)

    assert refused(mark + "<net/>".encode(encoding)) == "the document is in UTF-16, but must be in UTF-8"


@pytest.mark.parametrize(
    "data", [b"<net>\0</net>", b'<net a="\0"/>', b"<net>&#0;</net>", b"<net>&#xd800;</net>", b"<\0net/>"]
)
def test_characters_that_xml_does_not_have_are_refused(data):
    assert refused(data).startswith("the document is not well-formed XML")


@pytest.mark.parametrize(
    "declaration", [b"", b"\xef\xbb\xbf", b'<?xml version="1.0"?>', b'<?xml version="1.0" encoding="UTF-8"?>']
)
def test_utf_8_is_read_in_each_way_to_declare_it(declaration):
    assert read(declaration + '<net name="é"/>'.encode()).attributes == {"name": "é"}
