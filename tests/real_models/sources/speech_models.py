"""Models of speech and music of transformers, with tiny random weights."""

from typing import Any

import torch
import transformers
from torch import Tensor, nn

from tests.real_models.recipe import Recipes
from tests.real_models.sources.exporting import Keywords, Make, add
from tests.real_models.sources.language_models import tokens
from tests.real_models.sources.media_models import SPEECH, VIT, sound

RECIPES = Recipes()

Sizes = list[dict[str, Tensor]]
WAVES = {
    "Wav2Vec2Conformer": {**SPEECH, "position_embeddings_type": "relative", "conv_depthwise_kernel_size": 5},
    "SEWD": {**SPEECH, "squeeze_factor": 2, "position_buckets": 8, "max_position_embeddings": 64},
    "UniSpeechSat": SPEECH,
    "UniSpeech": SPEECH,
}


def waves(kind: str, **more: Any) -> Make:
    """A recognizer of sounds, for two batch sizes and lengths."""

    def make() -> tuple[nn.Module, Sizes]:
        config = getattr(transformers, f"{kind}Config")(**{**WAVES[kind], **more})
        model = getattr(transformers, f"{kind}ForCTC")(config)
        return Keywords(model, ["input_values"]), [{"input_values": sound(*n)} for n in ((1, 1600), (2, 2400))]

    return make


def features(kind: str, head: str, width: int, config: Any) -> Make:
    """A model of frames of features, for two batch sizes and lengths."""

    def make() -> tuple[nn.Module, Sizes]:
        sizes = [{"input_features": torch.stack([sound(m, width)] * n)} for n, m in ((2, 32), (3, 48))]
        return Keywords(getattr(transformers, kind + head)(config()), ["input_features"]), sizes

    return make


def bert_of_speech() -> Any:
    options = {**SPEECH, "feature_projection_input_dim": 16, "conv_depthwise_kernel_size": 5}
    return transformers.Wav2Vec2BertConfig(**options, left_max_position_embeddings=8, right_max_position_embeddings=4)


def parakeet() -> Any:
    return transformers.ParakeetEncoderConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        conv_kernel_size=5,
        subsampling_conv_channels=8,
        num_mel_bins=16,
        attn_implementation="eager",
    )


def spectrogram() -> tuple[nn.Module, Sizes]:
    """Audio Spectrogram Transformer."""
    options = {key: value for key, value in VIT.items() if key != "image_size"}
    config = transformers.ASTConfig(**options, max_length=32, num_mel_bins=16, frequency_stride=6, time_stride=6)
    sizes = [{"input_values": torch.stack([sound(32, 16)] * n)} for n in (2, 3)]
    return Keywords(transformers.ASTForAudioClassification(config), ["input_values"]), sizes


class Codec(nn.Module):
    """One direction of a codec."""

    def __init__(self, model: nn.Module, way: str) -> None:
        super().__init__()
        self.model, self.way = model, way

    def forward(self, x: Tensor) -> Tensor:
        if self.way == "encode":
            answer = self.model.encode(x)
            return answer.audio_codes
        return self.model.decode(x, [None])[0] if self.way == "decode" else self.model(x)[0]


def encodec(way: str) -> Make:
    def make() -> tuple[nn.Module, Sizes]:
        config = transformers.EncodecConfig(
            num_filters=4,
            upsampling_ratios=[4, 2],
            hidden_size=16,
            codebook_size=16,
            num_lstm_layers=1,
            target_bandwidths=[24.0],
            sampling_rate=800,
            num_residual_layers=1,
        )
        model = transformers.EncodecModel(config)
        if way == "encode":
            return Codec(model, way), [{"x": sound(n, 160)[:, None]} for n in (1, 2)]
        return Codec(model, way), [{"x": torch.randint(0, 16, (1, n, 4, 20))} for n in (1, 2)]

    return make


def dac() -> tuple[nn.Module, Sizes]:
    """The Descript audio codec, there and back."""
    config = transformers.DacConfig(
        encoder_hidden_size=8,
        downsampling_ratios=[2, 4],
        decoder_hidden_size=32,
        n_codebooks=3,
        codebook_size=16,
        codebook_dim=4,
    )
    return Codec(transformers.DacModel(config), "both"), [{"x": sound(n, 160)[:, None]} for n in (1, 2)]


def bark() -> tuple[nn.Module, Sizes]:
    config = transformers.BarkSemanticConfig(
        block_size=64, input_vocab_size=99, output_vocab_size=99, num_layers=2, num_heads=4, hidden_size=32
    )
    model = transformers.BarkSemanticModel(config)
    return Keywords(model, ["input_ids"], use_cache=False), [{"input_ids": tokens(*n)} for n in ((2, 8), (3, 12))]


def music() -> tuple[nn.Module, Sizes]:
    """The decoder of MusicGen."""
    config = transformers.MusicgenDecoderConfig(
        vocab_size=99,
        max_position_embeddings=64,
        num_hidden_layers=2,
        ffn_dim=48,
        num_attention_heads=4,
        hidden_size=32,
        num_codebooks=2,
    )
    sizes = [
        {"input_ids": tokens(2 * n, m), "encoder_hidden_states": torch.rand(n, 5, 32)} for n, m in ((2, 6), (3, 9))
    ]
    return Keywords(transformers.MusicgenForCausalLM(config), list(sizes[0]), use_cache=False), sizes


def text_to_speech() -> tuple[nn.Module, Sizes]:
    """SpeechT5 from texts to spectrograms, one pass of the decoder."""
    config = transformers.SpeechT5Config(
        vocab_size=99,
        hidden_size=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        num_mel_bins=16,
        speech_decoder_prenet_units=16,
        speech_decoder_postnet_units=16,
        speaker_embedding_dim=8,
        max_text_positions=40,
        speech_decoder_prenet_dropout=0.0,
    )
    sizes = [
        {
            "input_ids": tokens(n, m),
            "decoder_input_values": torch.stack([sound(6, 16)] * n),
            "speaker_embeddings": sound(n, 8),
        }
        for n, m in ((2, 8), (3, 12))
    ]
    return Keywords(transformers.SpeechT5ForTextToSpeech(config), list(sizes[0]), use_cache=False), sizes


def vits(stochastic: bool) -> Make:
    """VITS, whose durations are computed, without its noise."""

    def make() -> tuple[nn.Module, Sizes]:
        config = transformers.VitsConfig(
            vocab_size=99,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            ffn_dim=24,
            flow_size=16,
            spectrogram_bins=17,
            use_stochastic_duration_prediction=stochastic,
            upsample_initial_channel=16,
            upsample_rates=[4, 2],
            upsample_kernel_sizes=[8, 4],
            resblock_kernel_sizes=[3],
            resblock_dilation_sizes=[[1, 3]],
            prior_encoder_num_flows=2,
            posterior_encoder_num_wavenet_layers=2,
            duration_predictor_num_flows=2,
            duration_predictor_filter_channels=16,
            depth_separable_num_layers=2,
            wavenet_dropout=0.0,
            prior_encoder_num_wavenet_layers=2,
            noise_scale=0.0,
            noise_scale_duration=0.0,
        )
        return Keywords(transformers.VitsModel(config), ["input_ids"]), [{"input_ids": tokens(1, n)} for n in (8, 12)]

    return make


MAKES: dict[str, Any] = {
    "wav2vec2conformer": waves("Wav2Vec2Conformer"),
    "wav2vec2conformer_rotary": waves("Wav2Vec2Conformer", position_embeddings_type="rotary"),
    "sewd": waves("SEWD"),
    "unispeechsat": waves("UniSpeechSat"),
    "unispeech": waves("UniSpeech"),
    "wav2vec2bert": features("Wav2Vec2Bert", "ForCTC", 16, bert_of_speech),
    "parakeet_encoder": features("Parakeet", "Encoder", 16, parakeet),
    "ast": spectrogram,
    "encodec_encode": encodec("encode"),
    "encodec_decode": encodec("decode"),
    "dac": dac,
    "bark_semantic": bark,
    "musicgen_decoder": music,
    "speecht5_tts": text_to_speech,
    "vits_plain": vits(False),
    "vits_stochastic": vits(True),
}
for name, make in MAKES.items():
    add(RECIPES, f"hf_{name}_script", make, dynamo=False)
for name in ("wav2vec2bert", "bark_semantic", "dac"):
    add(RECIPES, f"hf_{name}", MAKES[name])
