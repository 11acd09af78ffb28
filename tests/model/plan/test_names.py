"""Names in plans: a name is text that UTF-8 can encode, wherever it stands."""

import numpy as np
import pytest

import netloop as trt
from netloop import plan
from tests.support.plan_forge import put_together, refused, small, taken_apart

HALF = "\ud800"
PLACES = [
    ("name",),
    ("inputs", 0, "name"),
    ("inputs", 0, "dimension_names", 0, 1),
    ("loops", 0, "name"),
    ("conditionals", 0, "name"),
    ("layers", 3, "name"),
    ("layers", 3, "metadata"),
    ("layers", 3, "kind"),
    ("layers", 3, "outputs", 0, "name"),
    ("arrays", 0, "dtype"),
    ("marks", "refittable", 0),
    ("marks", "names", 0, 1),
]
"""The paths of texts in the document of a plan."""


def forged(place, text):
    """A plan with a text at a path of its document."""
    document, files = taken_apart(plan.dumps(small()))
    constant = next(number for number, value in enumerate(document["layers"]) if value["kind"] == "IConstantLayer")
    document["marks"] = {"names": [[constant, "w"]], "refittable": ["w"]}
    document["layers"][3]["metadata"] = "m"
    holder = document
    for key in place[:-1]:
        holder = holder[key]
    assert isinstance(holder[place[-1]], str)
    holder[place[-1]] = text
    return put_together(document, files)


def message_of(data):
    """The text of the error that a plan raises; of its network's findings if it loads."""
    try:
        return "".join(map(str, trt.check(plan.loads(data))))
    except trt.FileFormatError as error:
        return str(error)


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_half_of_a_surrogate_pair_is_refused(place):
    found = refused(forged(place, HALF))

    assert found.code == "NL713"
    assert "'\\ud800'" in found.what


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_huge_text_makes_no_huge_message(place):
    data = forged(place, "\n" + "x" * 1_000_000)

    text = message_of(data)
    assert len(text) < 5000
    assert "\nx" not in text


def test_unknown_key_is_cut_and_escaped():
    document, files = taken_apart(plan.dumps(small()))
    document["x\nNL101: " + "y" * 1_000_000] = 0
    found = refused(put_together(document, files))

    assert len(str(found)) < 1000
    assert "\nNL101" not in str(found)


def test_file_of_a_script_may_have_any_name():
    document, files = taken_apart(plan.dumps(small()))
    document["files"][0] = "\udcff.py"

    network = plan.loads(put_together(document, files))
    assert plan.dumps(network) == put_together(document, files)
    str(network.layers[0].finding("NL101", "what")).encode()


NAMED = {
    "network": lambda network: setattr(network, "name", HALF),
    "input": lambda network: network.add_input(HALF, trt.float32, ()),
    "tensor": lambda network: setattr(network.inputs[0], "name", HALF),
    "axis": lambda network: network.inputs[0].set_dimension_name(0, HALF),
    "layer": lambda network: setattr(network.layers[0], "name", HALF),
    "metadata": lambda network: setattr(network.layers[0], "metadata", HALF),
    "loop": lambda network: setattr(network.loops[0], "name", HALF),
    "conditional": lambda network: setattr(network.conditionals[0], "name", HALF),
    "weights": lambda network: network.set_weights_name(network.layers[0].weights, HALF),
    "field of a plugin": lambda network: trt.PluginField(HALF, np.zeros(1, np.int32)),
}
"""The calls that set a name."""


@pytest.mark.parametrize("name", NAMED)
def test_name_that_no_file_can_hold_is_refused_where_it_is_set(name):
    network = small()

    with pytest.raises(ValueError, match="half of a surrogate pair"):
        NAMED[name](network)
    assert plan.loads(plan.dumps(network)).num_layers == len(network)


def test_names_in_every_script_survive():
    document, files = taken_apart(plan.dumps(small()))
    document["name"] = document["loops"][0]["name"] = "\U0001f600 é\0"

    loaded = plan.loads(plan.dumps(plan.loads(put_together(document, files))))
    assert loaded.name == loaded.loops[0].name == "\U0001f600 é\0"
