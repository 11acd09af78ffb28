"""The importer skeleton: the work on a model and its nodes that all formats share."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache
from inspect import Parameter, signature
from typing import Any, ClassVar, Protocol, TypeVar

from netloop.formats.shared.alternatives import Alternatives, Value
from netloop.formats.shared.assumptions import Assumptions
from netloop.formats.shared.group_names import GroupNames
from netloop.formats.shared.import_errors import ImportErrors, InputNotImported, Unimported
from netloop.formats.shared.pruning import keep_live
from netloop.model.formulas.formula_builder import FormulaBuilder
from netloop.model.graph import ILayer, ITensor
from netloop.model.graph.tensor import LONGEST_NAME
from netloop.model.layers.loop import ITripLimitLayer
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import ModelError, did_you_mean, quoted, require

DEEPEST = 32
"""The deepest nesting of graphs and functions in a model."""
MOST_NODES = 200_000
"""The most nodes that a model may expand to, those of functions and inner graphs counted wherever they are used."""
MOST_ENDS = 10_000
"""The most inputs of a model, and the most outputs: each is compared with all others."""
ANY_NUMBER = 1 << 20
"""More inputs than a node has: the arity of functions with variadic inputs."""

Maybe = ITensor | None
"""An input or output of a node; None for an input that is left out, and for an output that nothing reads."""
Outputs = ITensor | Sequence[Any]
"""The outputs of a node: one tensor, or a list of values with None for each one that the node does not use."""
Operator = Callable[..., Outputs]
"""The function of an operator: takes the call and a tensor for each input, None for one left out."""

Translate = Callable[[], Sequence[Value]]
"""Adds the layers of a node and returns its outputs."""

T = TypeVar("T")
H = TypeVar("H", bound=Hashable)


class ModelNode(Protocol):
    """A node of a model, whatever its format calls it.

    Attributes:
        name: its name, which its layers get too.
        operator: its operator and version in messages: ``Gather-8``.
        description: the node in messages: its name, its operator, and where it is.
    """

    @property
    def name(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def description(self) -> str: ...


class ModelImporter(ABC):
    """Adds a model, called ``name`` in messages, to a network.

    The outputs of a node that cannot be imported are ``Unimported``, and nodes that read those are skipped, so that
    all independent errors of a model are reported at once.
    """

    FORMAT: ClassVar[str]
    """The name of the format, part of the metadata of layers."""
    NODE: ClassVar[str] = "node"
    """The format's word for a node."""
    INVALID_MODEL: ClassVar[str]
    """The code of findings about a model as a whole."""
    INVALID_GRAPH: ClassVar[str]
    """The code of findings about its graph that no layer has a code for."""
    ADVICE: ClassVar[Mapping[str, str]] = {}
    """The fix of a finding that the owner of a model can apply, by its code."""
    DECIDE: ClassVar[str] = ""
    """How the owner of a model decides conditions that ranks depend on."""

    def __init__(self, name: str, network: INetworkDefinition) -> None:
        self._make = FormulaBuilder(network)
        self._errors = ImportErrors(name, self.INVALID_GRAPH, self.ADVICE)
        self._assumptions = Assumptions(self._make, self.DECIDE)
        self._has_alternatives = False
        self._count = 0
        self._groups = GroupNames()

    def add(self) -> None:
        """Add the layers, inputs and outputs of the model to the network.

        Raises:
            ModelError: the model cannot be imported; it has all errors.
        """
        before = len(self._make.network.layers)
        self._add_model()
        self._errors.raise_all()
        keep_live(self._make.network, before)
        self._groups.make_distinct(self._make.network)

    @abstractmethod
    def _add_model(self) -> None:
        """Add the inputs, the nodes and the outputs of the model."""

    def _check_ends(self, inputs: int, outputs: int) -> None:
        """Raise a ModelError for too many inputs or outputs."""
        if max(inputs, outputs) > MOST_ENDS:
            what = f"the model has {inputs} inputs and {outputs} outputs, and may have {MOST_ENDS} of each"
            raise ModelError(self._errors.finding(self.INVALID_MODEL, what))

    def _count_node(self) -> None:
        """Count a node of any graph; raise a ModelError for too many."""
        self._count += 1
        if self._count > MOST_NODES:
            what = f"the model expands to more than {MOST_NODES} {self.NODE}s"
            raise ModelError(self._errors.finding(self.INVALID_MODEL, what))

    def _import_node(
        self, node: ModelNode, count: int, translate: Callable[[], Sequence[T]]
    ) -> Sequence[T | Unimported]:
        """Return the outputs of a node, as ``translate`` gives them; ``count`` of Unimported if it raises an error."""
        network = self._make.network
        before, groups = len(network.layers), (len(network.loops), len(network.conditionals))
        outputs: Sequence[T | Unimported] = [Unimported()] * count
        with self._errors.collect(node.description, node):
            outputs = translate()
        self._name_layers(before, node.name, node.name)
        self._groups.end_node([*network.loops[groups[0] :], *network.conditionals[groups[1] :]], node.name)
        return outputs

    def _call(
        self, node: ModelNode, count: int, function: Operator, call: Any, inputs: Sequence[ITensor | None]
    ) -> Sequence[Any]:
        """Call the function of a node with ``count`` outputs; raise a LayerError if it takes other numbers of them."""
        least, most = arity(function)
        takes = str(least) if least == most else f"{least} or more" if len(inputs) < least else f"at most {most}"
        what = f"the {self.NODE} has {len(inputs)} inputs, and {node.operator} takes {takes}"
        require(least <= len(inputs) <= most, what)
        returned = function(call, *inputs)
        outputs = [returned] if isinstance(returned, ITensor) else [*returned]
        require(len(outputs) >= count, f"the {self.NODE} has {count} outputs, and {node.operator} has {len(outputs)}")
        for tensor in outputs:
            assert not isinstance(tensor, ITensor) or tensor.type  # reading the type checks the layer
        return outputs

    # ------------------------------------------------------------------ values of two ranks

    def _in_both(
        self, node: ModelNode, read: Alternatives, translate: Callable[[], Sequence[Value]]
    ) -> Sequence[Value]:
        """The outputs of a node that reads alternatives: those in both branches, merged where they can be.

        If the node is possible in one branch only, the network asserts that this one is taken.
        """
        condition, errors = read.split.condition, {True: self._errors.empty(), False: self._errors.empty()}
        values = {branch: self._in_branch(node, condition, branch, errors[branch], translate) for branch in errors}
        possible = {branch: outputs for branch, outputs in values.items() if outputs is not None}
        if len(possible) == 2:
            return [Alternatives(read.split, pair) for pair in zip(possible[True], possible[False], strict=True)]
        if not possible:
            self._errors.extend(errors[True])
            raise InputNotImported
        ((branch, outputs),) = possible.items()
        self._assumptions.require(condition, branch, errors[not branch].findings[0].what)
        return outputs

    def _in_branch(
        self, node: ModelNode, condition: ITensor, branch: bool, errors: ImportErrors, translate: Translate
    ) -> Sequence[Value] | None:
        """The outputs of a node in one branch; None, and the errors, if it is not possible there."""
        self._count_node()
        outputs, before, self._errors = None, self._errors, errors
        try:
            with self._assumptions.alternative(condition, branch), errors.collect(node.description, node):
                outputs = translate()
        finally:
            self._errors = before
        return None if errors.findings else outputs

    # ------------------------------------------------------------------ names

    def _name_layers(self, start: int, name: str, node: str) -> None:
        """Name the layers from number ``start`` on that have no metadata yet, which then names their node."""
        for layer in self._make.network.layers[start:]:
            if not layer.metadata:
                layer.name, layer.metadata = self._layer_name(layer, name), f"[{self.FORMAT} Layer: {node}]"

    def _layer_name(self, layer: ILayer, name: str) -> str:
        """The name of a layer of a node with this name."""
        if isinstance(layer, ITripLimitLayer):
            return f"{name}/{layer.kind.name}"
        return f"{name}/{layer.name}" if layer.name != layer.default_name else name

    def _mark_output(self, tensor: ITensor, name: str, node: str) -> None:
        """Mark a tensor as an output of the network, or its copy if it is an input or output of another name."""
        if tensor.name != name and (tensor.is_network_input or tensor.is_network_output):
            before = len(self._make.network.layers)
            tensor = self._make.identity(tensor)
            self._name_layers(before, name, node)
        tensor.name = name
        self._make.network.mark_output(tensor)


def name_tensor(tensor: ITensor, name: str) -> ITensor:
    """Name a tensor, unless it is an input of the network or the name is too long; return the tensor."""
    if not tensor.is_network_input and len(name.encode()) <= LONGEST_NAME:
        tensor.name = name
    return tensor


def all_imported(values: Sequence[T | Unimported]) -> list[T]:
    """The values, if all of them were imported; else raises InputNotImported."""
    results = [t for t in values if not isinstance(t, Unimported)]
    if len(results) < len(values):
        raise InputNotImported
    return results


def choose(name: str, word: Any, choices: Mapping[str, T]) -> T:
    """The choice for the word that attribute ``name`` has; raises a LayerError if there is none."""
    known, is_known = ", ".join(choices), isinstance(word, str) and word in choices
    require(is_known, f"{name} is {quoted(word)}, but must be one of {known}", fix=did_you_mean(str(word), choices))
    return choices[word]


def repeated(values: Iterable[H]) -> list[H]:
    """The values that occur more than once."""
    return [key for key, count in Counter(values).items() if count > 1]


@cache
def arity(function: Operator) -> tuple[int, int]:
    """The least and the greatest number of inputs that the function of an operator takes."""
    inputs = list(signature(function).parameters.values())[1:]
    variadic = any(parameter.kind is Parameter.VAR_POSITIONAL for parameter in inputs)
    own = [parameter for parameter in inputs if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD]
    return sum(parameter.default is Parameter.empty for parameter in own), ANY_NUMBER if variadic else len(own)
