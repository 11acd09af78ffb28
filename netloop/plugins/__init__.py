"""Layers that users write: TensorRT's plugin interfaces, the registry, and plugins that are functions of JAX."""
