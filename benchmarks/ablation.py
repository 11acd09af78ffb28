"""The effect of each pass on a workload."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import netloop as trt
from benchmarks.table import ABLATED
from benchmarks.workload import Arrays, Call, Workload


@dataclass(frozen=True)
class Ablation(Workload):
    """A workload with all passes, without each of the passes that it measures, and without any pass."""

    workload: Workload

    @property
    def name(self) -> str:
        return f"{self.workload.name}{ABLATED}"

    @property
    def tolerance(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.workload.tolerance

    @property
    def first_calls(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.workload.first_calls

    @property
    def missing(self) -> str:
        return self.workload.missing

    def inputs(self) -> Arrays:
        return self.workload.inputs()

    def network(self) -> trt.INetworkDefinition | None:
        return self.workload.network()

    def parts(self) -> Mapping[str, Callable[[], Call]]:
        network = self.network()
        assert network is not None

        def compiled(passes: Collection[str]) -> Callable[[], Call]:
            return lambda: trt.compile(network, passes=passes)

        every = frozenset(trt.PASSES)
        without = {f"without {pass_}": compiled(every - {pass_}) for pass_ in self.workload.passes}
        return {**without, "without any": compiled(())}

    def drive(self, call: Call, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.workload.drive(call, inputs)
