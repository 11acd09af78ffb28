"""A plugin of pytest for torch2trt's tests: the exporter of PyTorch for which it was written, and the same numbers."""

import functools

import torch


def pytest_configure() -> None:
    """Take the exporter that traces, and the same random numbers in each run."""
    torch.onnx.export = functools.partial(torch.onnx.export, dynamo=False)
    torch.manual_seed(0)
