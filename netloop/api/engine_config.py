"""Configs that an engine creates: for its plan, and for its execution contexts."""

from netloop.api.enums import ExecutionContextAllocationStrategy, SerializationFlag
from netloop.model.graph.attributes import check_member, flag_bit
from netloop.values.checked_attributes import CheckedAttributes, whole


class ISerializationConfig(CheckedAttributes):
    """The settings of serialization.

    EXCLUDE_WEIGHTS leaves out the weights that a ``Refitter`` can supply later. The other flags have no effect: there
    is no lean runtime, and a plan can always be refitted.
    """

    flags: int = 0

    CHECKS = {"flags": whole(0)}

    def set_flag(self, flag: SerializationFlag) -> bool:
        """Set a flag; True."""
        self.flags |= flag_bit(flag, SerializationFlag)
        return True

    def clear_flag(self, flag: SerializationFlag) -> bool:
        """Clear a flag; True."""
        self.flags &= ~flag_bit(flag, SerializationFlag)
        return True

    def get_flag(self, flag: SerializationFlag) -> bool:
        """Whether a flag is set."""
        return bool(self.flags & flag_bit(flag, SerializationFlag))


class IRuntimeConfig(CheckedAttributes):
    """The memory settings of a context; recorded without effect, because XLA manages memory."""

    def __init__(
        self, strategy: ExecutionContextAllocationStrategy = ExecutionContextAllocationStrategy.STATIC
    ) -> None:
        self.set_execution_context_allocation_strategy(strategy)

    def set_execution_context_allocation_strategy(
        self, strategy: ExecutionContextAllocationStrategy = ExecutionContextAllocationStrategy.STATIC
    ) -> None:
        """Set when a context allocates its memory."""
        self._strategy = check_member("strategy", strategy, ExecutionContextAllocationStrategy)

    def get_execution_context_allocation_strategy(self) -> ExecutionContextAllocationStrategy:
        """When a context allocates its memory."""
        return self._strategy
