"""How each model is made, by the exporters that people use."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torchvision
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from skl2onnx import to_onnx
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.neural_network import MLPRegressor
from torch import Tensor, nn
from transformers import BertConfig, BertModel, DynamicCache, GPT2Config, GPT2LMHeadModel

from benchmarks.exported.files import Files

IMAGE = 1, 3, 224, 224


def export(files: Files, module: nn.Module, inputs: dict[str, Tensor], outputs: list[str]) -> None:
    """Export a module by torch.onnx.export as it is by default, with fixed shapes."""
    module = module.eval()
    files.save(
        {name: tensor.numpy() for name, tensor in inputs.items()},
        {name: value.numpy() for name, value in module.state_dict().items()},
    )
    torch.export.save(torch.export.export(module, tuple(inputs.values())), files.program)
    part = files.model.with_suffix(".part")
    torch.onnx.export(
        module, tuple(inputs.values()), str(part), input_names=list(inputs), output_names=outputs,
        dynamo=True, external_data=False, verbose=False,
    )  # fmt: skip
    os.replace(part, files.model)


def settled(module: nn.Module, *inputs: Any) -> nn.Module:
    """A module whose batch norms have the statistics of what they get; otherwise all signals end as constants."""
    module = module.eval()
    norms = [value for value in module.modules() if isinstance(value, nn.BatchNorm2d)]
    for norm in norms:
        norm.train().momentum = None
    with torch.no_grad():
        module(*inputs)
    for norm in norms:
        norm.eval()
    return module


def resnet50(files: Files) -> None:
    """ResNet-50 of torchvision."""
    model = settled(torchvision.models.resnet50(weights=None), torch.randn(2, *IMAGE[1:]))
    export(files, model, {"image": torch.randn(IMAGE)}, ["scores"])


def mobilenet(files: Files) -> None:
    """MobileNetV3-Large of torchvision."""
    model = settled(torchvision.models.mobilenet_v3_large(weights=None), torch.randn(2, *IMAGE[1:]))
    export(files, model, {"image": torch.randn(IMAGE)}, ["scores"])


class Boxes(nn.Module):
    """A detector of torchvision for one image."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        found = self.model([image])[0]
        return found["boxes"], found["scores"], found["labels"]


def detector(files: Files) -> None:
    """SSDlite; its non-maximum suppression is exported by torch's older exporter."""
    model = torchvision.models.detection.ssdlite320_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=21, score_thresh=0.05
    )
    for module in model.head.classification_head.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.normal_(module.weight, std=0.1)  # otherwise all scores are nearly equal
    settled(model, [torch.rand(3, 320, 320), torch.rand(3, 320, 320)])
    image = torch.rand(3, 320, 320)
    files.save({"image": image.numpy()}, {})
    torch.onnx.export(
        Boxes(model).eval(), (image,), str(files.model), input_names=["image"],
        output_names=["boxes", "scores", "labels"], opset_version=17, dynamo=False,
    )  # fmt: skip


class LastState(nn.Module):
    """What BERT ends with."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        return self.model(input_ids=ids, attention_mask=mask).last_hidden_state


def bert(files: Files) -> None:
    """BERT of four small layers."""
    settings = BertConfig(
        hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024, vocab_size=2000
    )
    inputs = {"ids": torch.randint(0, 2000, (1, 128)), "mask": torch.ones(1, 128, dtype=torch.int64)}
    export(files, LastState(BertModel(settings, add_pooling_layer=False)), inputs, ["states"])


class Step(nn.Module):
    """A step of GPT-2 with its cache as plain tensors."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        cache = DynamicCache()
        for layer in range(len(keys)):
            cache.update(keys[layer], values[layer], layer)
        made = self.model(input_ids=ids, past_key_values=cache, use_cache=True)
        pairs = [(layer.keys, layer.values) for layer in made.past_key_values.layers]
        return made.logits, torch.stack([key for key, _ in pairs]), torch.stack([value for _, value in pairs])


def gpt2(files: Files) -> None:
    """A step of GPT-2 of four small layers."""
    settings = GPT2Config(n_embd=256, n_layer=4, n_head=4, vocab_size=2000, n_positions=256)
    cache = torch.randn(4, 1, 4, 127, 64)
    inputs = {"ids": torch.tensor([[7]]), "keys": cache, "values": torch.randn_like(cache)}
    export(files, Step(GPT2LMHeadModel(settings)), inputs, ["logits", "new_keys", "new_values"])


class Speech(nn.Module):
    """Features of sound to letters: two convolutions along time, two layers of LSTM, a product."""

    def __init__(self) -> None:
        super().__init__()
        self.near = nn.Sequential(nn.Conv1d(80, 256, 5, 2, 2), nn.ReLU(), nn.Conv1d(256, 256, 5, 1, 2), nn.ReLU())
        self.far = nn.LSTM(256, 256, num_layers=2, batch_first=True)
        self.letters = nn.Linear(256, 32)

    def forward(self, sound: Tensor) -> Tensor:
        return self.letters(self.far(self.near(sound).transpose(1, 2))[0]).log_softmax(-1)


def speech(files: Files) -> None:
    """The network of sound."""
    export(files, Speech(), {"sound": torch.randn(1, 80, 400)}, ["letters"])


class Images(CalibrationDataReader):
    """A few images of noise, from which the ranges of activations are taken."""

    def __init__(self) -> None:
        self.left = [
            {"image": np.random.default_rng(index).normal(size=IMAGE).astype(np.float32)} for index in range(4)
        ]

    def get_next(self) -> dict[str, np.ndarray] | None:
        """The next image."""
        return self.left.pop() if self.left else None


def quantized(files: Files) -> None:
    """The MobileNet with pairs of QuantizeLinear and DequantizeLinear, by onnxruntime's quantizer."""
    real = Files("mobilenet")
    if not real.exist:
        mobilenet(real)
    files.save(real.inputs(), {})
    ready, part = files.model.with_suffix(".ready"), files.model.with_suffix(".part")
    quant_pre_process(str(real.model), str(ready))
    quantize_static(
        str(ready), str(part), Images(), quant_format=QuantFormat.QDQ, per_channel=True,
        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
    )  # fmt: skip
    ready.unlink()
    os.replace(part, files.model)


class Reader(nn.Module):
    """A recogniser of lines of text: convolutions, an LSTM in both directions, scores of letters."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for before, after, pool in ((1, 64, (2, 2)), (64, 128, (2, 2)), (128, 256, (2, 1)), (256, 256, (4, 1))):
            layers += [nn.Conv2d(before, after, 3, 1, 1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(pool, pool)]
        self.image = nn.Sequential(*layers)
        self.line = nn.LSTM(256, 128, bidirectional=True, batch_first=True)
        self.letters = nn.Linear(256, 100)

    def forward(self, line: Tensor) -> tuple[Tensor, Tensor]:
        columns = self.image(line).squeeze(2).transpose(1, 2)
        scores = self.letters(self.line(columns)[0]).softmax(-1)
        return scores, scores.argmax(-1)


def reader(files: Files) -> None:
    """The network of lines of text."""
    export(
        files,
        settled(Reader(), torch.randn(2, 1, 32, 256)),
        {"line": torch.randn(1, 1, 32, 256)},
        ["scores", "letters"],
    )


def fitted(files: Files, model: Any, rows: int) -> None:
    """Fit an estimator of scikit-learn to 2,000 rows of 20 numbers, for a call of a number of rows."""
    numbers = np.random.default_rng(0)
    x = numbers.normal(size=(2000, 20)).astype(np.float32)
    y = np.sin(x[:, 0]) + x[:, 1] * x[:, 2] + 0.1 * numbers.normal(size=len(x))
    model.fit(x, y)
    files.save({"X": numbers.normal(size=(rows, 20)).astype(np.float32)}, {})
    files.model.write_bytes(to_onnx(model, x[:1]).SerializeToString())


def forest(files: Files) -> None:
    """500 trees of at most 8 levels, for 10,000 rows."""
    fitted(files, RandomForestRegressor(500, max_depth=8, random_state=0, n_jobs=2), 10_000)


def boosting(files: Files) -> None:
    """100 boosted trees, for one row."""
    fitted(files, GradientBoostingRegressor(random_state=0), 1)


def perceptron(files: Files) -> None:
    """A multilayer perceptron of scikit-learn, for one row."""
    fitted(files, MLPRegressor(hidden_layer_sizes=(64, 64), random_state=0, max_iter=50, tol=1e-2), 1)


def dense(files: Files) -> None:
    """A multilayer perceptron of PyTorch, for one row."""
    layers = [nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10), nn.Softmax(-1)]
    export(files, nn.Sequential(*layers), {"row": torch.randn(1, 64)}, ["scores"])


class Voice(nn.Module):
    """Letters to frames of sound: each letter decides how many frames it lasts, and convolutions smooth them."""

    def __init__(self) -> None:
        super().__init__()
        self.letters = nn.Embedding(40, 64)
        self.lengths = nn.Linear(64, 1)
        layers = [value for _ in range(12) for value in (nn.Conv1d(64, 64, 5, padding=2), nn.ReLU())]
        self.decoder = nn.Sequential(*layers, nn.Conv1d(64, 80, 1))

    def forward(self, text: Tensor) -> Tensor:
        letters = self.letters(text)[0]
        ends = torch.ceil(8 * self.lengths(letters)[:, 0].sigmoid()).cumsum(0)
        frames = torch.arange(ends[-1].long())
        return self.decoder(letters[(frames[:, None] >= ends).sum(1)].T[None])


def voice(files: Files) -> None:
    """The network of speech, whose length only a call knows; exported by torch's older exporter, as is usual."""
    text = torch.randint(0, 40, (1, 50))
    files.save({"text": text.numpy()}, {})
    torch.onnx.export(
        Voice().eval(), (text,), str(files.model), input_names=["text"], output_names=["sound"],
        opset_version=17, dynamo=False,
    )  # fmt: skip


class Growing(nn.Module):
    """A loop that appends to a list."""

    def __init__(self) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.randn(8, 8) / 3)

    def forward(self, x: Tensor, steps: Tensor) -> Tensor:
        state = torch.zeros(4, 8)
        states: list[Tensor] = []
        for _ in range(int(steps)):
            state = torch.tanh(state @ self.matrix + x)
            states.append(state)
        return torch.stack(states)


def growing(files: Files) -> None:
    """A list of 100 states, by TorchScript."""
    inputs = {"x": torch.randn(4, 8), "steps": torch.tensor(100)}
    files.save({name: tensor.numpy() for name, tensor in inputs.items()}, {})
    torch.onnx.export(
        torch.jit.script(Growing().eval()), tuple(inputs.values()), str(files.model), input_names=list(inputs),
        output_names=["states"], opset_version=17, dynamo=False,
    )  # fmt: skip


MAKERS: dict[str, Callable[[Files], None]] = {
    "resnet50": resnet50,
    "mobilenet": mobilenet,
    "detector": detector,
    "bert": bert,
    "gpt2": gpt2,
    "speech": speech,
    "quantized": quantized,
    "reader": reader,
    "forest": forest,
    "voice": voice,
    "growing": growing,
    "perceptron": perceptron,
    "dense": dense,
    "boosting": boosting,
}
"""The models by the names of their files."""
