"""Models of other frameworks, in and out.

``onnx``, ``openvino`` and ``from_jax`` import; ``onnx_graph`` is the graph of ONNX operators that both exporters
write; ``deploy`` writes programs, by StableHLO, and ``wts`` weights; ``shared`` is common to all.
"""
