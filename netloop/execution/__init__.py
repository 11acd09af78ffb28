"""The execution core: compiled programs, their caches and their weights, below TensorRT's objects."""
