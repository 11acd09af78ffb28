"""Texts of the codes about networks and runs; those of rules, as NL204, are docstrings in ``netloop/model/check``."""

TEXTS = {
    # ------------------------------------------------------------------ calls and wiring
    "NL101": """
        the layer computes its output from it.

        The ``add_`` methods ask for all required inputs; in a network from a file one can be missing.
        """,
    "NL102": """
        only the second input of a recurrence may close a cycle.

        Every other layer needs its inputs before it has outputs, so that any other cycle could never start.
        Wrong: ``add.set_input(1, add.get_output(0))``
        Right: ``total.set_input(1, add.get_output(0))`` on a recurrence ``total`` that ``add`` reads
        """,
    "NL103": """
        the layers and outputs of a network use only tensors of that network.

        The call itself raises it, because no later call could fix it.
        Wrong: ``network.add_identity(tensor_of_another_network)``
        Right: ``network.add_identity(network.add_input("x", trt.float32, (3,)))``
        """,
    "NL104": """
        the inputs and outputs of a network are identified by name.

        The call itself raises it. NL106 is about names that are changed later.
        Wrong: ``network.add_input("x", ...)`` twice
        Right: two names
        """,
    "NL109": """
        an optimization profile gives the ranges of the shapes and values of the inputs of its network.
        Wrong: ``profile.set_shape("x", (1,), (2,), (4,))`` where the only input is ``y``, or ``x`` has two axes or the
        length 5
        Right: a range for each dynamic input, with a number for each of its axes, the length where that is known
        """,
    "NL207": """
        the outputs of a loop are known only after it has ended, those of a conditional only after it is decided.

        So neither can read its own outputs, not even through another loop.
        Wrong: ``loop.add_trip_limit(output_of_the_same_loop, TripLimit.COUNT)``
        Right: a recurrence, which passes a value to the next iteration; or a second loop
        """,
    # ------------------------------------------------------------------ plugins
    "NL411": """
        the plugin's own code raised an exception.

        The exception is the cause of the error, with its own traceback. While a network runs, it is reported only if
        the value that the plugin did not produce is needed.
        Wrong: ``JaxPlugin(lambda a, b: a + b)`` on tensors of 3 and of 4 elements
        Right: the same on tensors of 3 and of 3
        """,
    "NL412": """
        a plugin must keep to its interface.

        It declares as many outputs as it returns, and their types, which must be types that networks have.
        Wrong: ``JaxPlugin(lambda x: (x, x))``, which has two outputs
        Right: ``JaxPlugin(lambda x: (x, x), num_outputs=2)``
        """,
    "NL421": """
        what belongs to the kernels of NVIDIA's devices has no meaning elsewhere.

        These are plugins before version 3, those of ``tensorrt.plugin``, libraries of plugins, and the selection of
        kernels. Their classes can be mentioned in annotations and as base classes.
        Wrong: ``class MyPlugin(trt.IPluginV2DynamicExt): ...`` and then ``MyPlugin()``
        Right: ``class MyPlugin(trt.IPluginV3, ...): ...``, or ``JaxPlugin(function)``
        """,
    # ------------------------------------------------------------------ compilation
    "NL501": """
        a pure function has fixed shapes, which follow from constants and from the inputs of the call.

        ``check`` accepts such a network; ``evaluate`` runs it, and so does an engine, step by step.
        Wrong: a CONCATENATE output whose length is the last value of another loop
        Right: a length from a constant, from ``add_shape``, or from an input of the network
        """,
    "NL502": """
        XLA and JAX recurse into nested loops and conditionals, and can crash on very deep nests.

        An engine has at most 100 in each other, and a pure function 32. A loop also compiles the layers again that its
        LAST_VALUE outputs need after the last iteration, unless these are recurrences, and so do the loops around it.
        ``check`` accepts such a network, and ``evaluate`` runs it.
        Wrong: a hundred and one loops, each inside the one before
        Right: fewer loops, of more iterations
        """,
    "NL503": """
        a pure function is compiled as a whole, and a compiled program does not call back to the host.

        ``check`` accepts such a network; ``evaluate`` runs it, and so does an engine, step by step.
        Wrong: ``netloop.to_jax`` of a network with a plugin that has ``enqueue``
        Right: the same plugin as a JAX function, a ``netloop.JaxPlugin``
        """,
    "NL504": """
        reverse mode goes back through all iterations, and their number must be known when the function is compiled.

        A loop with a WHILE limit, or with a COUNT that is known only in the call, ends when it ends. With a bound it is
        a scan of so many steps, the last of which do nothing.
        Wrong: ``jax.grad`` of the function of ``netloop.to_jax(network)`` for a network with a WHILE limit
        Right: the same of ``netloop.to_jax(network, bound={"loop name": 100})``; or ``jax.jacfwd``
        """,
    # ------------------------------------------------------------------ execution
    "NL601": """
        the computation is not defined for the values of this run.

        Examples are an assertion that does not hold, an iterator that reads past its axis, and an output whose length
        is negative or less than the number of iterations; in the reference also an index out of range and an integer
        division by zero. Except for assertions, it is reported only if the poisoned value is needed.
        Wrong: 5 for ``n``, the COUNT of a loop with an iterator along an axis of 3 elements
        Right: at most 3
        """,
    "NL602": """
        the inputs of a network are passed by name, all of them and no others.
        Wrong: ``engine({"X": array})`` for an input ``x``
        Right: ``engine({"x": array})``
        """,
    "NL603": """
        nothing is converted or reshaped silently.

        An array must have the element type of its input; where the shape of the input has -1, any length fits.
        Wrong: ``engine({"x": np.zeros(3)})``, which are float64, for an input of float32
        Right: ``engine({"x": np.zeros(3, np.float32)})``
        """,
    "NL604": """
        the value of an input that decides a shape is needed at compile time.

        JAX traces functions with values that are not known yet.
        Wrong: ``jax.jit(function)(weights, {"length": 3})``
        Right: ``jax.jit(lambda weights, x: function(weights, {"x": x, "length": np.int32(3)}))``
        """,
    "NL605": """
        a function of ``to_jax`` takes every weight by its name, in its shape.
        Wrong: ``function({}, inputs)``
        Right: ``function(weights, inputs)`` with the weights that ``to_jax`` returned, or others of their names
        and shapes
        """,
    "NL606": """
        an execution context needs all shapes and addresses before it runs.
        Wrong: ``context.execute_async_v3(0)`` at once
        Right: ``context.set_input_shape("x", (3,))`` and ``context.set_tensor_address("x", address)`` for each tensor
        first
        """,
    "NL607": """
        an engine and the reference compute with concrete values, which JAX does not have inside a transformation.
        Wrong: ``jax.jit(lambda x: engine({"x": x})["y"])``
        Right: ``function, weights = netloop.to_jax(network)``, and
        ``jax.jit(lambda x: function(weights, {"x": x})["y"])``
        """,
    "NL608": """
        the compiler or the runtime of the device failed, usually for lack of memory.

        Its own message is part of this one.
        """,
    "NL609": """
        no loop may run more than max_trips iterations.

        Without ``max_trips``, a loop whose limit is never reached runs forever.
        Wrong: ``netloop.compile(network, max_trips=1000)`` of a loop whose WHILE stays true
        Right: the same of a loop whose WHILE is false after 1000 iterations or fewer
        """,
    "NL610": """
        a tensor or loop is looked up as an object, or by a name that no other has.
        Wrong: ``trace["hidden"]`` in a network that has only ``h``
        Right: ``trace["h"]``, or ``trace[layer.get_output(0)]``
        """,
    "NL611": """
        an execution context works on the addresses of tensors; sequences, optional values, maps and strings have none.
        Wrong: ``engine.create_execution_context()`` of a network with a sequence among its inputs
        Right: ``engine({"x": [first, second]})``, which takes lists and None too
        """,
    "NL612": """
        a fork copies a process without the threads of JAX, and whoever waits for them waits forever.

        Python's ``multiprocessing`` forks by default on Linux, until 3.14. The reference runs in any process, except
        for random fills, and an engine runs in a fork of a process in which JAX has computed nothing.
        Wrong: ``multiprocessing.Pool()`` after a call of an engine
        Right: ``multiprocessing.get_context("spawn").Pool()``, with the engine as an argument of the worker
        """,
    "NL613": """
        another runtime refused the model, or failed while it ran.

        The comparison with it ends there; its own message is part of this one. A runtime may lack an operator or an
        element type that netloop has.
        """,
    "NL615": """
        in batches of other sizes than the caller's, each row of an output depends on the same row of the inputs alone.

        Rows are padded by copies of others, and cut into several calls, or into blocks for the devices of a mesh.
        A mean over the rows, or a normalization by their statistics, is then of other rows.
        Wrong: ``netloop.Batches(engine, (8, 64))`` of a network with ``add_reduce(x, SUM, 1 << 0, ...)``
        Right: ``engine(inputs)``, which compiles a program for each number of rows
        """,
    "NL616": """
        an engine runs on one device, and JAX joins the devices of a mesh itself, without a communicator of NCCL.

        Wrong: ``context.set_communicator(capsule)`` of a network with ``layer.num_ranks = 8``
        Right: ``netloop.shard(network, jax.make_mesh((8,), ("ranks",)))``
        """,
    "NL617": """
        weights are loaded for one program, and each shape of the inputs has a program of its own.

        The passes that join and transpose weights depend on the shapes.
        Wrong: ``netloop.to_jax(network, load=True)`` of a network with ``add_input("x", trt.float32, (-1, 3))``
        Right: ``add_input("x", trt.float32, (8, 3))``, or ``netloop.to_jax(network)``
        """,
    "NL618": """
        the devices of a mesh get parts of equal size, and their results are joined along axes, or are the same.

        An axis is cut into as many parts as the mesh has devices along it. An output that leaves out an axis of the
        mesh must be proved equal on all devices along it: by what it depends on, or as an ALL_REDUCE.
        Wrong: 12 rows for a mesh of 8 devices
        Right: 16 rows, of which the last 4 are padding
        """,
    "NL619": """
        a collective waits for all ranks, and one that has left the loop, or takes the other branch, never comes.

        What is known to be equal on all ranks: constants, inputs with a spec that leaves out their axis, and the
        results of ALL_REDUCE, ALL_GATHER and BROADCAST.
        Wrong: an ALL_REDUCE in a loop that ends where the error of each rank's own rows is small
        Right: the same loop, which ends where the ALL_REDUCE of these errors is small
        """,
    "NL621": """
        an engine from a plan without weights can run only after it is given them.
        Wrong: a run right after ``deserialize_cuda_engine``
        Right: ``Refitter.set_named_weights`` for each of ``get_missing_weights``, and ``refit_cuda_engine``, first
        """,
    "NL622": """
        a debug listener that returns False, or raises, ends the run.

        One that returns True or None lets it continue.
        Wrong: ``process_debug_tensor`` that ends in ``return False``
        Right: the same with ``return True``
        """,
    "NL623": """
        slots share the iterations of one loop, which every request runs through once, from its own beginning.

        So the loop is outside of all others and of conditionals. A loop inside it runs until it has ended in all slots,
        for values that it is not meant for in those that skip it, and then only ``max_trips`` is sure to end it.
        Wrong: ``netloop.SlotEngine(network)`` of a network with two loops that stack outputs
        Right: ``netloop.SlotEngine(network, loop="decoder")``
        """,
    "NL624": """
        forms of passes are timed with the inputs of a call, and not every network has inputs that can be made up.

        Open shapes, and values that decide shapes, come from an optimization profile. A WHILE loop may need more than
        1,000 iterations, or never end, for random floats and for integers that are 0.
        Wrong: ``netloop.compile(network, tune=True)`` of a network with ``add_input("x", trt.float32, (-1, 3))``
        Right: ``netloop.compile(network, tune={"x": x})``, with an array of a typical call
        """,
    "NL625": """
        with ERROR_ON_TIMING_CACHE_MISS, a build measures nothing that its timing cache does not have.

        An entry is of one network, of given shapes, and of one machine: processor, device, number of threads, compiler.
        Wrong: the cache of another machine
        Right: a cache that a build of ``builder_optimization_level`` 5 without the flag has filled here
        """,
    "NL626": """
        a call reuses the memory of the inputs that are donated to it, and deletes their arrays.
        Wrong: ``engine({"h": h})`` twice, where ``engine = netloop.compile(network, donate=["h"])``
        Right: ``h = engine({"h": h})["hn"]`` twice
        """,
    "NL628": """
        the runtime of CUDA failed: for lack of memory, for a stream or event that is none, or for work that had failed.

        Its own message is part of this one.
        """,
    "NL629": """
        an address has to be one of memory of this process, with room for the whole tensor, or of a GPU's memory.

        It is checked before it is used: by the system for memory of the host, on Linux, and by CUDA's runtime for that
        of a GPU, as far as allocations go. Without a GPU there are only addresses of the host.
        Wrong: ``context.set_tensor_address("x", np.ones(4).ctypes.data)``, whose array is freed at once
        Right: ``x = np.ones(4)``, and ``context.set_tensor_address("x", x.ctypes.data)``, with ``x`` kept
        """,
    # ------------------------------------------------------------------ sandboxes
    "NL631": """
        a sandboxed model has a time limit for loading and for each call.

        The process is ended then, and the model has to be loaded again.
        Wrong: ``netloop.sandbox.load("model.onnx", seconds=1)``: starting the process takes longer
        Right: ``netloop.sandbox.load("model.onnx", seconds=60)``
        """,
    "NL632": """
        the process of a sandboxed model ended, by a signal, an exit code, or for lack of memory.

        The cause is in the file, in the compiler, or in the limit of memory. The caller is not affected.
        Wrong: ``netloop.sandbox.load("model.onnx", memory=1 << 28)``, which is too little for any model
        Right: ``netloop.sandbox.load("model.onnx", memory=4 << 30)``
        """,
    "NL633": """
        the process of a sandboxed model has to answer in the form that was agreed.

        It did not, or it raised an error that is none of netloop's. The process is ended then.
        """,
    "NL634": """
        the process of a sandboxed model ends with its first SandboxError, or with ``close()``.

        It answers the process that loaded the model, and no fork of that.
        Wrong: ``model(x=array)`` after the ``with`` statement
        Right: the same inside of it
        """,
    # ------------------------------------------------------------------ devices
    "NL656": """
        an engine computes on one of the devices that JAX has in this process.

        Names are those of JAX's platforms, with the number among their devices: ``cpu``, ``gpu`` or ``cuda``, ``tpu``,
        ``cuda:1``. A GPU needs ``pip install "netloop[cuda13]"``, and its driver.
        Wrong: ``netloop.compile(network, device="cuda:1")`` on a machine with one GPU
        Right: ``netloop.compile(network, device="cuda:0")``
        """,
    "NL657": """
        an array of another library is read by DLPack or its CUDA array interface, where JAX has its device.

        What a library refuses to hand out cannot be read: a tensor of PyTorch that requires gradients, for one.
        Wrong: ``engine({"x": tensor})`` with a CUDA tensor, where JAX has the CPU only
        Right: ``engine({"x": tensor.cpu()})``, or JAX for the GPU: ``pip install "netloop[cuda13]"``
        """,
    # ------------------------------------------------------------------ services
    "NL641": """
        a service refuses at once what it has no room for, and its callers know so before they have waited.

        A queue without an end would only make every request late.
        Wrong: a loop of ``server.submit(inputs)`` that waits for no result
        Right: the same loop, which waits for a result after each ``netloop.serve.Overloaded``
        """,
    "NL642": """
        a request has a time limit, after which nobody waits for its result.

        It covers the time in the queue and that of the call. A request whose time ends in the queue is never run.
        Wrong: ``Server(engine, timeout=0.001)`` with calls that take 10 ms
        Right: ``Server(engine, timeout=0.1)``
        """,
    "NL643": """
        a sequence has a state from its first step, which says start=True, to its last, which says end=True.

        It also ends when it was idle for longer than the service allows.
        Wrong: ``sequences.step(7, inputs)`` as the first step of sequence 7
        Right: ``sequences.step(7, inputs, start=True)``
        """,
    "NL644": """
        a service that is closed runs nothing more.
        Wrong: ``server(x=rows)`` after the ``with`` statement
        Right: the same inside of it
        """,
    "NL645": """
        a step needs the state that the steps before it leave.

        After a step that failed, or was not run in time, the steps in the queue behind it would compute with the state
        of another step. The state is that from before the failed step.
        """,
    "NL646": """
        a service keeps each state as an array of one shape and element type, whichever engine it has.
        Wrong: ``Sequences(network, {"h": "hn"})`` where ``h`` is float32[8] and ``hn`` is float32[1, 8]
        Right: the same with a shuffle layer that gives ``hn`` the shape [8]
        """,
    "NL647": """
        a model of Triton's python backend takes and returns numpy arrays.

        These have neither bfloat16 nor floating-point types of 8 bits nor integers of 4 bits.
        Wrong: ``netloop.serve.write_repository`` of an engine with an output of ``netloop.bfloat16``
        Right: the same with ``network.add_cast(y, netloop.float32)``
        """,
    "NL648": """
        a service runs all its requests in one thread, and nothing takes the place of a thread that has ended.

        What ended it is no failure of a request: a plugin that exits, a clock that raises, memory that is used up. The
        thread prints the traceback. All requests that were there get this error, and so does each that comes.
        Wrong: ``sys.exit()`` in the ``enqueue`` of a plugin
        Right: ``raise RuntimeError("the table is missing")`` there, which is the failure of one call
        """,
    "NL666": """
        states that grow are kept in buffers, and the largest buffer has room for a million iterations.

        Wrong: a loop that concatenates a number to a tensor, until a condition ends it after two million iterations
        Right: a tensor of a fixed length into which the loop writes; or
        ``netloop.compile(network, passes=set(netloop.PASSES) - {"growing_states"})``, which is slow
        """,
    "NL674": """
        a pure function has arrays of fixed shapes, and pads what grows in a loop to the largest number of iterations.

        These are lists to which a loop appends, and states to which it concatenates. With a bound they are arrays with
        a row for each possible iteration, and the shape of those that count is an output too.
        Wrong: ``netloop.to_jax(network)`` for a network that appends to a list until a condition holds
        Right: ``netloop.to_jax(network, bound={"loop name": 100})``
        """,
    "NL675": """
        a pure function keeps a list as one array with a row for each tensor, and pads rows that a run may not have.

        So all tensors of a list have one shape, and layers may append tensors, read one, count them and join them. What
        is computed of a padded array is padded too; layers that need to have it whole cannot.
        Wrong: ``netloop.to_jax`` of a network that appends rows of other lengths in each iteration
        Right: rows of one length, or ``netloop.compile``, which runs any list
        """,
    "NL670": """
        an endpoint answers requests of the V2 protocol (Open Inference Protocol): JSON, or JSON and then raw bytes.

        Each input has a name, a datatype, a shape, and as many elements of that type as the shape says. JSON has no
        NaN: null is one, and 1e999 is infinity. Nothing is rounded to an integer, and no text is read as a number.
        Wrong: ``{"name": "x", "shape": [2], "datatype": "INT32", "data": [1.5, 2]}``
        Right: ``{"name": "x", "shape": [2], "datatype": "FP32", "data": [1.5, 2]}``
        """,
    "NL671": """
        an endpoint has the models that it was started with, each of version 1, and the paths of the V2 protocol.
        Wrong: ``POST /v2/models/total/infer`` of a server of ``totals``
        Right: ``POST /v2/models/totals/infer``
        """,
    "NL672": """
        an endpoint reads a request whole before it computes, and has memory for requests of a limited size.
        Wrong: a request of 300 MiB to ``netloop serve model.onnx``
        Right: the same to ``netloop serve model.onnx --max-body 512``, or in two requests
        """,
    "NL673": """
        a server says the type of each input and output of its model by a name of the V2 protocol.

        It has names for bool, integers of 8 to 64 bits, float16, bfloat16, float32, float64 and strings, and none for
        smaller types, sequences of tensors and optional inputs.
        Wrong: a server of a model with an output of ``netloop.fp8``
        Right: the same with ``network.add_cast(y, netloop.float32)``
        """,
    # ------------------------------------------------------------------ older versions of TensorRT
    "NL676": """
        some names of older versions of TensorRT belong to formats and libraries that are gone.

        ``python -m netloop.compat --tensorrt 8`` runs scripts with all other names of TensorRT 7 to 10.
        Wrong: ``trt.UffParser()``
        Right: ``trt.OnnxParser(network, logger)`` for the model in the format ONNX
        """,
    "NL677": """
        every gate of a recurrent layer has weights of a matrix for the input and one for the state, and two biases.

        The input has none in its first layer with ``RNNInputMode.SKIP``. With two directions, layers count in pairs:
        forward and backward.
        Wrong: ``add_rnn_v2(x, 1, 8, 5, trt.RNNOperation.TANH)`` and then ``get_output(0)``
        Right: before it, ``set_weights_for_gate`` and ``set_bias_for_gate`` for the gate INPUT, with ``is_w`` True and
        False
        """,
    "NL678": """
        a network with an implicit batch says what happens to one example, and each run says how many there are.

        TensorRT 7 and 8 have it for networks that ``create_network()`` makes without EXPLICIT_BATCH. Here they are
        loops over the batch, whose length is the first axis of the inputs.
        Wrong: such a network of constants only
        Right: ``builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))``
        """,
    "NL679": """
        the padding of Caffe leaves out a last window that begins behind the input, and so depends on its lengths.
        Wrong: ``pooling.padding_mode = trt.PaddingMode.CAFFE_ROUND_UP`` for an image of any height
        Right: ``pooling.padding_mode = trt.PaddingMode.EXPLICIT_ROUND_UP``
        """,
    # ------------------------------------------------------------------ CUDA's packages without a GPU
    "NL680": """
        the shapes and addresses of a context are those of one run, and another thread would write past its memory.

        As in TensorRT, a context belongs to one thread at a time. Not each such use is noticed.
        Wrong: one context, and ``set_input_shape`` and ``execute_async_v3`` in several threads
        Right: ``engine.create_execution_context()`` in each thread; or an engine that is called, which is for all
        """,
    "NL690": """
        a kernel in CUDA is compiled for a GPU, and the stand-ins for CUDA's packages have none.

        They have memory, streams, events and graphs on the host. Plugins run, if their kernels are Python.
        Wrong: ``pycuda.compiler.SourceModule(source)`` under ``python -m netloop.compat``
        Right: a plugin whose ``enqueue`` computes with numpy, or that derives from ``netloop.JaxPlugin``
        """,
}
"""The text of each code of errors, in the form of ``Code.text``."""

WARNINGS = {
    "NL661": """
        programs run on a GPU only where JAX has its plugin, the plugin a driver of its version, and the process a
        device.

        ``netloop --version`` says it, and the first engine of a process by a ``netloop.DeviceWarning``.
        Wrong: ``pip install netloop`` on a machine with a GPU
        Right: ``pip install "netloop[cuda13]"`` there; ``JAX_PLATFORMS=cpu`` in the environment, where the CPU is meant
        """,
    "NL665": """
        the products of an engine have one precision, and a network has no place for that of a single product.

        ``netloop.from_jax`` says it, by a ``netloop.DeviceWarning``, where JAX's default device rounds the operands of
        float32 products: on NVIDIA's GPUs from Ampere on, and on TPUs.
        Wrong: ``jnp.dot(a, b, precision="highest")`` in a function whose network is compiled by
        ``netloop.compile(network)`` on a GPU
        Right: ``netloop.compile(network, tf32=False)``
        """,
}
"""The text of each code of warnings."""
