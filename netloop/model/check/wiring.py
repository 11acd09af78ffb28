"""Rules about wiring and types: outputs, names, and the findings of the layers' own type inference."""

from collections.abc import Iterator

from netloop.model.check.rule import Subject, Violation, rule
from netloop.values.diagnostics import Finding


@rule("NL105")
def network_has_an_output(subject: Subject) -> Iterator[Violation]:
    """a network computes only what its outputs depend on.

    Wrong: a network without ``mark_output``
    Right: ``network.mark_output(y)``
    """
    if not subject.network.outputs:
        yield Violation(subject.network, "the network has no output", "mark one with network.mark_output(tensor)")


@rule("NL106")
def inputs_and_outputs_have_unique_names(subject: Subject) -> Iterator[Violation]:
    """the inputs and outputs of a network are identified by name.

    Wrong: ``y.name = z.name = "out"``, both marked as outputs
    Right: two names
    """
    seen: set[str] = set()
    for tensor in subject.network.inputs + [
        tensor for tensor in subject.network.outputs if not tensor.is_network_input
    ]:
        if tensor.name in seen:
            at = tensor.producer or tensor
            yield Violation(at, f"two inputs or outputs of the network are named {tensor.name!r}", "rename one of them")
        seen.add(tensor.name)


@rule("NL401")
def inputs_fit_their_layers(subject: Subject) -> Iterator[Violation | Finding]:
    """a layer is defined only for inputs of certain types and shapes.

    The documentation of each kind of layer says which. Nothing is converted silently: a cast is a layer. A layer whose
    inputs have no types is not reported again.

    Wrong: ``network.add_elementwise(int32_tensor, float_tensor, SUM)``
    Right: ``network.add_elementwise(network.add_cast(int32_tensor, FLOAT).get_output(0), float_tensor, SUM)``
    """
    for layer in subject.network.layers:
        finding = subject.types.finding(layer)
        if finding is not None:
            yield finding
