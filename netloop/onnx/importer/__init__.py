"""ONNX models to networks."""
