"""The execution core below TensorRT's classes: compiled programs, their cache and their weights."""
