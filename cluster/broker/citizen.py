"""A broker as a citizen of its cluster: it registers with the controller, shows that it is alive, and follows its log.

Until it has followed that log past its own registration it is fenced: nobody counts on it. When it wants to stop, it
says so, and goes when the controller has given what it led to others.
"""

from collections.abc import Callable

from cluster.broker.image import METADATA_TOPIC, Change, Image, from_record
from cluster.config import BrokerConfig
from cluster.outbox import Outbox
from cluster.wire import control
from cluster.wire.errors import Error
from cluster.wire.fields import Message
from cluster.wire.log import FetchPartition, FetchRequest, FetchResponse, FetchTopic

REGISTER, HEARTBEAT, PATIENCE, METADATA = "register", "heartbeat", "patience", "metadata"
RETRY_MS = 100
PATIENCE_MS = 4500                             # half a broker session: then the connection is given up


class Citizen:
    def __init__(self, broker_id: int, config: BrokerConfig, out: Outbox, ask: Callable[[Message], int],
                 incarnation: int, learned: Callable[[list[Change]], None]) -> None:
        self.broker_id = broker_id
        self.config = config
        self.out = out
        self.ask = ask                         # send something to the controller
        self.incarnation = incarnation
        self.learned = learned                 # what to do with news
        self.image = Image()
        self.broker_epoch = -1
        self.position = 0                      # how far the controller's log was followed
        self.is_fenced = True
        self.wants_to_stop = False
        self.may_stop = False
        self.beating: int | None = None        # correlation ids of what is under way
        self.fetching: int | None = None

    def start(self) -> None:
        self.ask(control.BrokerRegistrationRequest(self.broker_id, self.incarnation))
        self.out.set_timer(PATIENCE, self.out.now + PATIENCE_MS)

    def stop(self) -> None:
        self.wants_to_stop = True
        self._beat()

    def fired(self, timer: str) -> None:
        if timer == REGISTER:
            self.start()
        elif timer == HEARTBEAT:
            self._beat()
        elif timer == METADATA:
            self._follow()

    def disconnected(self) -> None:
        """The controller is gone, or cannot be reached: ask again soon, and go on with what is known."""
        self.beating = self.fetching = None
        self.out.cancel_timer(PATIENCE)
        if self.broker_epoch < 0:
            self.out.set_timer(REGISTER, self.out.now + RETRY_MS)
            return
        self.out.set_timer(HEARTBEAT, self.out.now + RETRY_MS)
        self.out.set_timer(METADATA, self.out.now + RETRY_MS)

    def registered(self, answer: control.BrokerRegistrationResponse) -> None:
        self.out.cancel_timer(PATIENCE)
        if answer.error_code is not Error.NONE:
            self.out.set_timer(REGISTER, self.out.now + RETRY_MS)
            return
        self.broker_epoch = answer.broker_epoch
        self._beat()
        if self.fetching is None:
            self._follow()

    def beaten(self, correlation_id: int, answer: control.BrokerHeartbeatResponse) -> None:
        if correlation_id != self.beating:
            return
        self.beating = None
        self.out.cancel_timer(PATIENCE)
        if answer.error_code is not Error.NONE:
            self.broker_epoch = -1
            self.out.set_timer(REGISTER, self.out.now + RETRY_MS)
            return
        self.is_fenced = answer.is_fenced
        self.may_stop = answer.should_shut_down
        soon = self.is_fenced or self.wants_to_stop
        self.out.set_timer(HEARTBEAT, self.out.now + (RETRY_MS if soon else self.config.broker_heartbeat_interval_ms))

    def fetched(self, correlation_id: int, answer: FetchResponse) -> None:
        if correlation_id != self.fetching:
            return
        news = []
        for batch in answer.responses[0].partitions[0].records:
            for offset, record in batch.numbered():
                if offset >= self.position:
                    news.append(from_record(record))
            self.position = max(self.position, batch.next_offset())
        for change in news:
            self.image.apply(change)
        if news:
            self.learned(news)
            if self.is_fenced and self.beating is None and self.broker_epoch >= 0:
                self._beat()
        self._follow()

    def _beat(self) -> None:
        if self.broker_epoch < 0:
            return
        self.beating = self.ask(control.BrokerHeartbeatRequest(self.broker_id, self.broker_epoch, self.position,
                                                               self.wants_to_stop))
        self.out.set_timer(PATIENCE, self.out.now + PATIENCE_MS)

    def _follow(self) -> None:
        wanted = (FetchTopic(METADATA_TOPIC, (FetchPartition(0, self.position, -1, 1 << 20),)),)
        self.fetching = self.ask(FetchRequest(wanted, self.broker_id, self.broker_epoch,
                                              self.config.replica_fetch_wait_max_ms))
