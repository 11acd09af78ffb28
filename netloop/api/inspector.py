"""The engine inspector, which reports layers, loops and passes as text or JSON."""

import json
from collections.abc import Sequence
from typing import Any

from netloop.api.context import IExecutionContext
from netloop.api.engine_tensors import EngineTensors
from netloop.api.enums import LayerInformationFormat, ProfilingVerbosity
from netloop.api.observers import IErrorRecorder
from netloop.compiler.launches import Launches
from netloop.compiler.passes import PASSES, Note
from netloop.compiler.trial import Trial
from netloop.model.graph.layer import ILayer
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.conditional import IIfConditionalBoundaryLayer
from netloop.model.layers.loop import ILoopBoundaryLayer
from netloop.values.checked_attributes import CheckedAttributes, none_or
from netloop.values.string_arrays import type_name
from netloop.values.unpicklable import Unpicklable


class EngineInspector(Unpicklable, CheckedAttributes):
    """Report the layers of an engine, with the keys that NVIDIA's tools read.

    A boundary layer names its loop or conditional as ``Loop`` or ``Conditional``. ``Loops`` has the lowering strategy
    of each loop, its reason, and the layers computed for many iterations at once; ``Passes`` has the changes made by
    optimization passes, with the rule of each pass. Both are empty until a program is compiled. ``Tactics`` has the
    forms of passes that tuning timed, with the times of a call, and is empty for an engine that was not tuned here.
    ``Launches`` has the launches of a call on a GPU, and of an iteration of each loop of the compiled program; it is
    null on other devices. ``TF32`` is the flag of the build, and ``Products`` the type to which the device rounds the
    operands of float32 products.

    Attributes:
        execution_context: a context of the engine; recorded without effect.
        error_recorder: receives errors; None for no recorder.
    """

    execution_context: IExecutionContext[Any] | None = None
    error_recorder: IErrorRecorder | None = None

    CHECKS = {"execution_context": none_or(IExecutionContext), "error_recorder": none_or(IErrorRecorder)}

    def __init__(
        self, engine: EngineTensors, verbosity: ProfilingVerbosity, tensors: Sequence[str], trials: Sequence[Trial] = ()
    ) -> None:
        self._engine = engine
        self._verbosity = verbosity
        self._tensors = list(tensors)
        self._trials = trials

    def get_engine_information(self, format: LayerInformationFormat) -> str:
        """Return a report of all layers, loops, inputs and outputs, as one line a layer or as JSON."""
        layers = [self._layer(layer) for layer in self._engine.network.layers]
        if self._verbosity is ProfilingVerbosity.NONE:
            layers = []
        if format is LayerInformationFormat.ONELINE:
            return "\n".join(_line(layer) for layer in layers)
        report = {
            "Layers": layers,
            "Loops": self._loops(),
            "Passes": [_pass(note) for note in self._engine.notes if note.by in PASSES],
            "Tactics": [_tactic(trial) for trial in self._trials],
            "Launches": _launches(self._engine.launches),
            "TF32": self._engine.build_options.tf32,
            "Products": self._engine.product_precision,
            "Bindings": self._tensors,
        }
        return json.dumps(report, indent=2)

    def get_layer_information(self, layer_index: int, format: LayerInformationFormat) -> str:
        """Return a report of one layer, as a line or as JSON.

        Raises:
            IndexError: there is no layer of this index.
        """
        layer = self._layer(self._engine.network[layer_index])
        return _line(layer) if format is LayerInformationFormat.ONELINE else json.dumps(layer, indent=2)

    def _layer(self, layer: ILayer) -> Any:
        if self._verbosity is ProfilingVerbosity.LAYER_NAMES_ONLY:
            return layer.name
        report: dict[str, Any] = {
            "Name": layer.name,
            "LayerType": layer.LABEL,
            "Inputs": [_tensor(tensor) for tensor in layer.inputs if tensor is not None],
            "Outputs": [_tensor(tensor) for tensor in layer.outputs],
            "Metadata": layer.metadata,
        }
        if isinstance(layer, ILoopBoundaryLayer):
            report["Loop"] = layer.loop.name
        if isinstance(layer, IIfConditionalBoundaryLayer):
            report["Conditional"] = layer.conditional.name
        return report

    def _loops(self) -> list[dict[str, Any]]:
        batched = self._engine.batched_layers
        return [
            {
                "Name": name,
                "LoopStrategy": strategy.name,
                "Why": strategy.why,
                "TripCount": strategy.trips,
                "BatchedLayers": [layer.name for layer in batched.get(name, [])],
            }
            for name, strategy in self._engine.loop_strategies.items()
        ]


def _tensor(tensor: ITensor) -> dict[str, Any]:
    return {
        "Name": tensor.name,
        "Location": "Device",
        "Dimensions": list(tensor.shape),
        "Format/Datatype": f"Row major linear {type_name(tensor.type.dtype)}",
    }


def _pass(note: Note) -> dict[str, str]:
    return {"Name": note.by, "Done": note.what, "Rule": PASSES[note.by].rule}


def _tactic(trial: Trial) -> dict[str, Any]:
    times = {"Milliseconds": trial.seconds, "MillisecondsBefore": trial.before}
    in_ms = {name: None if number is None else number * 1e3 for name, number in times.items()}
    return {"Name": trial.by, "Form": trial.form, **in_ms, "Chosen": trial.chosen, "Failure": trial.failure}


def _launches(launches: Launches | None) -> dict[str, Any] | None:
    if launches is None:
        return None
    loops = [{"Name": loop.name, "Iteration": loop.launches, "TripCount": loop.iterations} for loop in launches.loops]
    return {"Call": launches.total, "Entry": launches.entry, "Loops": loops}


def _line(layer: Any) -> str:
    if isinstance(layer, str):
        return layer
    names = [", ".join(value["Name"] for value in layer[side]) for side in ("Inputs", "Outputs")]
    return f"{layer['Name']} [{layer['LayerType']}]: {names[0]} -> {names[1]}"
