"""The sources of models: each module has ``RECIPES``."""

NAMES = (
    "sklearn_models",
    "boosted_trees",
    "torch_layers",
    "torch_control",
    "language_models",
    "decoder_models",
    "growing_models",
    "hybrid_models",
    "media_models",
    "multimodal_models",
    "detection_models",
    "speech_models",
    "diffusion_models",
    "graph_models",
    "sequence_networks",
    "torchaudio_models",
    "tensorflow_models",
    "torchvision_models",
    "timm_models",
    "packages",
    "onnxruntime_tools",
)
"""The modules, those last that make models from other models."""
