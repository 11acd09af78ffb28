"""Models of torchaudio, with random weights."""

from typing import Any

import torch
import torchaudio
from torch import Tensor, nn

from tests.real_models.recipe import Recipes
from tests.real_models.sources.exporting import add, tensors_of

RECIPES = Recipes()

Sizes = list[dict[str, Tensor]]


class Tensors(nn.Module):
    """A model that returns its tensors only."""

    variadic = True

    def __init__(self, model: nn.Module, names: tuple[str, ...] = (), **fixed: Any) -> None:
        super().__init__()
        self.model, self.names, self.fixed = model, names, fixed

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        return tuple(tensors_of(self.model(*inputs, **self.fixed)))


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def conformer() -> tuple[nn.Module, Sizes]:
    model = torchaudio.models.Conformer(
        input_dim=16, num_heads=2, ffn_dim=24, num_layers=2, depthwise_conv_kernel_size=5
    )
    return Tensors(model), [{"x": numbers(2, n, 16), "lengths": torch.tensor([n, n - 3])} for n in (12, 20)]


def separation() -> tuple[nn.Module, Sizes]:
    model = torchaudio.models.ConvTasNet(
        num_sources=2, enc_kernel_size=8, enc_num_feats=16, msk_kernel_size=3, msk_num_feats=8, msk_num_hidden_feats=16,
        msk_num_layers=2, msk_num_stacks=2,
    )  # fmt: skip
    return Tensors(model), [{"x": numbers(n, 1, m)} for n, m in ((1, 160), (2, 240))]


def deep_speech() -> tuple[nn.Module, Sizes]:
    return Tensors(torchaudio.models.DeepSpeech(16, 32, 12)), [
        {"x": numbers(n, 1, m, 16)} for n, m in ((2, 10), (3, 14))
    ]


def emformer() -> tuple[nn.Module, Sizes]:
    model = torchaudio.models.Emformer(
        input_dim=16, num_heads=2, ffn_dim=24, num_layers=2, segment_length=4, right_context_length=1
    )
    return Tensors(model), [{"x": numbers(2, n + 1, 16), "lengths": torch.tensor([n, n])} for n in (12, 12)]


def wave_to_letters() -> tuple[nn.Module, Sizes]:
    return Tensors(torchaudio.models.Wav2Letter(12, "mfcc", 13)), [{"x": numbers(n, 13, 80)} for n in (1, 2)]


def wave_rnn() -> tuple[nn.Module, Sizes]:
    model = torchaudio.models.WaveRNN(
        upsample_scales=[2, 2], n_classes=16, hop_length=4, n_res_block=1, n_rnn=16, n_fc=16, kernel_size=3, n_freq=8,
        n_hidden=16, n_output=16,
    )  # fmt: skip
    return Tensors(model), [{"waveform": numbers(n, 1, 16), "specgram": numbers(n, 1, 8, 6)} for n in (1, 2)]


def transducer() -> nn.Module:
    return torchaudio.models.emformer_rnnt_model(
        input_dim=16,
        encoding_dim=24,
        num_symbols=20,
        segment_length=4,
        right_context_length=1,
        time_reduction_input_dim=16,
        time_reduction_stride=2,
        transformer_num_heads=2,
        transformer_ffn_dim=24,
        transformer_num_layers=2,
        transformer_dropout=0.0,
        transformer_activation="relu",
        transformer_left_context_length=4,
        transformer_max_memory_size=0,
        transformer_weight_init_scale_strategy="depthwise",
        transformer_tanh_on_mem=True,
        symbol_embedding_dim=16,
        num_lstm_layers=1,
        lstm_hidden_dim=24,
        lstm_layer_norm=True,
        lstm_layer_norm_epsilon=1e-3,
        lstm_dropout=0.0,
    )


def predictor() -> tuple[nn.Module, Sizes]:
    sizes = [{"targets": torch.randint(0, 19, (2, n)), "lengths": torch.tensor([n, n])} for n in (5, 8)]
    return Tensors(transducer().predictor), sizes


def joiner() -> tuple[nn.Module, Sizes]:
    def size(n: int, m: int) -> dict[str, Tensor]:
        return {
            "sources": numbers(2, n, 24),
            "source_lengths": torch.tensor([n, n]),
            "targets": numbers(2, m, 24),
            "target_lengths": torch.tensor([m, m]),
        }

    return Tensors(transducer().joiner), [size(4, 3), size(6, 5)]


def demucs() -> tuple[nn.Module, Sizes]:
    model = torchaudio.models.HDemucs(sources=["a", "b"], channels=4, nfft=64, depth=2)
    return Tensors(model), [{"x": numbers(n, 2, 1024)} for n in (1, 2)]


MAKES: dict[str, Any] = {
    "conformer": conformer,
    "convtasnet": separation,
    "deepspeech": deep_speech,
    "emformer": emformer,
    "wav2letter": wave_to_letters,
    "wavernn": wave_rnn,
    "rnnt_predictor": predictor,
    "rnnt_joiner": joiner,
    "hdemucs": demucs,
}
for name, make in MAKES.items():
    add(RECIPES, f"ta_{name}_script", make, dynamo=False)
for name in ("deepspeech", "wavernn", "rnnt_predictor", "rnnt_joiner"):
    add(RECIPES, f"ta_{name}", MAKES[name])
