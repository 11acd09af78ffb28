"""Rules about types: what the layers say of their inputs."""

from collections.abc import Iterator

from netloop.check.rule import Broken, Subject, rule
from netloop.diagnostics import Finding


@rule("NL401")
def inputs_fit_their_layers(subject: Subject) -> Iterator[Broken | Finding]:
    """a layer has a meaning only for inputs of certain types and shapes.

    Which ones, is part of the documentation of each kind of layer. Nothing is converted silently: a cast is a layer.
    A layer whose inputs have no types is not complained about again.

    Wrong: ``network.add_elementwise(int32_tensor, float_tensor, SUM)``
    Right: ``network.add_elementwise(network.add_cast(int32_tensor, FLOAT).get_output(0), float_tensor, SUM)``
    """
    for layer in subject.network.layers:
        complaint = subject.types.complaint(layer)
        if complaint is not None:
            yield complaint
