"""Who coordinates the group: asked of any broker, forgotten when it fails, looked for again.

The application waits for it in its poll; while the application is busy, the heartbeat thread looks. Losing the
coordinator changes nothing about the member: its id, generation and partitions are good at the next one.
"""

from random import Random

from cluster.consumer.connections import Call, Connections, coordinator_name
from cluster.consumer.metadata import Metadata
from cluster.consumer.outbox import Backoff, Outbox
from cluster.consumer.states import Asked
from cluster.events import CoordinatorFound, CoordinatorLost
from cluster.wire.groups import FindCoordinatorRequest


class Discovery:
    def __init__(self, out: Outbox, connections: Connections, metadata: Metadata, group_id: str, backoff: Backoff,
                 rng: Random) -> None:
        self.out = out
        self.connections = connections
        self.metadata = metadata
        self.group_id = group_id
        self.backoff = backoff
        self.rng = rng
        self.coordinator: str | None = None    # the machine that speaks for it
        self.asked: Call | None = None         # the question that somebody waits for
        self._request = FindCoordinatorRequest(coordinator_keys=(group_id,))
        self._failures = 0
        self._not_before = 0
        self._seen = -1                        # the metadata must be newer than this before we ask again

    def start_over(self) -> None:
        """Another poll begins: its patience is fresh."""
        self._failures = 0

    def ensure(self) -> bool:
        """Is the coordinator known? If not, look for it, and wake the application when there is more to do."""
        if self.coordinator is not None:
            return True
        if self.asked is None:
            if self.out.now < self._not_before:
                self.out.wake(self._not_before)
            elif self.metadata.version > self._seen:
                self.look()
        return False

    def look(self) -> None:
        peer = self.metadata.any_broker()
        if peer is None:
            self.seek()
        else:
            self.asked = self.connections.ask(peer, Asked.FIND, self._request)

    def look_behind(self) -> None:
        """The heartbeat thread looks: it drops a question that was not answered so far, and asks the next time."""
        if self.asked is not None:
            self.drop()
        else:
            self.look()

    def drop(self) -> None:
        """Nobody waits for the answer any more; if it comes it is welcome all the same."""
        self.asked = None

    # Answers

    def found(self, node: int) -> bool:
        """Take it, unless it could not be reached a moment ago: the brokers may not know yet that it is dead."""
        self.asked = None
        peer = coordinator_name(node)
        if self.connections.is_down(peer):
            self.seek()
            return False
        if self.coordinator != peer:
            self.coordinator = peer
            self.out.emit(CoordinatorFound(self.group_id, node))
        self._failures = 0
        return True

    def seek(self) -> None:
        """It was not found: look again after a pause, with fresh metadata."""
        self.asked = None
        self._not_before = self.out.now + self.backoff.ms(self._failures, self.rng)
        self._failures += 1
        self._seen = self.metadata.version
        self.metadata.request()
        self.out.wake(self._not_before)

    def lose(self, peer: str, cause: str, *, is_closed: bool) -> None:
        """It is not the coordinator, or does not answer. Somebody who was it before may say that too: no matter."""
        if self.coordinator is None or peer != self.coordinator:
            return
        self.coordinator = None
        self.out.emit(CoordinatorLost(self.group_id, cause))
        if not is_closed:
            self.connections.close(peer)
