"""Weights in TensorRT's text and binary format ``.wts``."""

from netloop.formats.wts import load, save

__all__ = ["load", "save"]
