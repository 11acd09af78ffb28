"""Plugins, the layers that users write: TensorRT's interfaces, their registry, and plugins that are JAX functions."""
