"""Export by PyTorch's two exporters."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch import Tensor, nn

from tests.real_models.recipe import Inputs, Recipes, Sizes

DYNAMO, SCRIPT = "torch.onnx.export", "torch.onnx.export(dynamo=False)"
Make = Callable[[], tuple[nn.Module, list[dict[str, Tensor]]]]
"""Makes a model and its inputs, by name and in the order of its arguments, for each size."""


def lengths_that_vary(sizes: Sequence[dict[str, Tensor]], name: str) -> list[int]:
    """The axes of an input whose lengths differ between the sizes."""
    shapes = [size[name].shape for size in sizes]
    return [axis for axis in range(len(shapes[0])) if len({shape[axis] for shape in shapes}) > 1]


def write(path: Path, make: Make, dynamo: bool, **options: Any) -> Sizes:
    """Export a model, with those axes dynamic whose lengths differ between the sizes."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, sizes = make()
    names = list(sizes[0])
    if dynamo:
        axes: Any = [dict.fromkeys(lengths_that_vary(sizes, name), torch.export.Dim.AUTO) for name in names]
        variadic = getattr(model, "variadic", False)
        options["dynamic_shapes"] = (tuple(axes),) if variadic else tuple(axes)
    else:
        options["dynamic_axes"] = {
            name: {axis: f"{name}_{axis}" for axis in lengths_that_vary(sizes, name)} for name in names
        }
        options.setdefault("opset_version", 17)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model.eval() if not isinstance(model, torch.jit.ScriptModule) else model,
            tuple(sizes[0].values()),
            str(path),
            dynamo=dynamo,
            input_names=names,
            external_data=False,
            verbose=False,
            **options,
        )
    return [with_inputs_of(path, size) for size in sizes]


def with_inputs_of(path: Path, inputs: dict[str, Tensor]) -> Inputs:
    """Those inputs as arrays that the exported model still has."""
    kept = {info.name for info in onnx.load(path).graph.input}
    return {name: tensor.numpy() for name, tensor in inputs.items() if name in kept}


def add(recipes: Recipes, name: str, make: Make, *, dynamo: bool = True, **options: Any) -> None:
    """Add the recipe of a model that PyTorch exports."""
    tool = DYNAMO if dynamo else SCRIPT
    recipes.add(name, tool, lambda path: write(path, make, dynamo, **options))


def image(batch: int, side: int, channels: int = 3) -> Tensor:
    """Random images [batch, channels, side, side]."""
    made = np.random.default_rng(side + batch).random((batch, channels, side, side), np.float32)
    return torch.from_numpy(made)


class Keywords(nn.Module):
    """A model that is called with keywords, as one that is called with positional arguments and returns tensors."""

    variadic = True

    def __init__(self, model: nn.Module, names: Sequence[str], **fixed: Any) -> None:
        super().__init__()
        self.model, self.names, self.fixed = model, tuple(names), fixed

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        made = self.model(**dict(zip(self.names, inputs, strict=True)), **self.fixed)
        return tuple(tensors_of(made))


def tensors_of(value: Any) -> list[Tensor]:
    """The tensors in the outputs of a model, in order."""
    if isinstance(value, Tensor):
        return [value]
    if hasattr(value, "to_tuple"):
        value = value.to_tuple()
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for element in value for leaf in tensors_of(element)] if isinstance(value, list | tuple) else []
