"""Rules about types: the findings of the layers' own type inference."""

from collections.abc import Iterator

from netloop.check.rule import Subject, Violation, rule
from netloop.diagnostics import Finding


@rule("NL401")
def inputs_fit_their_layers(subject: Subject) -> Iterator[Violation | Finding]:
    """a layer is defined only for inputs of certain types and shapes.

    The documentation of each kind of layer says which. Nothing is converted silently: a cast is a layer. A layer whose
    inputs have no types is not reported again.

    Wrong: ``network.add_elementwise(int32_tensor, float_tensor, SUM)``
    Right: ``network.add_elementwise(network.add_cast(int32_tensor, FLOAT).get_output(0), float_tensor, SUM)``
    """
    for layer in subject.network.layers:
        found = subject.types.finding(layer)
        if found is not None:
            yield found
