"""M1 to M14: whole models as exporters write them, and the same models in plain JAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import jax
import onnx

import netloop as trt
import netloop.onnx
from benchmarks.exported import Files
from benchmarks.workload import Arrays, Call, Jax, JaxFunction, Workload
from benchmarks.workloads import convolutional, recurrent, transformers
from netloop.compiler.host.routes import OFTEN


@dataclass(frozen=True)
class Exported(Workload):
    """A model from a file.

    Attributes:
        number, title: the parts of its name.
        file: the name of its files.
        in_jax: how hand-written JAX computes its outputs; None if there is no such program.
        prepared: what that program takes as weights, from those of PyTorch.
        most: the largest allowed difference of results, relative to the largest number.
        goal: the most that netloop may take, as a multiple of the best peer; None if there is no goal.
        changed_by: the passes that change it, which are those that its ablation leaves out.
        is_open: whether it has lengths that only a call knows. What numpy computes of it at first is compiled later.
    """

    number: int
    title: str
    file: str
    in_jax: JaxFunction | None = None
    prepared: Callable[[Arrays], Any] = dict
    most: float = 1e-4
    goal: float | None = None
    changed_by: tuple[str, ...] = ()
    is_open: bool = False

    @property
    def first_calls(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return OFTEN + 20 if self.is_open else 1

    @property
    def floors(self) -> Mapping[str, float]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return {} if self.goal is None else {"peer": self.goal}

    @property
    def passes(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.changed_by

    @property
    def name(self) -> str:
        return f"M{self.number} {self.title}"

    @property
    def tolerance(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.most

    @property
    def missing(self) -> str:
        return "" if self.files.exist else "python -m benchmarks.exported makes its model"

    @property
    def files(self) -> Files:
        """Where the model is."""
        return Files(self.file)

    def inputs(self) -> Arrays:
        return self.files.inputs()

    def network(self) -> trt.INetworkDefinition:
        return netloop.onnx.load(self.files.model)

    def expert(self) -> Jax | None:
        return self.in_jax and Jax(self.in_jax, jax.tree.map(jax.numpy.asarray, self.prepared(self.files.weights())))

    def models(self) -> Mapping[str, Callable[[], onnx.ModelProto]]:
        return {"model": lambda: onnx.load(str(self.files.model))}

    def torch(self, torch: Any) -> Call | None:
        if not self.files.program.exists():
            return None
        program = torch.export.load(self.files.program)
        moved = import_module("torch.export.passes").move_to_device_pass(program, str(torch.get_default_device()))
        module, leaves = moved.module(), import_module("torch.utils._pytree").tree_leaves
        names = [output.name for output in onnx.load(str(self.files.model), load_external_data=False).graph.output]
        order = [*self.files.inputs()]

        def call(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            results = module(*(inputs[name] for name in order))
            return dict(zip(names, leaves(results), strict=True))

        return call


CONVOLUTIONS = "channels_last", "weight_folding"

CASES: list[Workload] = [
    Exported(
        1, "ResNet-50 of 224", "resnet50", convolutional.resnet50, convolutional.folded,
        changed_by=("winograd", *CONVOLUTIONS),
    ),
    Exported(
        2, "MobileNetV3 of 224", "mobilenet", convolutional.mobilenet, convolutional.folded, changed_by=CONVOLUTIONS,
    ),
    Exported(3, "SSDlite of 320", "detector", most=1e-3, changed_by=("channels_last",), is_open=True),
    Exported(
        4, "BERT, 4 x 256, 128 tokens", "bert", transformers.bert, changed_by=("horizontal_fusion", "weight_folding"),
    ),
    Exported(
        5, "GPT-2, 4 x 256, one token after 127", "gpt2", transformers.gpt2,
        changed_by=("weight_prepacking", "weight_folding"),
    ),
    Exported(
        6, "speech, 2 LSTM of 256, 200 steps", "speech", recurrent.speech, changed_by=("gate_fusion", *CONVOLUTIONS),
    ),
    # onnxruntime itself differs by 0.09 with and without its optimizer
    Exported(7, "int8 MobileNetV3 of 224", "quantized", most=0.2, changed_by=CONVOLUTIONS),
    Exported(
        8, "reader of lines, 32 x 256", "reader", recurrent.reader, convolutional.folded,
        changed_by=("horizontal_fusion", "gate_fusion", "winograd", *CONVOLUTIONS),
    ),
    Exported(9, "500 trees, 10,000 rows", "forest"),
    Exported(10, "text to speech, 50 letters", "voice", goal=2, is_open=True),
    Exported(11, "growing list of 100", "growing", goal=3, changed_by=("growing_lists",), is_open=True),
    Exported(12, "perceptron of scikit-learn, 1 row", "perceptron", goal=2),
    Exported(13, "perceptron of PyTorch, 1 row", "dense", goal=2),
    Exported(14, "100 boosted trees, 1 row", "boosting", goal=2),
]  # fmt: skip
