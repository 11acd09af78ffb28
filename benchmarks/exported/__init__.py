"""Whole models as exporters write them: ``python -m benchmarks.exported`` makes those that are missing.

Their weights are random. Each has four files: NAME.onnx; NAME.inputs.npz, the arrays of a call; NAME.weights.npz, what
the model in PyTorch holds by its names, for the same model by hand; and NAME.pt2, that model by ``torch.export``.
"""

from benchmarks.exported.files import FOLDER, Files

__all__ = ["FOLDER", "Files"]
