"""The collectives in a program of XLA, from its text."""

import re
from collections import Counter

KINDS = "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute"
COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.-]+) \(.*\{$")
OPERATION = re.compile(rf"= .*? ({'|'.join(KINDS)})(?:-start)?\(")
CALLED = re.compile(r"(?:body|condition|to_apply|calls|\w+_computations?)=(%?[\w.-]+|\{[^}]*\})")


def collectives(text: str) -> tuple[Counter[str], Counter[str]]:
    """The numbers of collectives outside of loops, and in one iteration of all loops."""
    found: dict[str, Counter[str]] = {}
    called: dict[str, set[str]] = {}
    loops: set[str] = set()
    name = ""
    for line in text.splitlines():
        start = COMPUTATION.match(line)
        if start:
            name = start[1]
            found[name], called[name] = Counter(), set()
        for kind in OPERATION.findall(line):
            found[name][kind] += 1
        names = {word.strip("% ") for group in CALLED.findall(line) for word in group.strip("{}").split(",")}
        if name:
            called[name] |= names
        if re.search(r" while\(", line):
            loops |= names
    todo, inside = [*loops], set[str]()
    while todo:
        each = todo.pop()
        if each not in inside:
            inside.add(each)
            todo += called.get(each, ())
    count = {where: sum((c for n, c in found.items() if (n in inside) == where), Counter()) for where in (False, True)}
    return count[False], count[True]
