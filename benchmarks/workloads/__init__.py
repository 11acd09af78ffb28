"""The workloads, one file each."""

from collections.abc import Sequence
from itertools import zip_longest

from benchmarks.workload import Workload
from benchmarks.workloads import (
    build,
    char_rnn,
    conditional,
    decoder,
    imported,
    models,
    nested,
    rnn,
    running_sum,
    search,
    selective_scan,
    tiny,
)

WORKLOADS: list[Workload] = [
    *rnn.CASES,
    *char_rnn.CASES,
    *tiny.CASES,
    *running_sum.CASES,
    *nested.CASES,
    *search.CASES,
    *conditional.CASES,
    *selective_scan.CASES,
    *decoder.CASES,
    *imported.CASES,
    *build.CASES,
    *models.CASES,
]

IMPORTANCE = (
    *("W1", "M1 ", "W4", "W8", "W2", "M2 ", "M6 ", "W6", "W9", "W7", "W5", "W3", "A1", "A2"),
    *("M4 ", "M5 ", "M3 ", "M8 ", "M10", "M11", "M7 ", "M9 ", "M12", "M13", "M14"),
)
"""The beginnings of the names of problems, the ones of most interest on a GPU first."""


def by_importance(beginnings: Sequence[str] = IMPORTANCE) -> list[Workload]:
    """The workloads whose names begin so: the first one of each beginning, then the second ones, and so on."""
    groups = [[workload for workload in WORKLOADS if workload.name.startswith(text)] for text in beginnings]
    return [workload for turn in zip_longest(*groups) for workload in turn if workload is not None]
