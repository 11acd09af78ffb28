"""Weights in TensorRT's text and binary format ``.wts``."""

from netloop.formats.wts import load as load
from netloop.formats.wts import save as save
