"""The files of an exported model."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FOLDER = Path(os.environ.get("NETLOOP_BENCHMARK_MODELS") or Path(__file__).parent / "models")
"""Where exported models are."""


@dataclass(frozen=True)
class Files:
    """The files of a model.

    Attributes:
        name: the name that they begin with.
    """

    name: str

    @property
    def model(self) -> Path:
        """The model itself, in ONNX."""
        return FOLDER / f"{self.name}.onnx"

    @property
    def program(self) -> Path:
        """The model as ``torch.export`` has it; there is none for models that are not made in PyTorch."""
        return FOLDER / f"{self.name}.pt2"

    @property
    def exist(self) -> bool:
        """Whether the model was made; it is the last of its files to be written."""
        return self.model.exists()

    def inputs(self) -> dict[str, np.ndarray]:
        """The arrays of a call."""
        return dict(np.load(FOLDER / f"{self.name}.inputs.npz"))

    def weights(self) -> dict[str, np.ndarray]:
        """The weights by the names that they have in PyTorch; empty for models that are not made there."""
        path = FOLDER / f"{self.name}.weights.npz"
        return dict(np.load(path)) if path.exists() else {}

    def save(self, inputs: dict[str, np.ndarray], weights: dict[str, np.ndarray]) -> None:
        """Write the arrays."""
        for kind, arrays in {"inputs": inputs, "weights": weights}.items():
            if arrays:
                np.savez(FOLDER / f"{self.name}.{kind}.npz", allow_pickle=False, **arrays)
