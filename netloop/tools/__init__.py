"""Programs around networks and engines.

``cli`` is the command line; ``report`` shows a network as a page, ``peers`` compares with other runtimes, ``serve``
makes services of engines, ``sandbox`` runs untrusted models, ``compat`` stands in for TensorRT, ``demo`` is the first
example.
"""
