"""Random networks by number, each with the settings under which an engine of it is compared with the reference."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from random import Random
from typing import Any, TypeVar
from unittest.mock import patch

from hypothesis import strategies as st

import netloop as trt
from netloop.compiler.host.compiled_pieces import Pieces
from tests.support.corner_recipes import CORNERS, MORE_CORNERS, MORE_RISKY_CORNERS, RISKY_CORNERS
from tests.support.failure_recipes import FAILURES
from tests.support.findings import certain_errors_ignored
from tests.support.growth import CellGrower
from tests.support.host_recipes import HOST
from tests.support.pass_checks import LOWEST
from tests.support.pass_recipes import PASS_CORNERS
from tests.support.strategies import Grower, Grown, assert_equal, is_pure

LIMITS = LOWEST | {
    "netloop.compiler.lower.loop.fission.FEWEST_TRIPS": 1,
    "netloop.compiler.passes.matmul_partitioning.PART_ELEMENTS": 3,
    "netloop.compiler.passes.convolution_kernels.LEAST_MAPS": 1,
    "netloop.compiler.passes.product_kernels.LEAST_WORK": 1,
    "netloop.compiler.passes.recurrent_kernels.LEAST_WEIGHTS": 1,
    "netloop.compiler.passes.elementwise_loops.LEAST_ELEMENTS": 1,
    "netloop.compiler.passes.elementwise_loops.LEAST_WORK": 1,
    "netloop.compiler.passes.recurrent_steps.LEAST_WEIGHTS": 1,
    "netloop.compiler.passes.recurrent_steps.LEAST_GATES": 1,
    "netloop.compiler.passes.bfloat16_products.MIN_LENGTH": 1,
    "netloop.compiler.passes.bfloat16_products.MIN_POSITIONS": 1,
    "netloop.compiler.passes.bfloat16_products.multiplies_bfloat16": lambda: True,
}
UNLIMITED = [
    "netloop.compiler.lower.weight_folding.MOST_GROWTH",
    "netloop.compiler.lower.loop.unroll_heuristic.MOST_LAYERS",
    "netloop.compiler.lower.loop.unroll_heuristic.MOST_ELEMENTS",
]
length_of_piece = Pieces.length

T = TypeVar("T")


SIZES = [(1, 5), (1, 20), (2, 10), (2, 20), (3, 20), (4, 40)]
"""How deep loops and conditionals are nested at most, and among how many layers they are begun."""
RISKY_SIZES = [*[(0, 0)] * 4, (1, 5), (1, 20), (2, 10), (2, 20)]
"""The same of risky networks; of several failures in a large one only the first would be seen."""

EVERY = [*dict.fromkeys([*Grower.recipes, *HOST])]
ORDER = Random(0).sample(EVERY, len(EVERY))
DRAWN = 24
"""Networks without loops take this number of recipes in turn: in 200 networks each of them comes several times."""
FAILING = Random(0).sample(FAILURES, len(FAILURES))
WITH_MORE_CORNERS = 100
"""The first network that has a corner of those that were added later."""
FAILED = 2
"""Risky networks take this number of failures in turn."""


def random_network(seed: int, is_risky: bool | None = None, sizes: tuple[int, int] | None = None) -> Grown:
    """The random network of a number, of either grower, with settings.

    Unless that is said, of four in a row the first has no loops, and the last is risky. What is drawn most often comes
    in turn, so that each recipe, cell and failure comes about as often as the others.

    An assertion about two loops, one written inside the other and yet apart from it, is the one mistake that can grow
    (NL211): the next network takes its place.
    """
    chance = Random(seed)
    kind = seed % 4
    is_risky = kind == 3 if is_risky is None else is_risky
    sizes = chance.choice(RISKY_SIZES if is_risky else SIZES if kind else [(0, 0)]) if sizes is None else sizes
    while True:
        grower = (CellGrower if sizes[0] and seed % 3 else Grower)(chance, *sizes, is_risky)
        deal(grower, seed)
        grown = grower.grow()
        grown.settings = settings(chance, KINDS if sizes[0] else KINDS[:-1])
        if not is_risky or not any(finding.code == "NL211" for finding in trt.check(grown.network)):
            return grown


def deal(grower: Grower, seed: int) -> None:
    """Decide which recipes, cells and failures a grower takes first."""
    grower.recipes, turn = EVERY, seed // 4
    if not grower.depth:
        grower.deck = [other for other in in_turn(ORDER, DRAWN, turn) if grower.is_on_host or other not in HOST]
        grower.turn = DRAWN * turn // len(ORDER)
    grower.deck += grower.chance.sample(HOST, 3) if grower.is_on_host else []
    grower.failures = in_turn(FAILING, FAILED, turn)
    grower.corners = in_turn(RISKY_CORNERS, 1, turn) if grower.is_risky else in_turn(CORNERS, 1, 3 * turn + seed % 4)
    if seed >= WITH_MORE_CORNERS:
        # a corner that always fails, or runs on the host, hides other faults: of 64 networks each of them is in half
        grower.corners += in_turn(MORE_RISKY_CORNERS if grower.is_risky else MORE_CORNERS, 1, turn // 8)
        # with another one for each size of network, as every fourth has no loops
        grower.corners += [] if grower.is_risky else in_turn(PASS_CORNERS, 2, seed + seed // 4)
    if isinstance(grower, CellGrower):
        grower.cells = in_turn([*grower.CELLS], 3, seed // 2)
        grower.loops = in_turn([*grower.LOOPS], 2, seed // 2)


def in_turn(order: list[T], number: int, turn: int) -> list[T]:
    """The next few of some things that come in turn."""
    begin = number * turn % len(order)
    return (order * 2)[begin : begin + number]


@st.composite
def random_networks(draw: Any, is_risky: bool = False, depth: int = 3, most: int = 20) -> Grown:
    """Random networks of any number and of sizes up to the given ones, so that a failing network shrinks."""
    sizes = draw(st.integers(0, depth)), draw(st.integers(0, most))
    return random_network(draw(st.integers(0, 1 << 32)), is_risky, sizes)


KINDS = ["usual", "lowest", "lowest", "lowest", "chunks", "host"]


def settings(chance: Random, kinds: Sequence[str]) -> dict[str, Any]:
    """Values of names in netloop: mostly thresholds that nothing misses, or the usual ones; or another way to run.

    A network of a data-dependent shape runs on the host anyway; here others do too, in pieces of a few steps or with
    loops in chunks of iterations. Many small pieces take long to compile, and show little where there is no loop.
    """
    kind = chance.choice(kinds)
    if kind == "host":
        return on_the_host(chance.choice([0, 1, 2, 100]))
    if kind == "chunks":
        return {"netloop.compiler.host.compiled_pieces.MOST_TRIPS_AT_ONCE": chance.choice([0, 2])}
    return lowest(chance) if kind == "lowest" else {}


def on_the_host(steps_in_a_piece: int) -> dict[str, Any]:
    """Values by which engines run on the host, with pieces of at most so many steps."""
    return {
        "netloop.compiler.execution.network_programs.has_program": lambda network, types: False,
        "netloop.compiler.host.compiled_pieces.Pieces.length": lambda *given: min(
            steps_in_a_piece, length_of_piece(*given)
        ),
    }


def lowest(chance: Random) -> dict[str, Any]:
    """Thresholds that nothing misses; at times only a few iterations fit in a chunk."""
    return {
        **LIMITS,
        **dict.fromkeys(UNLIMITED, 1 << 20),
        # those that are no kernels may be Winograd's
        "netloop.compiler.passes.convolution_kernels.LEAST_WORK": chance.choice([1, 1 << 16]),
        "netloop.compiler.passes.weight_prepacking.LEFT_ROWS": chance.choice([range(2, 9), range(8, 65)]),
        "netloop.compiler.lower.loop.fission.CACHED": chance.choice([1, 1, 1 << 22]),
        "netloop.compiler.lower.loop.fission.CHUNK": chance.choice([20, 50, 100, 150]),
        "netloop.compiler.passes.sliced_rows.FEW_ELEMENTS": chance.choice([0, 1 << 12]),
        "netloop.compiler.passes.sliced_rows.WIDTH": chance.choice([1, 2, 16]),
    }


@contextmanager
def used(settings: Mapping[str, Any]) -> Iterator[None]:
    """Let names in netloop have other values for a while."""
    with ExitStack() as stack:
        for name, value in settings.items():
            stack.enter_context(patch(name, value))
        yield


def is_interruptible(grown: Grown) -> bool:
    return "netloop.compiler.host.compiled_pieces.MOST_TRIPS_AT_ONCE" in grown.settings


def validated(grown: Grown) -> None:
    errors = [str(finding) for finding in trt.check(grown.network) if finding.severity is trt.Severity.ERROR]
    assert not errors, "\n".join(errors)


def agree(grown: Grown) -> None:
    """Require that the engine gives what the reference means, and fails where the reference does, if it may."""
    with certain_errors_ignored() if grown.is_risky else nullcontext():
        _agree(grown)


def _agree(grown: Grown) -> None:
    validated(grown)
    with used(grown.settings):
        engine = trt.compile(grown.network, interruptible=is_interruptible(grown))
        for inputs in (grown.inputs, *grown.others):
            _agree_on(grown, outcome(engine, inputs), outcome(trt.evaluate, grown.network, inputs))


def _agree_on(grown: Grown, got: Any, meant: Any) -> None:
    """Require that outputs, or the message of a failure, are what is meant."""
    if isinstance(meant, str):
        assert grown.is_risky, meant
        assert isinstance(got, str), meant
        assert got == meant or is_on_host(grown)
    else:
        assert not isinstance(got, str), got
        assert_equal(got, meant, grown.rough)


def outcome(run: Callable[..., Any], *arguments: Any) -> Any:
    """What is returned, or the message of a failure."""
    try:
        return run(*arguments)
    except trt.ExecutionError as error:
        return str(error)


def is_on_host(grown: Grown) -> bool:
    """Whether steps run in Python, where of several failures another may be the first."""
    return not is_pure(grown.network, grown.inputs) or any(".host." in name for name in grown.settings)
