"""NVIDIA's tutorial for a Jetson's DLA: its scripts build an engine and run it on generated pictures."""

import runpy
import sys

import pytest
import torch
import torchvision

from tests.other_projects.uses.models import classifier, expected


class Pictures(torch.utils.data.Dataset):
    """Pictures of random numbers instead of CIFAR 10."""

    def __init__(self, root=None, train=True, download=False, transform=None):
        generator = torch.Generator().manual_seed(int(train))
        self.images = torch.randn(6, 3, 32, 32, generator=generator)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        if index >= len(self):
            raise IndexError(index)
        return self.images[index], index


@pytest.mark.parametrize("options", [[], ["--fp16"], ["--int8"], ["--dla_core", "0", "--gpu_fallback", "--fp16"]])
def test_engine_is_built_and_run(tmp_path, monkeypatch, capsys, options):
    monkeypatch.setattr(torchvision.datasets, "CIFAR10", Pictures)
    model, engine = classifier(tmp_path / "model.onnx", shape=(2, 3, 32, 32)), str(tmp_path / "model.engine")
    monkeypatch.setattr(sys, "argv", ["build.py", model, "--output", engine, "--batch_size", "2", *options])
    runpy.run_module("build", run_name="__main__")
    monkeypatch.setattr(sys, "argv", ["eval.py", engine, "--batch_size", "2"])
    runpy.run_module("eval", run_name="__main__")

    images = Pictures(train=False).images.numpy()
    guesses = [expected(model, input=images[i : i + 2])["output"].argmax(-1) for i in range(0, 6, 2)]
    hits = sum(int(guess == 2 * i + j) for i, pair in enumerate(guesses) for j, guess in enumerate(pair))
    assert f"TEST ACCURACY: {hits / 6}" in capsys.readouterr().out
