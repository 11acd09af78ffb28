"""Collectives in loops and branches, to which all ranks have to come equally often."""

from netloop.model.layers.attention import IAttentionOutputLayer
from netloop.model.layers.collective import IDistCollectiveLayer, name_of_axis
from netloop.model.manual_axes import Axes
from netloop.model.nest import Block, IfStep, LayerStep, LoopStep, walk
from netloop.values.diagnostics import NetworkError, reason


def require_in_step(step: LoopStep | IfStep, axes: Axes) -> None:
    """Refuse a collective in a loop or conditional whose condition varies along the axis of its ranks.

    A rank that leaves the loop first would never take part in what the others wait for; XLA ends the process then.

    Args:
        step: the loop or conditional.
        axes: the axes of the mesh along which its condition varies.

    Raises:
        NetworkError: there is such a collective.
    """
    # ranks that agree on the condition come equally often
    if not axes:
        return
    name = (step.loop if isinstance(step, LoopStep) else step.conditional).name
    for node in walk(Block([step])):
        layer = node.layer if isinstance(node, LayerStep) else None
        is_collective = isinstance(layer, IDistCollectiveLayer | IAttentionOutputLayer) and layer.num_ranks > 1
        if layer is not None and is_collective and name_of_axis(layer) in axes:
            what = f"{layer.name!r} exchanges tensors between ranks in {name!r}, whose condition may differ"
            fix = "reduce the condition over the ranks with add_dist_collective, or compute it from equal inputs"
            raise NetworkError(layer.finding("NL619", what, reason("NL619"), fix))
