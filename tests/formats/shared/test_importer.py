"""The importer skeleton, with a format of its own: nodes as Python objects."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

import netloop
from netloop.formats.shared import Unimported
from netloop.formats.shared.importer import ANY_NUMBER, ModelImporter, all_imported, arity, choose
from netloop.values.diagnostics import LayerError, ModelError, require


@dataclass
class ToyNode:
    name: str
    function: object
    inputs: tuple = ()
    outputs: int = 1

    @property
    def operator(self):
        return f"{self.function.__name__}-1"

    @property
    def description(self):
        return f"node {self.name!r}"


class ToyImporter(ModelImporter):
    """Adds nodes that read each other by name; the last one is the output."""

    FORMAT, INVALID_MODEL, INVALID_GRAPH = "Toy", "NL741", "NL745"

    def __init__(self, *nodes):
        self.network = netloop.INetworkDefinition()
        super().__init__("toy", self.network)
        self._nodes = nodes

    def _add_model(self):
        values = {"x": self.network.add_input("x", netloop.float32, (2,))}
        for node in self._nodes:
            self._count_node()
            values[node.name] = self._import_node(node, node.outputs, partial(self._outputs, node, values))[0]
        if not isinstance(values[node.name], Unimported):
            self._mark_output(values[node.name], "y", node.name)

    def _outputs(self, node, values):
        return self._call(node, node.outputs, node.function, self._make, all_imported([values[e] for e in node.inputs]))


def add(make, a, b):
    return make.add(a, b)


def fail(make, a):
    require(False, "this node fails")


def findings(*nodes):
    with pytest.raises(ModelError) as caught:
        ToyImporter(*nodes).add()
    return [(finding.code, finding.what, finding.where) for finding in caught.value.findings]


def test_nodes_become_layers_with_names_and_metadata():
    importer = ToyImporter(ToyNode("twice", add, ("x", "x")), ToyNode("thrice", add, ("twice", "x")))
    importer.add()

    assert [(layer.name, layer.metadata) for layer in importer.network] == [
        ("twice", "[Toy Layer: twice]"), ("thrice", "[Toy Layer: thrice]"),
    ]  # fmt: skip
    assert netloop.evaluate(importer.network, {"x": np.float32([1, 2])})["y"].tolist() == [3, 6]


def test_layers_that_no_output_needs_are_removed():
    importer = ToyImporter(ToyNode("unused", add, ("x", "x")), ToyNode("used", add, ("x", "x")))
    importer.add()

    assert [layer.name for layer in importer.network] == ["used"]


def test_independent_errors_are_reported_and_their_readers_skipped():
    broken = ToyNode("a", fail, ("x",)), ToyNode("b", add, ("a", "a")), ToyNode("c", fail, ("x",))

    assert findings(*broken) == [
        ("NL401", "this node fails", "toy, node 'a'"),
        ("NL401", "this node fails", "toy, node 'c'"),
    ]


@pytest.mark.parametrize(
    ("node", "what"),
    [
        (ToyNode("a", add, ("x",)), "the node has 1 inputs, and add-1 takes 2"),
        (ToyNode("a", add, ("x", "x", "x")), "the node has 3 inputs, and add-1 takes 2"),
        (ToyNode("a", add, ("x", "x"), outputs=2), "the node has 2 outputs, and add-1 has 1"),
    ],
)
def test_numbers_of_inputs_and_outputs_are_checked(node, what):
    assert findings(node)[0][1] == what


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (lambda call: None, (0, 0)),
        (lambda call, a, b=None: None, (1, 2)),
        (lambda call, a, *others: None, (1, ANY_NUMBER)),
    ],
)
def test_arity_follows_from_the_arguments(function, wanted):
    assert arity(function) == wanted


def test_choice_names_a_similar_word():
    assert choose("mode", "linear", {"linear": 1, "cubic": 2}) == 1
    with pytest.raises(LayerError, match="mode is 'linera', but must be one of linear, cubic"):
        choose("mode", "linera", {"linear": 1, "cubic": 2})
