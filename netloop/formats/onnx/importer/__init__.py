"""The ONNX importer: from a model to a network."""
