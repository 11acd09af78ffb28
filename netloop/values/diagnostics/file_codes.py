"""Texts of the codes of files: weights, the demo's model, plans, and models of ONNX and OpenVINO."""

TEXTS = {
    "NL701": """
        a weight file is complete, in version 1 or 2 of the format of TensorRT's samples.

        The message gives the byte at which it is not.
        Wrong: a file that a download cut short
        Right: what ``netloop.wts.save`` writes
        """,
    "NL702": """
        the buffers of the demo's model fit together.

        All sizes follow from those of the embedding and of the first bias.
        Wrong: a weight file without ``softmax_softmax_w``
        Right: the file that comes with netloop, or one with its names
        """,
    "NL703": """
        the demo continues a text that is not empty and has only characters that its model knows.
        Wrong: ``python -m netloop demo --seed ""``
        Right: ``python -m netloop demo --seed ROMEO``
        """,
    "NL711": """
        a plan is a complete file, and every byte of it matches its manifest.
        Wrong: a plan that was cut short, or edited
        Right: what ``netloop.plan.save`` writes
        """,
    "NL712": """
        a plan is of a format version that this netloop knows.

        A netloop reads the plans of all versions before its own.
        Wrong: a plan of a later netloop
        Right: the same network, saved by this one
        """,
    "NL713": """
        a plan contains only what netloop writes.

        The file is intact, but does not describe a network: an attribute is missing, of another type, or invalid.
        Wrong: a plan that another program wrote
        Right: what ``netloop.plan.save`` writes
        """,
    "NL714": """
        a plan or a script can hold only what the calls of a network accept.
        Wrong: a layer of a class of your own
        Right: layers that the ``add_`` methods made
        """,
    "NL715": """
        a plan names the plugins of a network, and contains none of their code.

        The reader must first register their creators, under the same name, version and namespace.
        Wrong: ``netloop.plan.load(path)`` before the module with the plugins is imported
        Right: after
        """,
    "NL716": """
        a plan without weights is an engine that waits for them, not a network.
        Wrong: ``netloop.plan.loads`` of what was built with ``BuilderFlag.STRIP_PLAN``
        Right: ``Runtime.deserialize_cuda_engine``, and a ``Refitter``
        """,
    "NL717": """
        a timing cache is a complete file of this format, and no other file is replaced by one.
        Wrong: ``netloop.compile(network, tune=True, timing_cache="model.onnx")``
        Right: the path of a new file, or of one that netloop wrote
        """,
    "NL718": """
        a file of safetensors is complete, and an array has the element type and shape of the weights that it replaces.

        Nothing is converted or reshaped silently.
        Wrong: float16 weights for a constant that is float32
        Right: ``netloop.safetensors.save(path, netloop.safetensors.weights_of(network))``
        """,
    "NL721": """
        a stream reader returns at least one byte when asked for more of a plan, and never more than asked for.
        Wrong: ``read`` that returns ``b""`` in the middle of a plan
        Right: ``return self.file.read(num_bytes)``
        """,
    "NL722": """
        a stream writer accepts at least one byte of those it is given, and returns how many.
        Wrong: ``write`` without ``return``
        Right: ``return self.file.write(data)``
        """,
    "NL731": """
        an ONNX model has only the operators and types of ONNX.

        Nearly every layer is one operator or several; all that are not are reported at once. ``netloop.plan`` saves
        every network.
        Wrong: ``netloop.onnx.save`` of a network with an assertion
        Right: the same with ``drop_assertions=True``
        """,
    "NL732": """
        an OpenVINO model has only the operators and types of OpenVINO.

        Most layers are one operator or several; all that are not are reported at once. ``netloop.plan`` saves every
        network.
        Wrong: ``netloop.openvino.save`` of a network with an assertion
        Right: the same with ``drop_assertions=True``
        """,
    "NL733": """
        the compiler or converter of another runtime accepts the program of a network.

        The message has what it says. The program is StableHLO, and not every operation of it has a counterpart there.
        Wrong: ``trt.export(network, "model.tflite")`` of a network that sorts
        Right: ``trt.export(network, "model.savedmodel")``, which TensorFlow runs by XLA
        """,
    "NL741": """
        an ONNX model is a complete protobuf message with a graph, of a size that can be loaded.

        Wrong: a file that a download cut short, or the pointer of Git LFS instead of the file
        Right: what ``onnx.save`` writes; more than 2 GB of weights are in a file of their own,
        ``save_as_external_data=True``
        """,
    "NL742": """
        a version of ONNX has a defined meaning only once it is released.

        A model of a later version of the operators is read as one of the newest version that the package ``onnx`` has,
        with a warning, NL749; an operator of that version needs a later package.
        Wrong: a model of a later version of the file format, its ``ir_version``
        Right: ``pip install --upgrade netloop onnx``, or an export for an older version
        """,
    "NL743": """
        a model may read only files in its own folder, and not through links.

        Otherwise an untrusted model could read any file of its user into a tensor.
        Wrong: the location ``../../etc/passwd`` for the data of a tensor
        Right: ``weights.bin``, in the folder of the model
        """,
    "NL744": """
        only operators that netloop knows become layers.

        All of a model are reported at once, each with the number of its nodes. ``netloop.onnx.supports("Add")`` answers
        for an operator of ONNX, ``netloop.openvino.supports("Add")`` for one of OpenVINO. An ONNX operator that is a
        function in the model, or that the standard defines by other operators, needs no support of its own.
        Wrong: an operator of another domain, without a function in the model
        Right: ``netloop.onnx.load(path, operators={"my.domain::Scale": function})``, where the function adds its layers
        """,
    "NL745": """
        a graph gives each name one value, and each node the inputs and attributes of its operator.

        Nodes may stand in any order; they are sorted, with a warning, NL749.
        Wrong: a node that reads a name that nothing defines, or two nodes that define one name
        Right: an export by a current tool, which ``onnx.checker.check_model`` accepts
        """,
    "NL746": """
        the elements of a tensor are real numbers, bools or strings.

        Wrong: an input of complex numbers
        Right: an input of their parts, with an axis of two more; ``onnx.utils.extract_model`` cuts a model there
        """,
    "NL748": """
        an engine takes the weights of its own model, or of one that differs from it only in their values.
        Wrong: ``OnnxParserRefitter.refit_from_file`` with a model that has another layer
        Right: an engine that is built from this model
        """,
    "NL751": """
        an OpenVINO model is a complete XML document in UTF-8, without DOCTYPE, of version 10 or 11.

        The definitions of a DOCTYPE could expand beyond any memory, or read a file of the user.
        Wrong: a file that a download cut short
        Right: what ``openvino.save_model`` writes
        """,
    "NL752": """
        the numbers of a model are in its weights file, which is next to it unless ``weights`` names another.
        Wrong: ``model.xml`` copied without ``model.bin``
        Right: both, in one folder
        """,
    "NL753": """
        in a graph each number belongs to one layer, each input has one edge, and only back edges close cycles.
        Wrong: an edge from a port that no layer has
        Right: the ports that the layers list
        """,
    "NL754": """
        a model is imported, or refused with the reason; netloop could do neither, which is a fault of netloop.

        The exception is the cause of the error, with its own traceback. Please report it, with the model.
        """,
    "NL755": """
        the arrays of a file are read into memory, and must fit into it.

        A file can be larger than what it takes on the disk: the parts that were never written are zeros.
        Wrong: 64 GB of weights on a machine with 16 GB of memory
        Right: a machine with more memory
        """,
}
"""The text of each code of errors, in the form of ``Code.text``."""

WARNINGS = {
    "NL749": """
        a model with a fault that leaves it one meaning is loaded with that meaning.

        ``netloop.onnx.load`` issues a ``netloop.ModelWarning`` for each kind of fault, and TensorRT's parser logs it.
        What onnxruntime loads is loaded too, unless it could mean two things.
        Wrong: a node before the one that makes its input, as onnxruntime's float16 converter writes
        Right: the nodes in an order in which each reads what earlier ones made;
        ``warnings.simplefilter("ignore", netloop.ModelWarning)`` hides the warnings
        """
}
"""The text of each code of warnings."""
