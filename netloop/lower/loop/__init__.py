"""Loops as ``jax.lax`` control flow.

========================  ===========================================================================
``entry.py``              ``lower_loop``: what of a loop runs, by which strategy, and what leaves it
``facts.py``              ``LoopFacts``: what is known of loops before they run
``strategy.py``           scan, while or host, and the reason
``state.py``              ``Carry`` and ``LoopState``: the loop-carried state, packed and unpacked
``while_loop.py``         a loop as ``lax.while_loop``
``chunked_while.py``      the same in chunks of iterations, between which Python can be interrupted
``scan.py``               a loop with a known trip count as ``lax.scan``
``fission.py``            which steps of a body a scan computes for many iterations at once
``unroll_heuristic.py``   which bodies are unrolled, and which branches are both computed
``iterators.py``          the slices that iterators read
``outputs.py``            LAST_VALUE, and the rows of stacked outputs
========================  ===========================================================================
"""
