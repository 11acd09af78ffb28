"""The loop of a network that runs its requests in slots, and the checks that it can."""

from netloop.compiler.lower import Program
from netloop.model.layers.loop import ILoop
from netloop.model.nest import Block, IfStep, LayerStep, LoopStep, Step
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import Finding, NetworkError, did_you_mean, listed, quoted, reason
from netloop.values.enums import TripLimit

CODE = "NL623"


def served_loop(network: INetworkDefinition, block: Block, name: str | None) -> ILoop:
    """The loop of a network whose iterations are made for all slots together.

    Args:
        network: the network.
        block: its region tree.
        name: the name of the loop; None for the only one outside of all other loops and of conditionals, or if there
            are several, the only one of these that stacks its rows as an output of the network.

    Raises:
        ValueError: the network has no loop of the name.
        NetworkError: there is no such loop, or several, or it is inside another loop or a conditional.
    """
    outer = [step for step in block.steps if isinstance(step, LoopStep)]
    if name is not None:
        return _named(network, outer, name)
    streaming = [loop for loop in outer if any(layer.outputs[0] in network.outputs for layer in loop.stacked)]
    steps = outer if len(outer) == 1 else streaming
    if len(steps) == 1:
        return steps[0].loop
    if not outer:
        what = "the network has no loop outside of conditionals, and only iterations of a loop share slots"
        raise NetworkError(Finding(CODE, what, "", reason(CODE), "run it with netloop.compile"))
    names = listed([loop.loop.name for loop in outer])
    what = f"the network has several loops, {names}, and one of them runs in slots"
    raise NetworkError(Finding(CODE, what, "", reason(CODE), f"choose it: loop={outer[-1].loop.name!r}"))


def _named(network: INetworkDefinition, outer: list[LoopStep], name: str) -> ILoop:
    if not isinstance(name, str):
        raise TypeError(f"loop is the name of a loop, or None, not {name!r}")
    loops = [loop for loop in network.loops if loop.name == name]
    if not loops:
        names = [loop.name for loop in network.loops]
        hint = did_you_mean(name, names)
        raise ValueError(f"the network has no loop {name!r}; it has {listed(names) or 'none'}" + (hint and f"; {hint}"))
    served = [loop.loop for loop in outer if loop.loop in loops]
    if len(served) == 1:
        return served[0]
    what = f"{quoted(name)} is inside another loop or a conditional, or no output needs it"
    if served:
        what = f"several loops are called {quoted(name)}"
    others = listed([loop.loop.name for loop in outer if loop.loop not in loops])
    fix = f"choose another loop: {others}" if others and not served else "set the names of the loops, or use compile"
    raise NetworkError(Finding(CODE, what, loops[0].where, reason(CODE), fix, at=loops[0]))


def is_open(step: LoopStep, program: Program) -> bool:
    """Whether the number of iterations of a loop is not a constant of the program."""
    return step.loop.limit(TripLimit.WHILE) is not None or program.facts.count(step.loop) is None


def require_end(step: LoopStep, program: Program) -> None:
    """Refuse a loop that might never end for one slot because of another one.

    XLA runs both branches of a conditional for all slots, and a loop until it has ended in all of them. A loop of
    unknown length that is entered only in some requests, or only in some iterations of another one, would then also
    run for values for which nobody has written it.

    Raises:
        NetworkError: there is such a loop, and no ``max_trips`` ends it.
    """
    # no loop runs longer than that
    if program.facts.max_trips is not None:
        return
    # the loops of unknown length and the conditionals between the served loop and each step
    stack: list[tuple[Step, str]] = [(other, "") for other in step.body.steps]
    findings: list[Finding] = []
    while stack:
        inner, around = stack.pop()
        if isinstance(inner, LayerStep):
            continue
        below = around
        if isinstance(inner, IfStep):
            below = f"the conditional {quoted(inner.conditional.name)}"
        elif is_open(inner, program):
            below = f"the loop {quoted(inner.loop.name)}"
            if around:
                findings.append(_endless(inner, around))
        stack.extend((step, below) for block in inner.blocks for step in block.steps)
    if findings:
        raise NetworkError(*findings)


def _endless(step: LoopStep, around: str) -> Finding:
    what = (
        f"{quoted(step.loop.name)}, whose length is not known, is inside {around}: other requests could keep it running"
    )
    fix = "pass max_trips, which ends it; or give the loop a constant COUNT; or use netloop.compile"
    return Finding(CODE, what, step.loop.where, reason(CODE), fix, at=step.loop)
