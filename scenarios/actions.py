"""What users and operators do in a scenario, beside the faults of `cluster/faults.py`: these break nothing."""

from cluster.faults import FAULTS, Action, Duration, Target


class Join(Action):
    """More members start, and join the group."""

    group: str
    members: int = 1


class Subscribe(Action):
    """It wants other topics from now on: these, or all whose name matches the pattern."""

    who: Target
    topics: tuple[str, ...] = ()
    pattern: str | None = None


class Unsubscribe(Action):
    """It leaves the group and polls no more; the process stays."""

    who: Target


class Process(Action):
    """How long the application takes for a record from now on."""

    who: Target
    per_record: Duration


class Roll(Action):
    """One after the other is stopped in good order, and started again: a deploy, or a rolling restart of brokers."""

    who: Target
    every: Duration
    down: Duration


class CreateTopic(Action):
    """A topic that was not there before."""

    topic: str
    partitions: int = 1
    replication_factor: int = 1


class Grow(Action):
    """More partitions for a topic: the new total."""

    topic: str
    partitions: int


class DeleteTopic(Action):
    """A topic is no more, nor what was in it."""

    topic: str


class Elect(Action):
    """Preferred leaders lead again, wherever they can."""


ACTIONS: dict[str, type[Action]] = {
    "join": Join, "subscribe": Subscribe, "unsubscribe": Unsubscribe, "process": Process, "roll": Roll,
    "create-topic": CreateTopic, "grow": Grow, "delete-topic": DeleteTopic, "elect": Elect, **FAULTS}
