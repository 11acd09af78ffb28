"""Recurrent layers and single architectures of torch.nn."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tests.real_models.recipe import Recipes
from tests.real_models.sources.exporting import Make, add, image, tensors_of

RECIPES = Recipes()


class Recurrent(nn.Module):
    """A recurrent layer, with its last states."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return tuple(tensors_of(self.layer(x)))


class Packed(nn.Module):
    """A recurrent layer over sequences of different lengths."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(x, lengths, batch_first=True)
        return pad_packed_sequence(self.layer(packed)[0], batch_first=True)[0]


class WithStates(nn.Module):
    """An LSTM with given initial states, as decoders call it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(8, 12)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, ...]:
        y, (h, c) = self.layer(x, (h, c))
        return y, h, c


class Cells(nn.Module):
    """A cell called in a Python loop, which exporters unroll."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        for step in range(4):
            h = self.cell(x[step], h)
        return h


def sequence(length: int, batch: int = 3, width: int = 8) -> Tensor:
    return torch.randn(length, batch, width, generator=torch.Generator().manual_seed(length))


def recurrent(kind: type[nn.Module], *, dynamo: bool = False, **options: Any) -> Make:
    """A recurrent layer, for two batch sizes, and two lengths unless the exporter fixes them."""

    def make() -> tuple[nn.Module, list[dict[str, Tensor]]]:
        return Recurrent(kind(8, 12, **options)), [{"x": sequence(5)}, {"x": sequence(5 if dynamo else 9, 4)}]

    return make


def packed(kind: type[nn.Module], **options: Any) -> Make:
    """A recurrent layer over packed sequences."""

    def make() -> tuple[nn.Module, list[dict[str, Tensor]]]:
        sizes = [
            {"x": sequence(lengths[0]).transpose(0, 1).contiguous(), "lengths": torch.tensor(lengths)}
            for lengths in ([6, 4, 1], [8, 8, 3])
        ]
        return Packed(kind(8, 12, batch_first=True, **options)), sizes

    return make


def with_states() -> tuple[nn.Module, list[dict[str, Tensor]]]:
    """An LSTM with initial states, for two batch sizes."""
    sizes = [{"x": sequence(4, n), "h": sequence(1, n, 12), "c": sequence(2, n, 12)[:1]} for n in (2, 3)]
    return WithStates(), sizes


def cells(kind: type[nn.Module]) -> Make:
    """A cell in an unrolled loop, for two batch sizes."""
    return lambda: (Cells(kind(8, 12)), [{"x": sequence(4, n), "h": sequence(1, n, 12)[0]} for n in (2, 5)])


class UNet(nn.Module):
    """A small U-Net."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([self.block(3, 8), self.block(8, 16), self.block(16, 32)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(32, 16, 2, 2), nn.ConvTranspose2d(16, 8, 2, 2)])
        self.merge = nn.ModuleList([self.block(32, 16), self.block(16, 8)])

    @staticmethod
    def block(channels: int, made: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(channels, made, 3, padding=1), nn.BatchNorm2d(made), nn.PReLU(made))

    def forward(self, x: Tensor) -> Tensor:
        first = self.down[0](x)
        second = self.down[1](nn.functional.max_pool2d(first, 2))
        x = self.down[2](nn.functional.avg_pool2d(second, 3, 2, 1))
        for up, merge, skipped in zip(self.up, self.merge, (second, first), strict=True):
            x = merge(torch.cat([up(x), skipped], 1))
        return nn.functional.interpolate(x, scale_factor=2, mode="bicubic", align_corners=True)


class Transformer(nn.Module):
    """torch.nn.Transformer with a causal mask."""

    def __init__(self) -> None:
        super().__init__()
        self.model = nn.Transformer(16, 2, 2, 2, 32, batch_first=True)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        return self.model(source, target, tgt_mask=mask, tgt_is_causal=True)


def transformer() -> tuple[nn.Module, list[dict[str, Tensor]]]:
    """A transformer for two batch sizes."""
    return Transformer(), [{"source": sequence(n, 7, 16), "target": sequence(n, 5, 16)} for n in (2, 3)]


class Warp(nn.Module):
    """A spatial transformer: an affine grid and its samples."""

    def forward(self, image: Tensor, theta: Tensor) -> Tensor:
        grid = nn.functional.affine_grid(theta, list(image.shape), align_corners=False)
        return nn.functional.grid_sample(image, grid, mode="bilinear", padding_mode="border", align_corners=False)


def warp() -> tuple[nn.Module, list[dict[str, Tensor]]]:
    """Images and affine transformations."""
    theta = torch.tensor([[[0.9, 0.2, 0.1], [-0.2, 0.8, 0.0]]])
    return Warp(), [{"image": image(n, 12), "theta": theta.repeat(n, 1, 1)} for n in (1, 2)]


class Spectrum(nn.Module):
    """The power spectrum of windows of a signal."""

    def forward(self, signal: Tensor) -> Tensor:
        found = torch.stft(signal, 32, 16, window=torch.hann_window(32), center=False, return_complex=False)
        return torch.log1p(found.square().sum(-1))


def spectrum() -> tuple[nn.Module, list[dict[str, Tensor]]]:
    """Signals of one length, in two batch sizes."""
    return Spectrum(), [{"signal": sequence(n, 1, 160)[:, 0]} for n in (2, 3)]


for dynamo in (True, False):
    suffix = "" if dynamo else "_script"
    for kind in (nn.RNN, nn.GRU, nn.LSTM):
        name = f"rnn_{kind.__name__.lower()}"
        add(RECIPES, f"{name}{suffix}", recurrent(kind, dynamo=dynamo), dynamo=dynamo)
        deep = recurrent(kind, dynamo=dynamo, num_layers=2, bidirectional=True)
        add(RECIPES, f"{name}_deep_bidirectional{suffix}", deep, dynamo=dynamo)
    add(RECIPES, f"rnn_lstm_states{suffix}", with_states, dynamo=dynamo)
add(RECIPES, "rnn_relu_script", recurrent(nn.RNN, nonlinearity="relu", bias=False), dynamo=False)
add(RECIPES, "rnn_lstm_batch_first_script", recurrent(nn.LSTM, batch_first=True), dynamo=False)
add(RECIPES, "rnn_packed_lstm_script", packed(nn.LSTM, bidirectional=True), dynamo=False)
add(RECIPES, "rnn_packed_gru_script", packed(nn.GRU), dynamo=False)
add(RECIPES, "rnn_gru_cells", cells(nn.GRUCell))
add(RECIPES, "nn_unet", lambda: (UNet(), [{"x": image(n, 32)} for n in (1, 2)]))
add(RECIPES, "nn_unet_script", lambda: (UNet(), [{"x": image(1, n)} for n in (32, 48)]), dynamo=False)
add(RECIPES, "nn_transformer", transformer)
add(RECIPES, "nn_warp", warp)
add(RECIPES, "nn_warp_script", warp, dynamo=False, opset_version=20)
add(RECIPES, "nn_spectrum_script", spectrum, dynamo=False)
