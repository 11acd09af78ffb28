"""What each code of a finding stands for.

The rules of ``netloop/check`` enter themselves, from their docstrings. The codes below are raised elsewhere: by a call
that has no meaning, while a network is compiled, while one runs, and by files.
"""

import inspect
from dataclasses import dataclass

from netloop.diagnostics import Severity


@dataclass(frozen=True)
class Code:
    """What a code stands for. It never changes its meaning.

    Attributes:
        name: the code, ``NL204``.
        severity: how much its findings weigh.
        text: the reason, as messages give it; then what there is to know; then, as ``Wrong: ...`` and ``Right: ...``,
            what breaks it and what does not. A blank line stands between them.
    """

    name: str
    severity: Severity
    text: str

    @property
    def why(self) -> str:
        """The reason."""
        return self.paragraphs[0].rstrip(".")

    @property
    def paragraphs(self) -> list[str]:
        """The parts of the text, each on one line, but for the examples, which have a line each."""
        parts = self.text.strip().split("\n\n")
        examples = parts.pop().replace("\nRight: ", "\0Right: ") if parts[-1].startswith("Wrong: ") else ""
        return [" ".join(each.split()) for part in (*parts, *examples.split("\0")) if (each := part.strip())]


CODES: dict[str, Code] = {}
"""Every code; those of the rules are here once ``netloop.check`` is imported."""


def enter(name: str, text: str, severity: Severity = Severity.ERROR) -> Code:
    """Enter a code into the register."""
    assert name not in CODES, f"{name} stands for something already"
    CODES[name] = made = Code(name, severity, inspect.cleandoc(text))
    return made


def reason(name: str) -> str:
    """The reason behind a code, as messages give it."""
    return CODES[name].why


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
    if the value that it spoilt is needed, but for assertions.

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
    the runtime of the device could not go on, as a rule for want of memory.

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

# ---------------------------------------------------------------------------- files

enter(
    "NL701",
    """
    a weight file is of version 1 or 2 of the format of TensorRT's samples, and whole.

    The message tells the byte at which it is not.

    Wrong: a file that a download cut short
    Right: what ``netloop.wts.save`` writes
    """,
)
enter(
    "NL702",
    """
    the buffers of the demo's model fit together.

    The sizes of all follow from those of the embedding and of the first bias.

    Wrong: a weight file without ``softmax_softmax_w``
    Right: the file that comes with netloop, or one with its names
    """,
)
enter(
    "NL703",
    """
    the demo continues a text of characters that its model knows, and of one at least.

    Wrong: ``python -m netloop demo --seed ""``
    Right: ``python -m netloop demo --seed ROMEO``
    """,
)
enter(
    "NL711",
    """
    a plan is a whole file, every byte of which is what its manifest tells.

    Wrong: a plan that was cut short, or edited
    Right: what ``netloop.plan.save`` writes
    """,
)
enter(
    "NL712",
    """
    a plan is of a version of the format that this netloop knows.

    A netloop reads the plans of all versions before its own.

    Wrong: a plan of a later netloop
    Right: the same network, saved by this one
    """,
)
enter(
    "NL713",
    """
    what a plan says is what netloop writes.

    The file is whole, and its network is none: an attribute is missing, of another type, or of no meaning.

    Wrong: a plan that another program wrote
    Right: what ``netloop.plan.save`` writes
    """,
)
enter(
    "NL714",
    """
    a plan has room for what the calls of a network take.

    Wrong: a layer of a class of your own
    Right: layers that the ``add_`` methods made
    """,
)
enter(
    "NL715",
    """
    a plan names the plugins of a network, and holds none of their code.

    Who reads it has registered what makes them, under the same name, version and namespace.

    Wrong: ``netloop.plan.load(path)`` before the module with the plugins is imported
    Right: after
    """,
)
enter(
    "NL716",
    """
    a plan without weights is an engine that waits for them, and no network.

    Wrong: ``netloop.plan.loads`` of what was built with ``BuilderFlag.STRIP_PLAN``
    Right: ``Runtime.deserialize_cuda_engine``, and a ``Refitter``
    """,
)
enter(
    "NL721",
    """
    a stream reader gives some bytes whenever it is asked for more of a plan, and never more than asked for.

    Wrong: ``read`` that returns ``b""`` in the middle of a plan
    Right: ``return self.file.read(num_bytes)``
    """,
)
enter(
    "NL722",
    """
    a stream writer takes some bytes whenever it is given some, and tells how many.

    Wrong: ``write`` without ``return``
    Right: ``return self.file.write(data)``
    """,
)
enter(
    "NL741",
    """
    an ONNX model is a whole protobuf message, with a graph, and of a size that fits somewhere.

    Wrong: a file that a download cut short
    Right: what ``onnx.save`` writes
    """,
)
enter(
    "NL742",
    """
    what a version of ONNX means is known once it is there.

    The newest version of the operators is that of the package ``onnx``.

    Wrong: a model of a later version of ONNX
    Right: ``pip install --upgrade onnx``, or an export for an older version
    """,
)
enter(
    "NL743",
    """
    a model may read files beside it alone, and by no links.

    A model from a stranger could otherwise read any file of its user into a tensor.

    Wrong: the location ``../../etc/passwd`` for the data of a tensor
    Right: ``weights.bin``, in the folder of the model
    """,
)
enter(
    "NL744",
    """
    only what netloop knows becomes layers.

    ``netloop.onnx.supports("Add")`` tells of an operator. One that is a function in the model, or that the standard
    makes up of others, needs no support of its own.

    Wrong: an operator of another domain, without a function in the model
    Right: the function beside it
    """,
)
enter(
    "NL745",
    """
    a graph gives each name one value, before it is read, and each node what its operator takes.

    Wrong: a node that reads what a later one makes
    Right: the nodes in an order in which each reads what is there
    """,
)
enter(
    "NL746",
    """
    the elements of a tensor are numbers or truth values, of the types that TensorRT has, or float64.

    Wrong: an input of strings
    Right: an input of their numbers in a vocabulary
    """,
)
enter(
    "NL731",
    """
    an ONNX model has the operators and types of ONNX.

    Nearly all layers are one operator or several; what is not is told, all of it at once. ``netloop.plan`` saves every
    network.

    Wrong: ``netloop.onnx.save`` of a network with an assertion
    Right: the same with ``drop_assertions=True``
    """,
)
