"""The graph of a network: tensors, layers and the inference of types, for all kinds of layers.

Four modules refer to each other, three of them by annotations only: a tensor has its producer and a type table, a layer
has tensors, ``layer_compat`` is a base class of layers, and the type table of ``infer`` walks both.
"""
