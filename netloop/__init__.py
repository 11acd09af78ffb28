"""TensorRT's network builder on JAX."""
