"""Faults in the rules of the checker."""

from tests.mutants.mutant import Mutant

CHECK = "tests/model/check/test_loops.py tests/model/check/test_portability.py"
PORTABILITY = "netloop/model/check/portability.py"
RULES = "netloop/model/check/loops.py"

FINDING = "none: it changes findings, and no number"

# fmt: off
FAULTS = [
    # ------------------------------------------------------------------ rules
    Mutant("a second limit of the same kind is no finding", RULES,
           "for second in limits[1:]:", "for second in limits[2:]:", CHECK, FINDING),
    Mutant("a state may change its element type", RULES,
           "if first.dtype != second.dtype:", "if False:", CHECK, FINDING),
    Mutant("a reverse iterator needs no COUNT", RULES,
           "if layer.reverse and layer.loop.limit(TripLimit.COUNT) is None:", "if False:", CHECK, FINDING),
    Mutant("loops around loops that enclose each other are reported too", RULES,
           "        reported |= {first, second}\n", "", CHECK, FINDING),
    Mutant("a stacked output may be one row too short for TensorRT", PORTABILITY,
           "0 <= length < count:", "0 <= length < count - 1:", CHECK, FINDING),
    Mutant("a WHILE may read an iterator through another layer", PORTABILITY,
           "        stack += fresh\n", "", CHECK, FINDING),
    Mutant("a tensor inside a conditional may leave it through a loop", PORTABILITY,
           "        return layer.loop.boundary(ILoopOutputLayer)\n", "        return []\n", CHECK, FINDING),
]
# fmt: on
