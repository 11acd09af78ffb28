"""Engine against reference on random networks, until one shows a fault.

``python -m tests.mutants.networks compare 0 1 2``, in a tree with a fault, prints the number of each network before it
is compared, and fails at the first that shows the fault. ``python -m tests.mutants.networks reach 200``, in a tree
without one, prints which of the networks execute the lines of each fault: only these can show it.
"""

import faulthandler
import json
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from random import Random
from unittest.mock import patch

import netloop as trt
from tests.execution.test_differential import agree, fail_alike
from tests.host.test_program import on_the_host
from tests.mutants.mutant import ROOT
from tests.mutants.reach import Reach, lines_of
from tests.mutants.table import MUTANTS
from tests.passes.test_random import LIMITS, UNLIMITED
from tests.support.growth import CellGrower
from tests.support.strategies import Grower, Grown

MOST_SECONDS = 60
"""The duration of one comparison at which the process ends: the fault has made it endless."""


def compare(seed: int) -> None:
    """Compare engine and reference on the network of a number."""
    turn, chance = seed % 8, Random(seed)
    if turn % 2:
        return with_thresholds(chance)
    grown = Grower(chance, 4, 60, is_risky=turn in (2, 6)).grow()
    if any(each.code == "NL211" for each in trt.check(grown.network)):
        return None
    if turn == 6:
        on_host, in_pieces = on_the_host(2)
        with on_host, in_pieces:
            return fail_alike(grown)
    return fail_alike(grown) if turn == 2 else agree(grown)


def with_thresholds(chance: Random) -> None:
    limits: dict[str, object] = LIMITS | dict.fromkeys(UNLIMITED, 1 << 20)
    limits["netloop.passes.weight_prepacking.LEFT_ROWS"] = chance.choice([range(2, 9), range(8, 65)])
    limits["netloop.lower.loop.fission.CACHED"] = chance.choice([1, 1 << 22])
    limits["netloop.lower.loop.fission.CHUNK"] = chance.choice([100, 300, 1000])
    with ExitStack() as stack:
        for name, limit in limits.items():
            stack.enter_context(patch(name, limit))
        grown: Grown = CellGrower(chance, chance.randint(1, 2), chance.randint(5, 25)).grow()
        agree(grown)


def compare_all(seeds: Iterable[int]) -> None:
    """Compare engine and reference on networks, until they differ."""
    for seed in seeds:
        print(seed, flush=True)
        faulthandler.dump_traceback_later(MOST_SECONDS, exit=True)
        compare(seed)
    faulthandler.cancel_dump_traceback_later()


def reached(number: int) -> dict[str, list[int]]:
    """The networks that execute the lines of each fault, by its name and file."""
    found: dict[str, list[int]] = {each.key: [] for each in MUTANTS}
    for seed in range(number):
        reach = Reach(MUTANTS)
        with reach.recorded():
            compare(seed)
        for each in MUTANTS:
            if any((each.file, line) in reach.reached for line in lines_of(each)):
                found[each.key].append(seed)
    return found


def main() -> None:
    assert trt.__file__.startswith(str(ROOT)), f"this is the netloop of {trt.__file__}"
    task, *numbers = sys.argv[1:]
    if task == "reach":
        print(json.dumps(reached(int(numbers[0]))))
    else:
        compare_all(map(int, numbers))


if __name__ == "__main__":
    main()
