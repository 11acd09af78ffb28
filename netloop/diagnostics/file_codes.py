"""Codes of what is wrong with files."""

from netloop.diagnostics.registry import enter

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

    ``netloop.onnx.supports("Add")`` tells of an operator of ONNX, ``netloop.openvino.supports("Add")`` of OpenVINO. One
    of ONNX that is a function in the model, or that the standard makes up of others, needs no support of its own.

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
    "NL748",
    """
    an engine takes the weights of the model that it was made of, or of one that differs in their numbers alone.

    Wrong: ``OnnxParserRefitter.refit_from_file`` with a model that has another layer
    Right: an engine that is built of this model
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
enter(
    "NL732",
    """
    an OpenVINO model has the operators and types of OpenVINO.

    Most layers are one operator or several; what is not is told, all of it at once. ``netloop.plan`` saves every
    network.

    Wrong: ``netloop.openvino.save`` of a network with an assertion
    Right: the same with ``drop_assertions=True``
    """,
)
enter(
    "NL751",
    """
    an OpenVINO model is a whole XML document without DOCTYPE, of version 10 or 11.

    What a DOCTYPE defines could stand for more than fits anywhere, or for a file of the reader.

    Wrong: a file that a download cut short
    Right: what ``openvino.save_model`` writes
    """,
)
enter(
    "NL752",
    """
    the numbers of a model are in its file of weights, which is beside it unless ``weights`` tells another.

    Wrong: ``model.xml`` copied without ``model.bin``
    Right: both, in one folder
    """,
)
enter(
    "NL753",
    """
    in a graph each number is that of one layer, each input has one edge, and what goes round goes by back edges.

    Wrong: an edge from a port that no layer has
    Right: the ports that the layers list
    """,
)
