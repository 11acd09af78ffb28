"""The search operators of onnxruntime as loops, whose bodies have the nodes of the decoder's graph."""
