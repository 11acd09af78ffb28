"""The part of the exporter that loops and conditionals call back, apart so that they need not import it."""

from collections.abc import Sequence
from typing import Protocol

from netloop.formats.onnx_graph.graph import Value
from netloop.formats.onnx_graph.node_builder import NodeBuilder
from netloop.formats.onnx_graph.value_scope import ValueScope
from netloop.model.graph import ILayer, ITensor, TypeTable
from netloop.model.nest import Step


class StepExporter(Protocol):
    """``NetworkExporter``, as loops, conditionals and row shapes see it; its methods are documented there."""

    types: TypeTable

    def export_steps(self, steps: Sequence[Step], scope: ValueScope) -> None: ...
    def read(self, tensor: ITensor, scope: ValueScope) -> Value: ...
    def builder(self, scope: ValueScope, layer: ILayer | None = None, name: str = "") -> NodeBuilder: ...
    def translate(self, layer: ILayer, scope: ValueScope, inputs: Sequence[Value | None]) -> tuple[Value, ...]: ...
