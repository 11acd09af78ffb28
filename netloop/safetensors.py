"""Weights in files of safetensors, with which PyTorch's and JAX's models are shared."""

from netloop.formats.safetensors import load, save, set_weights, weights_of

__all__ = ["load", "save", "set_weights", "weights_of"]
