"""The pictures of networks on the site."""

import sys
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import pytest

import netloop as trt
from samples.conditional_in_loop import build as collatz
from samples.lstm import build as lstm
from tests.support.networks import nested

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def picture():
    """The class of pictures, which is a hook of the site and no part of the package."""
    sys.path.insert(0, str(ROOT / ".ci"))
    yield import_module("thumbnails").Picture
    sys.path.remove(str(ROOT / ".ci"))


@pytest.mark.parametrize("build", [collatz, lstm, nested])
def test_layers_and_boxes_do_not_overlap(picture, build):
    drawn = picture(build())
    by_box = {}
    for number, place in drawn.places.items():
        by_box.setdefault(drawn.box_of(number), []).append(place)

    assert len(drawn.places) > 5
    for places in by_box.values():
        for at, one in enumerate(places):
            for other in places[:at]:
                is_aside = abs(one.x - other.x) >= (one.width + other.width) / 2
                assert is_aside or abs(one.y - other.y) >= (one.height + other.height) / 2


@pytest.mark.parametrize("build", [collatz, lstm, nested])
def test_file_is_xml_with_a_rectangle_for_each(picture, build):
    drawn = picture(build())
    root = ElementTree.fromstring(drawn.svg())

    tags = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert tags.count("rect") == len(drawn.places)
    assert tags.count("path") == sum(map(len, drawn.lines.values()))


def test_hostile_name_is_text(picture, network):
    x = network.add_input("<script>&", trt.float32, ())
    network.mark_output(network.add_identity(x).get_output(0))

    assert "<script>" not in picture(network).svg()
    ElementTree.fromstring(picture(network).svg())
