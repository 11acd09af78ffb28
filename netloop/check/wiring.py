"""Rules about wiring: inputs, outputs and names."""

from collections.abc import Iterator

from netloop.check.rule import Subject, Violation, rule


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
    for tensor in subject.network.inputs + [each for each in subject.network.outputs if not each.is_network_input]:
        if tensor.name in seen:
            at = tensor.producer or tensor
            yield Violation(at, f"two inputs or outputs of the network are named {tensor.name!r}", "rename one of them")
        seen.add(tensor.name)
