"""The sources of models: each module has ``RECIPES``."""

NAMES = (
    "sklearn_models",
    "boosted_trees",
    "torch_layers",
    "torch_control",
    "language_models",
    "decoder_models",
    "media_models",
    "torchvision_models",
    "timm_models",
    "packages",
    "onnxruntime_tools",
)
"""The modules, those last that make models from other models."""
