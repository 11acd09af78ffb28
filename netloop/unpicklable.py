"""Objects of one process, which raise an error that says what to send to another one instead."""

from typing import ClassVar, NoReturn

CREATE_ANOTHER = "cannot be pickled or copied; create one in the other process"
OF_AN_ENGINE = (
    "cannot be pickled or copied, because an engine's programs are those of one process; pickle engine.serialize(), "
    "and call Runtime.deserialize_cuda_engine in the other process"
)
OF_A_NETWORK = (
    "cannot be pickled or copied without its network; copy that with network.copy(), or pickle "
    "netloop.plan.dumps(network), and call netloop.plan.loads in the other process"
)


class Unpicklable:
    """An object that can be neither pickled nor copied, unless it defines ``__copy__`` and ``__deepcopy__``."""

    UNPICKLABLE: ClassVar[str] = CREATE_ANOTHER
    """What cannot be done, and what to do instead; the subject is the name of the class."""

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"{type(self).__name__} {self.UNPICKLABLE}")
