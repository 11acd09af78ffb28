"""Benchmarks: networks as their users write them, beside what an expert would write in JAX and beside other systems."""
