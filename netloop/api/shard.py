"""``netloop.shard``, which compiles a network for a mesh of devices."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import jax
from jax.sharding import Mesh

from netloop.api.tuning import CacheFile, Tune, tuning_of
from netloop.compiler.execution.sharded_engine import ShardedEngine
from netloop.compiler.execution.sharding import Specs
from netloop.compiler.recipe import Recipe
from netloop.compiler.tuning import SECONDS, Candidates, NoSamples, Samples, fastest
from netloop.model.graph.attributes import check_instance
from netloop.model.network import INetworkDefinition


def shard(
    network: INetworkDefinition,
    mesh: Mesh,
    *,
    in_specs: Specs | None = None,
    out_specs: Specs | None = None,
    passes: Iterable[str] | None = None,
    max_trips: int | None = None,
    dependent_rows: bool = False,
    tf32: bool = True,
    tune: Tune = False,
    timing_cache: CacheFile = None,
    tuning_seconds: float = SECONDS,
) -> ShardedEngine:
    """Compile a network for a mesh of devices, and return an engine that is called with a dict of arrays.

    The devices run the network each on its own part of the inputs, as with ``jax.shard_map``: no loop has a
    collective that the network does not have, and each device ends a loop by itself. An array with one more axis than
    its input has rows on its first axis, each of which is a run of the network; an array with the axes of its input is
    cut into blocks, and the input is the block of one device.

    An axis of the mesh that cuts weights divides the computation itself: the network is that of all devices along this
    axis, and XLA adds the collectives. The ranks of ``add_dist_collective`` are the devices along the axis that the
    metadata of the layer names; without metadata the axis ``ranks``, or the only one that cuts no weights.

    Args:
        network: the network.
        mesh: the devices, such as ``jax.make_mesh((8,), ("rows",))``.
        in_specs: a ``PartitionSpec`` for inputs by name, and for weights by the name of their layer or a pattern such
            as ``"decoder.*.weight"``. The default cuts the first axis of an input along all axes of the mesh that cut
            no weights, and cuts no weights; ``PartitionSpec()`` is for an input that is the same on all devices.
        out_specs: a ``PartitionSpec`` for outputs by name, by which the results of the devices are joined. The default
            joins them on the first axis, along all axes of the mesh that cut inputs; a spec that leaves out an axis is
            for an output that is the same on all devices along it.
        passes: the names of the optimization passes to apply, of ``netloop.PASSES``; None for all, without those that
            join weights if any are cut.
        max_trips: the largest number of iterations of a loop, each time it is entered; one more is an ExecutionError.
            None for any number.
        dependent_rows: whether rows of a block may depend on each other, as in a mean over the batch: each device then
            computes its block by itself. If not, the first call with blocks of some shape is repeated with other rows,
            and rows that depend on these are a NetworkError; with one row for each device this compiles a program more.
            Axes of fixed length, and networks with ranks, are those of one device anyway.
        tf32: whether products and convolutions of float32 may be rounded, as for ``netloop.compile``.
        tune: the inputs of a typical call, by name, with which the forms of passes whose gain depends on the processor
            are timed here, and the fastest chosen; False for rules. They cannot be made up, because only the caller
            knows whether they have rows, and how many.
        timing_cache: a timing cache, or the path of its file: forms that it has are not timed again, and those that are
            timed are added.
        tuning_seconds: the seconds after which no further form is timed; infinity for no limit.

    Raises:
        NetworkError: the network is invalid, has other inputs than arrays of numbers, or a weight cannot be cut.
        TypeError, ValueError: a spec is none, or names an axis, input, output or weight that is not there; or an engine
            of several processes, which might choose different forms, is to be tuned.
        InputError: there are no inputs to tune with, or they do not fit.
        ExecutionError: a call with these inputs fails.
        FileFormatError: the timing cache is not one, or is damaged.
    """
    check_instance("tf32", tf32, bool)
    make = partial(ShardedEngine, network, mesh, in_specs, out_specs, dependent_rows=dependent_rows, tf32=tf32)
    with tuning_of(tune, timing_cache, tuning_seconds) as tuning:
        engine = make(passes, max_trips)
        if tuning is None:
            return engine
        _require_one_process(mesh)

        def candidate(recipe: Recipe) -> ShardedEngine:
            return make(recipe.passes, recipe.max_trips, forms=recipe.forms)

        what_counts = engine.max_trips, sorted(engine.passes), _essence(engine, in_specs, out_specs), dependent_rows
        return fastest(Candidates(candidate, network, engine.recipe, what_counts, _no_sample), tuning)


def _essence(engine: ShardedEngine, *specs: Specs | None) -> object:
    """The mesh of an engine and its specs, as far as times depend on them."""
    devices = sorted({f"{device.platform} {device.device_kind}" for device in engine.mesh.devices.flat})
    return devices, [*engine.mesh.shape.items()], [sorted(map(str, (given or {}).items())) for given in specs]


def _require_one_process(mesh: Mesh) -> None:
    if any(device.process_index != jax.process_index() for device in mesh.devices.flat):
        raise ValueError("tune is for a mesh of this process: several could choose different forms, and wait forever")


def _no_sample(network: INetworkDefinition, samples: Samples) -> dict[str, Any]:
    raise NoSamples("only the caller knows whether those of a mesh have rows, and how many")
