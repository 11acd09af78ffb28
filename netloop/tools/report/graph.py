"""The graph of the page: nodes for layers, boxes for loops, conditionals, branches and long sequences, and edges."""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from netloop.model.graph import ILayer, ITensor
from netloop.model.graph.layer_text import kind_text, tensor_text, type_text, value_text
from netloop.model.layers.conditional import IConditionLayer
from netloop.model.layers.control_flow import ControlFlow
from netloop.model.layers.loop import IIteratorLayer, ILoop, ILoopOutputLayer, IRecurrenceLayer, ITripLimitLayer
from netloop.model.layers.sources import IConstantLayer
from netloop.model.nest.listing import region_tree
from netloop.model.nest.steps import Block, IfStep, LayerStep, LoopStep, Step
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics.quoting import LONGEST_FIELD, printable, shortened
from netloop.values.enums import TripLimit

LONGEST_REGION = 150
"""The most nodes of a box; the steps of a longer one are grouped into sections, which open one by one."""
SECTION = 60
"""The number of steps of a section."""
LONGEST_TEXT = 300
"""The longest name or value on the page, in characters."""
BACK, CONTROL = 1, 2
"""The kinds of edges to the next iteration, and from a condition or trip limit to what it controls; others are 0."""
MOST_NUMBERS = 8
"""The most numbers of a constant that its details list."""
MOST_TENSORS = 200
"""The most inputs or outputs of a layer that its details list."""

Node = dict[str, Any]


class Graph:
    """The nodes and edges of a network.

    Attributes:
        nodes: the nodes; ``parent`` is the index of the box around one, -1 at the top.
        edges: for each a list: the index of the source, that of the target, the tensor, and its kind.
        of_layer: the index of the node of each layer.
        of_group: the indices of the boxes of each loop and conditional.
        undefined: why the nesting is undefined; empty where it is defined.
    """

    def __init__(self, network: INetworkDefinition) -> None:
        self.nodes: list[Node] = []
        self.edges: list[list[Any]] = []
        self.of_layer: dict[ILayer, int] = {}
        self.of_group: dict[ControlFlow, list[int]] = {}
        self._of_tensor: dict[ITensor, int] = {}
        self._first_step: dict[int, int] = {}
        for tensor in network.inputs:
            self._of_tensor[tensor] = self._end(tensor, "input", "entry")
        tree = region_tree(network, () if network.outputs else tuple(network.layers))
        self.undefined = tree if isinstance(tree, str) else ""
        self._place(network, Block() if isinstance(tree, str) else tree)
        ends = [(self._end(tensor, "output", "exit"), tensor) for tensor in network.outputs]
        for layer in network.layers:
            self._connect(layer)
        for node, tensor in ends:
            self._edge(tensor, node, False)

    def _place(self, network: INetworkDefinition, tree: Block) -> None:
        stack: list[tuple[list[Any], int]] = [(list(tree.steps), -1)]
        while stack:
            steps, parent = stack.pop()
            if len(steps) > LONGEST_REGION:
                stack += self._sections(steps, parent)
                continue
            for step in steps:
                stack += self._step(step, parent)
        rest = [LayerStep(layer) for layer in network.layers if layer not in self.of_layer]
        if rest:
            what = "layers, nesting undefined" if self.undefined else "unused layers"
            box = self._add(-1, "section", what, box=True)
            stack.append((list(rest), box))
        while stack:
            steps, parent = stack.pop()
            if len(steps) > LONGEST_REGION:
                stack += self._sections(steps, parent)
            else:
                for step in steps:
                    self._layer(step.layer, parent)

    def _sections(self, steps: list[Any], parent: int) -> list[tuple[list[Any], int]]:
        """Boxes for parts of a long sequence: the scopes in the names of the model, or else equal numbers of steps."""
        runs = scopes_of(steps)
        if not 1 < len(runs) <= LONGEST_REGION:
            return self._numbered_sections(steps, parent)
        return [(part, self._add(parent, "section", scope, box=True) if scope else parent) for scope, part in runs]

    def _numbered_sections(self, steps: list[Any], parent: int) -> list[tuple[list[Any], int]]:
        """Boxes for equal parts of a long sequence, in at most two levels for each factor of SECTION."""
        size = SECTION
        while len(steps) > size * SECTION:
            size *= SECTION
        results: list[tuple[list[Any], int]] = []
        for start in range(0, len(steps), size):
            part = steps[start : start + size]
            first = self._first_step.get(parent, 0) + start
            box = self._add(parent, "section", f"steps {first}-{first + len(part) - 1}", box=True)
            self._first_step[box] = first
            results.append((part, box))
        return results

    def _step(self, step: Step, parent: int) -> list[tuple[list[Any], int]]:
        if isinstance(step, LayerStep):
            if not isinstance(step.layer, IIteratorLayer):
                self._layer(step.layer, parent)
            return []
        return self._loop(step, parent) if isinstance(step, LoopStep) else self._conditional(step, parent)

    def _loop(self, step: LoopStep, parent: int) -> list[tuple[list[Any], int]]:
        box = self._group(step.loop, "loop", parent)
        for layer in (*step.limits, *step.iterators, *step.recurrences, *step.outputs):
            self._layer(layer, box)
        for limit in step.limits:
            ends = "the number of iterations" if limit.kind is TripLimit.COUNT else "whether there is another iteration"
            self.edges.append([self.of_layer[limit], box, ends, CONTROL])
        return [(list(step.body.steps), box)]

    def _conditional(self, step: IfStep, parent: int) -> list[tuple[list[Any], int]]:
        box = self._group(step.conditional, "if", parent)
        for layer in (*step.conditional.layers.of_kind(IConditionLayer), *step.outputs):
            if layer not in self.of_layer:
                self._layer(layer, box)
        names = zip(("then", "else"), step.branches, strict=True)
        branches = {self._add(box, "branch", name, box=True): block for name, block in names if block.steps}
        # a branch without steps is no box, and its value is one from outside
        controlled = (
            [*branches] if len(branches) > 1 else [*branches, *(self.of_layer[layer] for layer in step.outputs)]
        )
        for condition in step.conditional.layers.of_kind(IConditionLayer):
            source = self.of_layer[condition]
            self.edges += [[source, node, "the branch that is taken", CONTROL] for node in controlled]
        return [(list(block.steps), branch) for branch, block in branches.items()]

    def _group(self, group: ControlFlow, kind: str, parent: int) -> int:
        box = self._add(parent, kind, group.name, box=True)
        self.nodes[box]["source"] = text(str(group.source_location or ""), LONGEST_FIELD)
        self.of_group.setdefault(group, []).append(box)
        return box

    def _layer(self, layer: ILayer, parent: int) -> None:
        name = "" if layer.name.startswith("(Unnamed Layer* ") else layer.name
        number = self._add(parent, kind_text(layer), name)
        self.of_layer[layer] = number
        self._of_tensor.update((tensor, number) for tensor in layer.outputs)
        self.nodes[number].update(
            index=layer.index,
            role=_role(layer),
            source=text(str(layer.source_location or ""), LONGEST_FIELD),
            attributes=[[name, text(value_text(getattr(layer, name)))] for name in layer.ATTRIBUTES] + _numbers(layer),
            outputs=[[text(tensor_text(tensor)), type_text(tensor)] for tensor in layer.outputs[:MOST_TENSORS]],
            means=layer.meaning(),
        )

    def _connect(self, layer: ILayer) -> None:
        node = self.of_layer[layer]
        read: list[list[Any]] = []
        for position, tensor in enumerate(layer.inputs):
            if tensor is not None:
                self._edge(tensor, node, isinstance(layer, IRecurrenceLayer) and position == 1)
                read.append([text(tensor_text(tensor)), type_text(tensor), self._of_tensor.get(tensor, -1)])
        self.nodes[node]["inputs"] = read[:MOST_TENSORS]

    def _edge(self, tensor: ITensor, node: int, back: bool) -> None:
        source = self._of_tensor.get(tensor)
        if source is not None:
            kind = BACK if back else 0
            self.edges.append([source, node, f"{text(tensor_text(tensor), 60)}: {type_text(tensor)}", kind])

    def _end(self, tensor: ITensor, kind: str, role: str) -> int:
        number = self._add(-1, kind, tensor.name)
        self.nodes[number].update(role=role, outputs=[[text(tensor.name), type_text(tensor)]], inputs=[], attributes=[])
        return number

    def _add(self, parent: int, kind: str, name: str, box: bool = False) -> int:
        self.nodes.append({"parent": parent, "kind": kind, "name": text(name), "box": int(box)})
        return len(self.nodes) - 1


def scopes_of(steps: Sequence[Step]) -> list[tuple[str, list[Step]]]:
    """Successive steps by the outermost scope in which their names differ, as in ``layer1/0/conv``; "" without one.

    A constant is with the step after it. One step alone is in no scope.
    """
    paths = [path for path in map(_path, steps) if path] or [[]]
    # what the first and the last path in order have in common, all paths have
    pairs = zip(min(paths), max(paths), strict=False)
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    runs: list[tuple[str, list[Step]]] = []
    waiting: list[Step] = []
    for step in steps:
        waiting.append(step)
        path = _path(step)
        if path:
            scope = path[common] if len(path) > common + 1 else ""
            if not runs or runs[-1][0] != scope:
                runs.append((scope, []))
            runs[-1][1].extend(waiting)
            waiting = []
    if waiting:
        runs = runs or [("", [])]
        runs[-1][1].extend(waiting)
    return [(scope if sum(bool(_path(step)) for step in part) > 1 else "", part) for scope, part in runs]


def _path(step: Step) -> list[str]:
    """The scopes and the name of a step; empty for a constant, and for a layer without a name."""
    if isinstance(step, LayerStep):
        is_named = not isinstance(step.layer, IConstantLayer) and step.layer.name != step.layer.default_name
        return step.layer.name.strip("/").split("/") if is_named else []
    name = step.loop.name if isinstance(step, LoopStep) else step.conditional.name
    return name.strip("/").split("/")


def _numbers(layer: ILayer) -> list[list[str]]:
    """The numbers of a small constant, such as an index or a trip count, as an attribute."""
    if not isinstance(layer, IConstantLayer) or layer.outputs[0].type.volume > MOST_NUMBERS:
        return []
    return [["numbers", text(str(layer.evaluate().tolist()))]]


def _role(layer: ILayer) -> str:
    """Where a layer is in its box: at the edge through which values enter or leave, or inside."""
    if isinstance(layer, ITripLimitLayer | IIteratorLayer | IRecurrenceLayer | IConditionLayer):
        return "entry"
    if isinstance(layer, ILoopOutputLayer):
        return "exit"
    return "constant" if isinstance(layer, IConstantLayer) else ""


def text(value: str, most: int = LONGEST_TEXT) -> str:
    """A text of users or of files for the page: short, and without characters that are not shown."""
    return printable(shortened(value, most))


def loop_name(loop: ILoop, loops: list[ILoop]) -> str:
    """The key of a loop among the strategies of an engine."""
    same = sum(other.name == loop.name for other in loops)
    return loop.name if same == 1 else f"{loop.name}#{loops.index(loop)}"
