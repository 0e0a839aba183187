"""The journal of messages: what hosts see of them, since a machine cannot see a lost one.

Every request that leaves, every answer that arrives, every connection that closes is an event of the process it happens
to. `counts` says how many of each there were. How much of it is kept is for whoever keeps it: see `Level`.
"""

from collections import Counter
from collections.abc import Callable
from enum import StrEnum

from cluster.events import ConnectionClosed, Event, RequestSent, ResponseArrived, Stamped
from cluster.machine import Disconnected, Envelope, Input, Received
from cluster.sim.world import Process, World
from cluster.wire.apis import API_OF_RESPONSE, APIS, ApiKey
from cluster.wire.codec import encode
from cluster.wire.errors import Error

REQUEST_TIMEOUT_MS = 30000
JOIN_SLACK_MS = 5000                           # how much longer than a rebalance may take a client waits for its join
FREQUENT = (ApiKey.FETCH, ApiKey.HEARTBEAT, ApiKey.BROKER_HEARTBEAT)


class Level(StrEnum):
    """How much of the journal is kept: nothing but counts; all but fetches and quiet heartbeats; everything."""

    COUNTS = "counts"
    PROTOCOL = "protocol"
    ALL = "all"

    def keeps(self, event: Event) -> bool:
        if self is Level.ALL or not isinstance(event, (RequestSent, ResponseArrived, ConnectionClosed)):
            return True
        if self is Level.COUNTS:
            return False
        if isinstance(event, RequestSent):
            return event.api not in _FREQUENT
        return isinstance(event, ConnectionClosed) or event.api not in _FREQUENT or (
            event.api == "Heartbeat" and event.error != "NONE")


_FREQUENT = frozenset(APIS[key].name for key in FREQUENT)


class Journal:
    def __init__(self, world: World, request_timeout_ms: int = REQUEST_TIMEOUT_MS, *, measures: bool = True) -> None:
        self.world = world
        self.request_timeout_ms = request_timeout_ms
        self.measures = measures               # how large requests are: it takes the codec to find out
        self.counts: Counter[str] = Counter()
        self.observers: list[Callable[[Stamped], None]] = []

    def sent(self, sender: Process, envelope: Envelope) -> None:
        """A request leaves. Answers are seen where they arrive."""
        api = APIS[envelope.api_key]
        if type(envelope.body) is not api.request:
            return
        self.counts[api.name] += 1
        size = len(encode(envelope)) if self.measures and envelope.api_key not in FREQUENT else 0
        self._tell(sender, RequestSent(envelope.destination, api.name, envelope.api_version, envelope.correlation_id,
                                       self._timeout_ms(sender, envelope), size))

    def _timeout_ms(self, sender: Process, envelope: Envelope) -> int:
        """Within a host there is none: a coordinator's write waits as long as its broker leads."""
        body, receiver = envelope.body, self.world.processes.get(envelope.destination)
        if APIS[envelope.api_key].response is None or (envelope.api_key == ApiKey.PRODUCE and body.acks == 0) or (
                receiver is not None and receiver.host is sender.host):
            return 0
        if envelope.api_key == ApiKey.JOIN_GROUP:
            return max(int(body.rebalance_timeout_ms) + JOIN_SLACK_MS, self.request_timeout_ms)
        return self.request_timeout_ms

    def arrived(self, receiver: Process, event: Input) -> None:
        if isinstance(event, Received):
            envelope = event.envelope
            api = API_OF_RESPONSE.get(type(envelope.body))
            if api is not None:
                error = getattr(envelope.body, "error_code", Error.NONE)
                self._tell(receiver, ResponseArrived(envelope.source, api.name, envelope.correlation_id, error.name))
        elif isinstance(event, Disconnected):
            self._tell(receiver, ConnectionClosed(event.peer))

    def closed(self, process: Process, peer: str) -> None:
        self._tell(process, ConnectionClosed(peer, by_us=True))

    def _tell(self, process: Process, event: Event) -> None:
        process.events += 1
        stamped = Stamped(self.world.now, process.name, process.events, event)
        for observe in self.observers:
            observe(stamped)
