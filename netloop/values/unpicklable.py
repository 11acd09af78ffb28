"""Objects of one process, which raise an error that says what to send to another one instead."""

from typing import Any, ClassVar

CREATE_ANOTHER = "cannot be pickled or copied; create one in the other process"
OF_AN_ENGINE = (
    "cannot be pickled or copied, because its programs are those of one process; pickle the engine, and create another "
    "in the other process"
)
OF_A_NETWORK = "cannot be pickled or copied without its network; copy that with network.copy(), or pickle the network"


class Unpicklable:
    """An object that can be neither pickled nor copied, unless it defines ``__copy__`` and ``__deepcopy__``."""

    UNPICKLABLE: ClassVar[str] = CREATE_ANOTHER
    """The operation that is refused, and the one to use instead; the subject is the name of the class."""

    def __reduce_ex__(self, protocol: object) -> Any:
        raise TypeError(f"{type(self).__name__} {self.UNPICKLABLE}")
