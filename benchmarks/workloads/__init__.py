"""The workloads, one file each."""

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
