"""The graph of a network: tensors, layers and the inference of types, for all kinds of layers."""
