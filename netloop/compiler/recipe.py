"""The way from a network to a program: the only caller of the passes and of the lowering."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from netloop.compiler.lower import Program, has_program
from netloop.compiler.lower.lowering import LoweringOptions
from netloop.compiler.lower.nesting import DEEPEST_NEST, require_shallow
from netloop.compiler.passes import NO_FORMS, Forms, Improved, applied, chosen, improve, of_host, of_platform
from netloop.compiler.passes.elementwise_loops import ElementwiseLoops
from netloop.compiler.passes.recurrent_kernels import RecurrentKernels
from netloop.compiler.placement import Placement
from netloop.compiler.product_precision import CALLERS, DeviceTraits, ProductType, precision_of, product_type
from netloop.model.check import ValidatedNetwork, require_valid
from netloop.model.graph.attributes import check_instance
from netloop.model.graph.infer import TypeTable
from netloop.model.layers.loop import check_max_trips
from netloop.model.network import INetworkDefinition
from netloop.values.devices import Device


@dataclass(frozen=True)
class Recipe:
    """The decisions by which programs are made of a network; without any, by no pass, on JAX's default device.

    ``Recipe.of`` checks the options of an engine, and has the passes and the precision that are the default there.

    Attributes:
        passes: the names of the passes.
        forms: the forms of those that do not follow their rule.
        max_trips: the largest number of iterations of a loop, each time it is entered; None for any number.
        is_pure: whether the program is for JAX's transformations, which report no errors.
        bounds: the largest numbers of iterations of loops by name, for derivatives in reverse mode.
        placement: the device that the programs run on, of a mesh the first one.
        platform: the JAX platform that the programs are for; empty for that of the device.
        precision: that of float32 products: a value of ``jax_default_matmul_precision``, or ``CALLERS``.
    """

    passes: frozenset[str] = frozenset()
    forms: Forms = field(default_factory=lambda: NO_FORMS)
    max_trips: int | None = None
    is_pure: bool = False
    bounds: Mapping[str, int] = field(default_factory=dict[str, int])
    placement: Placement = field(default_factory=Placement.default)
    platform: str = ""
    precision: str | None = CALLERS

    @staticmethod
    def of(
        passes: Iterable[str] | None,
        forms: Forms = NO_FORMS,
        max_trips: int | None = None,
        tf32: bool = True,
        *,
        device: Device | None = None,
    ) -> Recipe:
        """A recipe with checked passes, all for None, without those that some forms turn off, for a device.

        Its products have the precision that JAX is set to now, or that of float32 if they may not be rounded.

        Raises:
            TypeError, ValueError: there is no pass of a name.
            InputError: there is no such device.
        """
        recipe = Recipe(
            chosen(passes), max_trips=max_trips, placement=Placement.of(device), precision=precision_of(tf32)
        )
        return recipe.with_forms(forms)

    def with_forms(self, forms: Forms) -> Recipe:
        """The recipe with some forms of its passes, without those that these turn off."""
        return replace(self, passes=applied(self.passes, forms), forms=forms)

    def validated(self, network: INetworkDefinition, deepest: int = DEEPEST_NEST) -> ValidatedNetwork:
        """The steps of a network of which programs can be made.

        Raises:
            TypeError, ValueError: the network or the largest number of iterations is none.
            NetworkError: the network is invalid, or nested too deep.
        """
        check_max_trips("max_trips", self.max_trips)
        validated = require_valid(check_instance("network", network, INetworkDefinition))
        require_shallow(validated.block, deepest, self.max_trips)
        return validated

    def prepared(self, network: INetworkDefinition, types: TypeTable, validated: ValidatedNetwork) -> Improved:
        """The network for some types of its inputs, by which ``has_program`` decides where it runs.

        That is after the passes for the host, unless one program holds it without them.
        """
        source = Improved(network, types, validated, [])
        return source if has_program(network, types) else self.improved(source, on_host=True)

    def improved(self, source: Improved, *, on_host: bool = False) -> Improved:
        """A network after the passes for some types of its inputs; only after those for the host if it runs there."""
        network, types, validated, notes, refusals, _ = source
        passes = of_host(self._passes) if on_host else self._passes
        result = improve(
            network, types, validated, passes, self.forms, self.target, self.bounds, self.is_pure, self.product_type
        )
        return result._replace(notes=[*notes, *result.notes], refusals={**refusals, **result.refusals})

    def program(self, source: Improved) -> Program:
        """The lowered network, which one program holds."""
        validated, outputs = source.validated, source.network.outputs
        options = replace(self.host_options, passes=self._passes, forms=self.forms)
        return Program(validated.block.steps, outputs, source.types, validated.scopes, options)

    @property
    def host_options(self) -> LoweringOptions:
        """The options of the lowering of pieces between steps on the host."""
        return LoweringOptions(
            self.max_trips, platform=self.target, precision=self.precision, is_pure=self.is_pure, bounds=self.bounds
        )

    @property
    def product_type(self) -> ProductType:
        """The type of the operands of float32 products on the device of the programs."""
        return product_type(self.precision, DeviceTraits.of(self.placement.device))

    @property
    def _passes(self) -> frozenset[str]:
        """The passes that are for the platform."""
        # a kernel does not look whether its iterations are too many
        passes = self.passes if self.max_trips is None else self.passes - {RecurrentKernels.name, ElementwiseLoops.name}
        return of_platform(passes, self.target)

    @property
    def target(self) -> str:
        """The JAX platform that the programs are for: cpu, gpu or tpu."""
        return self.platform or self.placement.platform
