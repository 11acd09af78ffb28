"""Engine against reference on random networks, until one shows a fault.

``python -m tests.mutants.networks compare 0 1 2``, in a tree with a fault, prints the number of each network before it
is compared, and fails at the first that shows the fault. ``python -m tests.mutants.networks reach 200``, in a tree
without one, prints which of the networks execute the lines of each fault: only these can show it.
"""

import faulthandler
import json
import sys
from collections.abc import Iterable

import netloop as trt
from tests.mutants.mutant import ROOT
from tests.mutants.reach import Reach, lines_of
from tests.mutants.table import MUTANTS
from tests.support.random_networks import agree, random_network

MOST_SECONDS = 60
"""The duration of one comparison at which the process ends: the fault has made it endless."""


def compare(seed: int) -> None:
    """Compare engine and reference on the network of a number."""
    agree(random_network(seed))


def compare_all(seeds: Iterable[int]) -> None:
    """Compare engine and reference on networks, until they differ."""
    for seed in seeds:
        print(seed, flush=True)
        faulthandler.dump_traceback_later(MOST_SECONDS, exit=True)
        compare(seed)
    faulthandler.cancel_dump_traceback_later()


def reached(number: int) -> dict[str, list[int]]:
    """The networks that execute the lines of each fault, by its name and file."""
    found: dict[str, list[int]] = {mutant.key: [] for mutant in MUTANTS}
    for seed in range(number):
        reach = Reach(MUTANTS)
        with reach.recorded():
            compare(seed)
        for mutant in MUTANTS:
            if any((mutant.file, line) in reach.reached for line in lines_of(mutant)):
                found[mutant.key].append(seed)
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
