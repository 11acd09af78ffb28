"""Passes: what is done to a network for the shapes of a call before it is lowered, to make it faster.

A pass either rewrites a copy of the network, for which the reference gives the same results, or allows a form of
lowering. Each is a class in a file of this package; importing the package collects them. A new pass needs such a file,
tests in ``tests/compiler/passes``, and its measured gain in ``benchmarks/notes.md``; ``nox -s pages`` writes its
section of ``docs/performance.md``.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from graphlib import TopologicalSorter
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import NamedTuple

from netloop.compiler.passes.base import OFF, RULE, Forms, Note, Pass
from netloop.compiler.passes.forms import LoweringForm, LoweringPass
from netloop.compiler.passes.growing_states import FAR, LEAST_ROWS
from netloop.compiler.passes.rewriter import NO_BOUNDS, Rewriter
from netloop.compiler.product_precision import FLOAT32, ProductType
from netloop.model.check import ValidatedNetwork
from netloop.model.graph import ITensor, TypeTable
from netloop.model.layers.loop import ILoop
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import did_you_mean

__all__ = ["FAR", "LEAST_ROWS", "MACHINE_CODE", "NO_FORMS", "OFF", "PASSES", "RULE", "Forms", "Improved",
           "LoweringForm", "LoweringPass", "Note", "Pass", "applied", "chosen", "improve", "of_host", "of_level",
           "of_platform", "sections"]  # fmt: skip

# a pass is found as a subclass of Pass, so every file must have been imported
for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")


def _defined(base: type[Pass]) -> Iterator[type[Pass]]:
    """The classes below a base that have a name."""
    for subclass in base.__subclasses__():
        yield from [subclass] if "name" in vars(subclass) else _defined(subclass)


def _in_order(passes: Iterable[Pass]) -> dict[str, Pass]:
    """Passes by name, each after those that it must follow, and forms of lowering last."""
    by_name = {pass_.name: pass_ for pass_ in passes}
    order = [by_name[name] for name in TopologicalSorter({pass_.name: pass_.after for pass_ in passes}).static_order()]
    # a stable sort, so that each kind keeps the order above
    return {pass_.name: pass_ for pass_ in sorted(order, key=lambda pass_: isinstance(pass_, LoweringPass))}


PASSES: dict[str, Pass] = _in_order([kind() for kind in _defined(Pass)])
"""All passes by name, in the order in which they are applied."""


MACHINE_CODE = frozenset(
    {"recurrent_kernels", "recurrent_steps", "elementwise_loops", "convolution_kernels", "product_kernels"}
)
"""The passes that make calls of machine code, which XLA neither divides among devices nor makes for several rows."""

PLATFORMS = {"cpu": "CPUs", "gpu": "GPUs", "tpu": "TPUs"}
"""The platforms of JAX between which passes differ, and what texts call them."""

NO_FORMS: Forms = MappingProxyType({})
"""Every pass by its rule."""


class Improved(NamedTuple):
    """A network after the passes.

    Attributes:
        network: the original, or a rewritten copy whose layers begin with those of the original in their order.
        types: the types of its tensors.
        validated: its steps.
        notes: what was done.
        refusals: the reasons why loops run on the host that a pass would have had compiled, by their names.
        rooms: the numbers of iterations for which the buffers of loops have room; they become larger when full.
    """

    network: INetworkDefinition
    types: TypeTable
    validated: ValidatedNetwork
    notes: list[Note]
    refusals: Mapping[str, str] = MappingProxyType({})
    rooms: Mapping[ILoop, ITensor] = MappingProxyType({})


def chosen(passes: Iterable[str] | None) -> frozenset[str]:
    """Return checked names of passes; all names for None.

    Raises:
        TypeError: ``passes`` is not a collection of strings.
        ValueError: there is no pass of one of the names.
    """
    if passes is None:
        return frozenset(PASSES)
    # a string would pass as a collection of its letters
    if isinstance(passes, str) or not all(isinstance(pass_, str) for pass_ in passes):
        raise TypeError("passes is a collection of names, such as netloop.PASSES")
    texts = frozenset(passes)
    for name in sorted(texts.difference(PASSES)):
        hint = did_you_mean(name, PASSES)
        raise ValueError(f"there is no pass {name!r}" + (hint and f"; {hint}"))
    return texts


def applied(passes: Iterable[str], forms: Forms) -> frozenset[str]:
    """Return the names among ``passes`` that some forms do not turn off."""
    return frozenset(name for name in passes if forms.get(name) != OFF)


def of_level(level: int) -> frozenset[str]:
    """Return the names of the passes of an optimization level, 0 to 5."""
    return frozenset(name for name, pass_ in PASSES.items() if pass_.level <= level)


def of_host(passes: Iterable[str]) -> frozenset[str]:
    """Return the names among ``passes`` that are for networks that run on the host."""
    return frozenset(name for name in passes if PASSES[name].on_host)


def of_platform(passes: Iterable[str], platform: str) -> frozenset[str]:
    """Return the names among ``passes`` that are for a JAX platform, such as ``"cpu"``."""
    return frozenset(name for name in passes if platform in (PASSES[name].platforms or (platform,)))


def improve(
    network: INetworkDefinition,
    types: TypeTable,
    validated: ValidatedNetwork,
    passes: Collection[str],
    forms: Forms = NO_FORMS,
    platform: str = "cpu",
    bounds: Mapping[str, int] = NO_BOUNDS,
    is_pure: bool = False,
    product_type: ProductType = FLOAT32,
) -> Improved:
    """Rewrite a network for the given types of its inputs by some passes, in the given forms, for a JAX platform.

    ``bounds`` are the largest numbers of iterations of loops by name; a pure function has nothing on the host.
    ``product_type`` is that of the operands of float32 products.

    Raises:
        NetworkError: a list cannot be in the pure function.
    """
    rewrites = [pass_ for name, pass_ in PASSES.items() if name in passes and not isinstance(pass_, LoweringPass)]
    original = Improved(network, types, validated, [])
    if not rewrites:
        return original  # a copy costs time even if no pass changes it
    rewriter = Rewriter(network, types, platform, bounds, is_pure, product_type)
    notes, is_changed = list[Note](), False
    for rewrite in rewrites:
        rewriter.form = forms.get(rewrite.name, RULE)
        if rewrite.rewrite(rewriter):
            is_changed = True
            notes += [Note(rewrite.name, what) for what in rewriter.notes]
            # scopes and blocks are those of before the rewrite, and the next pass looks at them
            rewriter.read()
    refusals = {loop.name: reason for loop, reason in rewriter.refusals.items()}
    if not is_changed:
        return original._replace(refusals=refusals)
    # the rules would only look for faults of passes, for which the tests look
    validated = ValidatedNetwork(rewriter.scopes, rewriter.block)
    return Improved(rewriter.network, rewriter.network.types, validated, notes, refusals, rewriter.rooms)


def sections() -> str:
    """Return the passes as Markdown, a section each, for docs/performance.md."""
    return "\n".join(_section(name, pass_) for name, pass_ in PASSES.items())


def _section(name: str, pass_: Pass) -> str:
    """A pass: what it does, and as a list when, its level and the variants that tuning times."""
    what, *when = re.split(r"(?<=\.) (?=[A-Z])", pass_.rule)
    platforms = pass_.platforms or frozenset(PLATFORMS)
    where = ", ".join(plural for name, plural in PLATFORMS.items() if name in platforms)
    tuned = f"; tuning times `{'`, `'.join(pass_.alternatives)}` too" if pass_.alternatives else ""
    lines = [
        f"### `{name}`",
        "",
        what,
        "",
        *(f"- {line}" for line in (*when, f"Level {pass_.level}, on {where}{tuned}.")),
    ]
    return "\n".join(lines) + "\n"
