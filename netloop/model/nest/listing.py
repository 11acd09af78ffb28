"""The listing of a network: a line for each layer, indented by loops and branches.

It also lists networks that are half built or invalid: where the nesting is undefined, the layers are in the order in
which they were added.
"""

import html
from collections.abc import Iterator
from typing import NamedTuple

from netloop.model.graph import ILayer, NetworkBase
from netloop.model.graph.layer_text import tensor_text, type_text
from netloop.model.layers.conditional import IConditionLayer, IIfConditional
from netloop.model.layers.control_flow import ControlFlow
from netloop.model.layers.loop import IIteratorLayer, ILoop, ILoopBoundaryLayer
from netloop.model.nest.scope import Scopes
from netloop.model.nest.steps import Block, IfStep, LayerStep, LoopStep
from netloop.model.nest.tree import nest
from netloop.values.diagnostics import NetworkError, plain, quoted

MOST_INDENTED = 20
"""The most levels that the text is indented by; deeper ones are numbered."""


class Line(NamedTuple):
    """A line of a listing.

    Attributes:
        depth: the number of loops and branches around it.
        text: the text.
        opens: whether it is the head of the deeper lines after it.
        layer: its layer, or None.
    """

    depth: int
    text: str
    opens: bool = False
    layer: ILayer | None = None


def region_tree(network: NetworkBase, also: tuple[ILayer, ...] = ()) -> Block | str:
    """The region tree of a network, with the layers of ``also`` even if they are dead; or why it has none."""
    missing = (
        layer for layer in network.layers if any(tensor is None for tensor in layer.inputs[: layer.REQUIRED_INPUTS])
    )
    incomplete = next(missing, None)
    if incomplete is not None and isinstance(incomplete, ILoopBoundaryLayer):
        return f"{incomplete.described} misses an input"
    bare = next(
        (group for group in _groups(network) if isinstance(group, IIfConditional) and group.condition is None), None
    )
    if bare is not None:
        return f"{bare.name!r} has no condition"
    scopes = Scopes(network, also)
    if scopes.entangled:
        return f"{' and '.join(quoted(loop.name) for loop in scopes.entangled[0])} are each inside the other"
    unplaced = next((layer for layer in scopes.live if not scopes.is_chain(layer)), None)
    if unplaced is not None:
        return f"{unplaced.described} reads tensors of two loops of which neither is inside the other"
    try:
        return nest(network, scopes)
    except NetworkError as error:
        return error.findings[0].what


def lines_of(network: NetworkBase, unused: bool = True) -> list[Line]:
    """The lines of the listing of a network, with or without the layers that no output depends on."""
    also = () if network.outputs else tuple(network.layers)
    tree = region_tree(network, also)
    lines = [Line(0, f"input {tensor_text(tensor)}: {type_text(tensor)}") for tensor in network.inputs]
    if isinstance(tree, str):
        lines.append(Line(0, f"in the order of the script, because the nesting is undefined: {tree}", opens=True))
        lines += [Line(1, _flat(layer), layer=layer) for layer in network.layers]
    else:
        body = list(_tree_lines(tree))
        shown = {step.layer for step in body}
        dead = [layer for layer in network.layers if layer not in shown]
        lines += body
        if dead and unused:
            lines.append(Line(0, "unused, because no output depends on them", opens=True))
            lines += [Line(1, _flat(layer), layer=layer) for layer in dead]
    return lines + [Line(0, f"output {tensor_text(tensor)}: {type_text(tensor)}") for tensor in network.outputs]


def listing(network: NetworkBase, unused: bool = True) -> str:
    """The listing of a network as text, without arrays; see ``lines_of``."""
    return "\n".join([f"network {summary(network)}", *(_indented(line) for line in lines_of(network, unused))])


def listing_html(network: NetworkBase) -> str:
    """The listing of a network as HTML, in which loops and conditionals fold."""
    parts = [f"<details open><summary>network {html.escape(summary(network))}</summary>"]
    depth = 0
    for line in lines_of(network):
        parts += ["</div></details>"] * (depth - line.depth)
        depth = line.depth
        text = html.escape(line.text)
        if line.opens:
            parts.append(f"<details open><summary>{text}</summary><div style='margin-left:1.5em'>")
            depth += 1
        else:
            parts.append(f"<div><code>{text}</code></div>")
    return "\n".join([*parts, *["</div></details>"] * depth, "</details>"])


def summary(network: NetworkBase) -> str:
    """The name of a network, and how many inputs, layers and outputs it has."""
    counts = (network.inputs, "input"), (network.layers, "layer"), (network.outputs, "output")
    shown = ", ".join(f"{len(entry)} {what}{'s' * (len(entry) != 1)}" for entry, what in counts)
    return f"{quoted(network.name)}: {shown}"


def _groups(network: NetworkBase) -> Iterator[ControlFlow]:
    seen: set[ControlFlow] = set()
    for layer in network.layers:
        group = group_of(layer)
        if group is not None and group not in seen:
            seen.add(group)
            yield group


def group_of(layer: ILayer) -> ControlFlow | None:
    """The loop or conditional of a boundary layer; None for another layer."""
    return vars(layer).get("loop") or vars(layer).get("conditional")


def _flat(layer: ILayer) -> str:
    group = group_of(layer)
    return str(layer) + (f"  of {plain(group.name)}" if group is not None else "")


def _indented(line: Line) -> str:
    deep = line.depth - MOST_INDENTED
    return "  " * min(line.depth + 1, MOST_INDENTED + 1) + (f"[+{deep}] " if deep > 0 else "") + line.text


def _head(group: ControlFlow) -> str:
    return f"{'loop' if isinstance(group, ILoop) else 'if'} {plain(group.name)}"


def _tree_lines(tree: Block) -> Iterator[Line]:
    stack: list[Line | tuple[Block, int]] = [(tree, 0)]
    while stack:
        item = stack.pop()
        if isinstance(item, Line):
            yield item
            continue
        block, depth = item
        lines: list[Line | tuple[Block, int]] = []
        for step in block.steps:
            if isinstance(step, LayerStep):
                if not isinstance(step.layer, IIteratorLayer):
                    lines.append(Line(depth, str(step.layer), layer=step.layer))
            elif isinstance(step, LoopStep):
                lines += _loop_lines(step, depth)
            else:
                lines += _if_lines(step, depth)
        stack.extend(reversed(lines))


def _loop_lines(step: LoopStep, depth: int) -> list[Line | tuple[Block, int]]:
    entry = *step.limits, *step.iterators, *step.recurrences
    return [
        Line(depth, _head(step.loop), opens=True),
        *(Line(depth + 1, str(limit), layer=limit) for limit in entry),
        (step.body, depth + 1),
        *(Line(depth + 1, str(output), layer=output) for output in step.outputs),
    ]


def _if_lines(step: IfStep, depth: int) -> list[Line | tuple[Block, int]]:
    conditions = step.conditional.layers.of_kind(IConditionLayer)
    return [
        Line(depth, _head(step.conditional), opens=True),
        *(Line(depth + 1, str(condition), layer=condition) for condition in conditions),
        Line(depth + 1, "then", opens=True),
        (step.branches[0], depth + 2),
        Line(depth + 1, "else", opens=True),
        (step.branches[1], depth + 2),
        *(Line(depth + 1, str(output), layer=output) for output in step.outputs),
    ]
