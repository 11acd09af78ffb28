"""What an engine is made of, as text or JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from netloop.api.context import IExecutionContext
from netloop.api.enums import LayerInformationFormat, ProfilingVerbosity
from netloop.api.observers import IErrorRecorder
from netloop.checked_attributes import Settings, none_or
from netloop.graph.layer import ILayer
from netloop.graph.tensor import ITensor
from netloop.layers.conditional import IIfConditionalBoundaryLayer
from netloop.layers.loop import ILoopBoundaryLayer
from netloop.passes import PASSES, Note

if TYPE_CHECKING:
    from netloop.api.engine import ICudaEngine


class EngineInspector(Settings):
    """Tells of the layers of an engine, with the keys that NVIDIA's tools read.

    A layer at the boundary of a loop or conditional names it as ``Loop`` or ``Conditional``. ``Loops`` tells by which
    strategy each loop ran, why, and which of its layers run for many trips at once; ``Passes`` tells what was
    done to make the network fast, and by which rule; both once a program was compiled.

    Attributes:
        execution_context: the context whose shapes are told; None for those of the engine.
        error_recorder: what is told of errors; None if nothing is.
    """

    execution_context: IExecutionContext | None = None
    error_recorder: IErrorRecorder | None = None

    CHECKS = {"execution_context": none_or(IExecutionContext), "error_recorder": none_or(IErrorRecorder)}

    def __init__(self, engine: ICudaEngine) -> None:
        self._engine = engine

    def get_engine_information(self, format: LayerInformationFormat) -> str:
        """All layers, loops, inputs and outputs."""
        layers = [self._layer(each) for each in self._engine.network.layers]
        if self._engine.origin.verbosity is ProfilingVerbosity.NONE:
            layers = []
        if format is LayerInformationFormat.ONELINE:
            return "\n".join(_line(each) for each in layers)
        bindings = [self._engine.get_tensor_name(index) for index in range(self._engine.num_io_tensors)]
        told = {
            "Layers": layers,
            "Loops": self._loops(),
            "Passes": [_done(each) for each in self._engine.notes],
            "Bindings": bindings,
        }
        return json.dumps(told, indent=2)

    def get_layer_information(self, layer_index: int, format: LayerInformationFormat) -> str:
        """One layer.

        Raises:
            IndexError: there is no layer of this number.
        """
        layer = self._layer(self._engine.network[layer_index])
        return _line(layer) if format is LayerInformationFormat.ONELINE else json.dumps(layer, indent=2)

    def _layer(self, layer: ILayer) -> Any:
        if self._engine.origin.verbosity is ProfilingVerbosity.LAYER_NAMES_ONLY:
            return layer.name
        told: dict[str, Any] = {
            "Name": layer.name,
            "LayerType": layer.LABEL,
            "Inputs": [_tensor(each) for each in layer.inputs if each is not None],
            "Outputs": [_tensor(each) for each in layer.outputs],
            "Metadata": layer.metadata,
        }
        if isinstance(layer, ILoopBoundaryLayer):
            told["Loop"] = layer.loop.name
        if isinstance(layer, IIfConditionalBoundaryLayer):
            told["Conditional"] = layer.conditional.name
        return told

    def _loops(self) -> list[dict[str, Any]]:
        moved = self._engine.batched_layers
        return [
            {
                "Name": name,
                "LoopStrategy": strategy.name,
                "Why": strategy.why,
                "Trips": strategy.trips,
                "Many trips at once": [layer.name for layer in moved.get(name, [])],
            }
            for name, strategy in self._engine.loop_strategies.items()
        ]


def _tensor(tensor: ITensor) -> dict[str, Any]:
    return {
        "Name": tensor.name,
        "Location": "Device",
        "Dimensions": list(tensor.shape),
        "Format/Datatype": f"Row major linear {tensor.type.dtype}",
    }


def _done(note: Note) -> dict[str, str]:
    return {"Name": note.by, "Done": note.what, "Rule": PASSES[note.by].rule}


def _line(layer: Any) -> str:
    if isinstance(layer, str):
        return layer
    names = [", ".join(each["Name"] for each in layer[side]) for side in ("Inputs", "Outputs")]
    return f"{layer['Name']} [{layer['LayerType']}]: {names[0]} -> {names[1]}"
