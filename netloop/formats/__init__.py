"""Models of other frameworks, in and out.

``onnx``, ``openvino`` and ``from_jax`` import; ``onnx_graph`` is the graph of ONNX operators that both exporters
write; ``stablehlo``, ``deploy`` and ``wts`` write programs and weights; ``shared`` is common to all.
"""
