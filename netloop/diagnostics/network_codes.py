"""Codes of what is raised by a call that has no meaning, while a network is compiled, and while one runs."""

from netloop.diagnostics.registry import enter

# ---------------------------------------------------------------------------- calls and wiring

enter(
    "NL101",
    """
    the layer computes from it.

    The ``add_`` methods ask for all inputs that a layer cannot do without; in a network from a file one can be missing.
    """,
)
enter(
    "NL102",
    """
    only the second input of a recurrence may lead back to what comes after it.

    Every other layer needs its inputs before its outputs are there, so a way around has no beginning.

    Wrong: ``add.set_input(1, add.get_output(0))``
    Right: ``total.set_input(1, add.get_output(0))`` on a recurrence ``total`` that ``add`` reads
    """,
)
enter(
    "NL103",
    """
    the layers and the outputs of a network are made of its own tensors.

    It is raised by the call itself, as nothing later could mend it.

    Wrong: ``network.add_identity(tensor_of_another_network)``
    Right: ``network.add_identity(network.add_input("x", trt.float32, (3,)))``
    """,
)
enter(
    "NL104",
    """
    the inputs and outputs of a network are told apart by name.

    It is raised by the call itself. Names that are changed later are told by NL106.

    Wrong: ``network.add_input("x", ...)`` twice
    Right: two names
    """,
)
enter(
    "NL109",
    """
    an optimization profile tells between which shapes and values the inputs of its network may be.

    Wrong: ``profile.set_shape("x", (1,), (2,), (4,))`` where the only input is ``y``, or ``x`` has two axes
    Right: a range for each dynamic input, with a number for each of its axes
    """,
)
enter(
    "NL207",
    """
    the outputs of a loop are known when it has ended, those of a conditional when it has been decided.

    So neither reads its own outputs, not even by way of another loop.

    Wrong: ``loop.add_trip_limit(output_of_the_same_loop, TripLimit.COUNT)``
    Right: a recurrence, which hands a value to the next trip; or a second loop
    """,
)

# ---------------------------------------------------------------------------- plugins

enter(
    "NL411",
    """
    the code of a plugin is the user's own, and it raised an exception.

    The exception is the cause of the error, with its own traceback. While a network runs it is told only if the value
    that the plugin did not give is needed.

    Wrong: ``JaxPlugin(lambda a, b: a + b)`` on tensors of 3 and of 4 elements
    Right: the same on tensors of 3 and of 3
    """,
)
enter(
    "NL412",
    """
    a plugin has to do as its interface says.

    It tells of as many outputs as it has, in types that networks have, and gives them so.

    Wrong: ``JaxPlugin(lambda x: (x, x))``, which has two outputs
    Right: ``JaxPlugin(lambda x: (x, x), num_outputs=2)``
    """,
)

# ---------------------------------------------------------------------------- compiling

enter(
    "NL501",
    """
    a pure function has fixed shapes, which follow from constants and from the inputs of the call.

    ``check`` has nothing against such a network; ``evaluate`` runs it, and so does an engine, step by step.

    Wrong: a CONCATENATE output whose length is the last value of another loop
    Right: a length from a constant, from ``add_shape``, or from an input of the network
    """,
)
enter(
    "NL502",
    """
    XLA's compiler can crash on loops that are nested very deep.

    ``check`` has nothing against such a network, and ``evaluate`` runs it.

    Wrong: a hundred loops, each inside the one before
    Right: fewer loops, of more trips
    """,
)
enter(
    "NL503",
    """
    a pure function is compiled whole, and no program calls back to the host.

    ``check`` has nothing against such a network; ``evaluate`` runs it, and so does an engine, step by step.

    Wrong: ``netloop.to_jax`` of a network with a plugin that has ``enqueue``
    Right: the same plugin as a function of JAX, a ``netloop.JaxPlugin``
    """,
)

# ---------------------------------------------------------------------------- running

enter(
    "NL601",
    """
    what the run met has no meaning.

    An assertion that does not hold, an iterator that reads past its axis, or an output with less room than its loop
    makes trips; in the reference also an index out of range and an integer divided by zero. It is reported only
    if the value that it poisoned is needed, but for assertions.

    Wrong: 5 for ``n``, the COUNT of a loop with an iterator along an axis of 3 elements
    Right: at most 3
    """,
)
enter(
    "NL602",
    """
    the inputs of a network are given by their names, all of them and no others.

    Wrong: ``engine({"X": array})`` for an input ``x``
    Right: ``engine({"x": array})``
    """,
)
enter(
    "NL603",
    """
    nothing is converted or reshaped silently.

    An array has the element type of its input, and a length of -1 in the shape of the input fits any.

    Wrong: ``engine({"x": np.zeros(3)})``, which are float64, for an input of float32
    Right: ``engine({"x": np.zeros(3, np.float32)})``
    """,
)
enter(
    "NL604",
    """
    the value of an input that decides a shape is needed while compiling.

    JAX traces functions with values that are not there yet.

    Wrong: ``jax.jit(function)(weights, {"length": 3})``
    Right: ``jax.jit(lambda weights, x: function(weights, {"x": x, "length": np.int32(3)}))``
    """,
)
enter(
    "NL605",
    """
    a function of ``to_jax`` takes every weight by its name, in its shape.

    Wrong: ``function({}, inputs)``
    Right: ``function(weights, inputs)`` with the weights that ``to_jax`` gave, or others of their names and shapes
    """,
)
enter(
    "NL606",
    """
    an execution context runs on what it was told before.

    Wrong: ``context.execute_async_v3(0)`` at once
    Right: ``context.set_input_shape("x", (3,))`` and ``context.set_tensor_address("x", address)`` for each tensor first
    """,
)
enter(
    "NL607",
    """
    an engine and the reference compute with values, and inside of a transformation of JAX there are none.

    Wrong: ``jax.jit(lambda x: engine({"x": x})["y"])``
    Right: ``function, weights = netloop.to_jax(network)``, and ``jax.jit(lambda x: function(weights, {"x": x})["y"])``
    """,
)
enter(
    "NL608",
    """
    the compiler or the runtime of the device could not go on, as a rule for want of memory.

    Its own words are part of the message.
    """,
)

enter(
    "NL609",
    """
    no loop makes more trips than max_trips allows.

    Without ``max_trips`` a loop whose limit never ends it runs for ever.

    Wrong: ``netloop.compile(network, max_trips=1000)`` of a loop whose WHILE stays true
    Right: the same of a loop whose WHILE is false after 1000 trips, or before
    """,
)
enter(
    "NL610",
    """
    a tensor or loop is asked for by itself, or by a name that no other has.

    Wrong: ``trace["hidden"]`` in a network that has ``h`` alone
    Right: ``trace["h"]``, or ``trace[layer.get_output(0)]``
    """,
)
enter(
    "NL611",
    """
    an execution context runs on the addresses of tensors.

    Wrong: ``engine.create_execution_context()`` of a network with a sequence among its inputs
    Right: ``engine({"x": [first, second]})``, which takes lists and None too
    """,
)

enter(
    "NL621",
    """
    an engine from a plan without weights runs once it has them.

    Wrong: a run right after ``deserialize_cuda_engine``
    Right: ``Refitter.set_named_weights`` for each of ``get_missing_weights``, and ``refit_cuda_engine``, first
    """,
)
enter(
    "NL622",
    """
    a debug listener that returns False, or raises, ends the run.

    One that returns True or nothing lets it go on.

    Wrong: ``process_debug_tensor`` that ends in ``return False``
    Right: the same with ``return True``
    """,
)
