"""Benchmarks: networks as users write them, compared with expert JAX code and with other systems."""
