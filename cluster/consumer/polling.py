"""The application around the client: it polls, processes what comes back, commits if it is told to, and polls again.

It is one thread. While it processes it does nothing else, and nothing in the client happens that needs it; the
heartbeat thread goes on without it. poll() is written as one pass, `_poll`, which is made again whenever something has
happened: the pass does what can be done now, and either returns records or waits.
"""

from enum import StrEnum
from typing import TYPE_CHECKING

from cluster.consumer.commands import Close, Command, EnforceRebalance, SetProcessing, Subscribe, Unsubscribe
from cluster.consumer.commits import Outcome
from cluster.consumer.fetching import Taken
from cluster.consumer.member import NOBODY
from cluster.consumer.outbox import NEVER
from cluster.events import ConsumerFailed, RecordsProcessed
from cluster.wire.errors import Error

if TYPE_CHECKING:
    from cluster.consumer.consumer import Consumer

TIMER = "poll"
CLOSE_MS = 30000                               # how long close() may take; no longer than request.timeout.ms
GOES_ON = (Outcome.DONE, Outcome.LATER, Outcome.FAILED, Outcome.TIMED_OUT)     # what an application shrugs off


class Doing(StrEnum):
    NOTHING = "nothing"                        # not subscribed, closed, or failed
    POLLING = "polling"
    PROCESSING = "processing"
    COMMITTING = "committing"                  # and waiting for the answer
    RESTING = "resting"                        # an error came out of its poll, and it tries again in a moment
    CLOSING = "closing"


INSIDE = (Doing.POLLING, Doing.COMMITTING, Doing.CLOSING)      # the client is at work on the application's thread


class Application:
    def __init__(self, consumer: "Consumer") -> None:
        self.consumer = consumer
        self.out = consumer.out
        self.config = consumer.config
        self.doing = Doing.NOTHING
        self.ms_per_record = consumer.config.processing_ms_per_record
        self.until = 0                         # the poll, the processing, the rest or the close is over then
        self.batch: list[Taken] = []           # what is being processed,
        self.polled_as = NOBODY                # and as whom it was polled
        self.thrown: str | None = None         # what the next poll throws
        self._commands: list[Command] = []     # they wait until the application has time for them
        self._processed_at = 0.0               # when all of the batch will be processed
        self._fresh_after = -1                 # a pattern joins with metadata newer than this
        self._has_left = False                 # close() has got so far
        self._steps = {
            Doing.POLLING: self._poll, Doing.PROCESSING: self._process, Doing.COMMITTING: self._commit,
            Doing.RESTING: self._rest, Doing.CLOSING: self._close,
        }

    def is_inside(self) -> bool:
        """Is the client at work on the application's thread?"""
        return self.doing in INSIDE

    def throw(self, error: str) -> None:
        self.thrown = self.thrown or error

    def go_on(self) -> None:
        """Let the application do all it can do now. Then it waits until something happens, or its timer fires."""
        out = self.out
        while (step := self._steps.get(self.doing)) is not None:
            if self.doing in INSIDE:
                self.consumer.listen()
            out.wakes_at = NEVER
            if not step():
                out.arm(TIMER, out.wakes_at)
                return
        out.disarm(TIMER)

    # Commands

    def told(self, command: Command) -> None:
        """A poll is interrupted for a command; what is being processed, committed or closed is not."""
        if isinstance(command, SetProcessing):
            self._set_pace(command.ms_per_record)
        else:
            self._commands.append(command)
            if self.doing is Doing.NOTHING:
                self._obey()

    def _set_pace(self, ms_per_record: float) -> None:
        if self.doing is Doing.PROCESSING and self.ms_per_record > 0:
            left_ms = (self._processed_at - self.out.now) * ms_per_record / self.ms_per_record
            self._process_until(self.out.now + left_ms)
        self.ms_per_record = ms_per_record

    def _obey(self) -> None:
        consumer = self.consumer
        command = self._commands.pop(0)
        if isinstance(command, Subscribe) and (command.topics or command.pattern is not None):
            self._subscribe(command)
        elif self.doing is Doing.NOTHING:
            return
        elif isinstance(command, EnforceRebalance):
            consumer.member.rejoin(command.reason or "rebalance enforced by user")
        elif isinstance(command, Close):
            self._begin_close()
        else:
            assert isinstance(command, (Subscribe, Unsubscribe))
            consumer.fetching.forget(())
            consumer.ownership.let_go()
            consumer.membership.leave("unsubscribed", "the consumer unsubscribed from all topics")
            consumer.interest.unsubscribe()
            self.doing = Doing.NOTHING

    def _subscribe(self, command: Subscribe) -> None:
        consumer = self.consumer
        if self.doing is Doing.NOTHING:
            consumer.begin()
            self._begin_poll()
        if command.pattern is None:
            consumer.fetching.forget(command.topics)
        consumer.interest.subscribe(command.topics, command.pattern, consumer.metadata)

    # poll()

    def _begin_poll(self) -> None:
        """Even one that does not wait takes a millisecond: else time would stand still in a world without events.

        Between two polls the heartbeat thread gets the lock that a poll holds while it looks for the coordinator, and
        drops its question: else a broker that is cut off could keep a member waiting for request.timeout.ms.
        """
        self.doing = Doing.POLLING
        discovery = self.consumer.discovery
        discovery.start_over()
        if discovery.asked is not None and self.config.heartbeat_thread and self.consumer.heartbeats.is_running():
            discovery.drop()
        self.until = self.out.now + max(self.config.poll_timeout_ms, 1)

    def _poll(self) -> bool:
        """One pass through poll(). True: it has returned, or was interrupted."""
        consumer, out = self.consumer, self.out
        if self._commands:
            self._obey()
            return True
        is_over = out.now >= self.until
        consumer.interest.notice(consumer.metadata)
        consumer.heartbeats.polled()
        if consumer.leading.answer is not None and not self._lead():
            return False
        is_ready = self.thrown is None and self._get_ready()
        if self.thrown is not None:
            return self._catch()
        if not is_ready and not is_over:
            out.wake(self.until)
            return False
        before = consumer.positions.changes
        batch = consumer.fetching.collect()
        consumer.fetching.send()
        if batch:
            self._begin_processing(batch)
        elif consumer.positions.changes != before:
            return True                        # some position is no good any more: begin again with finding another
        elif self.thrown is not None:
            return self._catch()
        elif is_over:
            self._begin_poll()
        else:
            out.wake(self.until)
            return False
        return True

    def reads_on(self) -> bool:
        """If all is as it was when poll last looked, it only fetches again, and waits: so a long poll costs little.
        False: it must look."""
        consumer, out = self.consumer, self.out
        if (self.doing is not Doing.POLLING or out.now >= self.until or out.now >= consumer.commits.next_auto
                or self._commands or self.thrown is not None or consumer.inbox or consumer.fetching.buffer
                or not self.config.heartbeat_thread or consumer.leading.answer is not None
                or consumer.discovery.coordinator is None or consumer.membership.must_join()):
            return False
        consumer.heartbeats.polled()
        out.wakes_at = NEVER
        consumer.fetching.send()
        out.wake(self.until)
        out.wake(consumer.commits.next_auto)
        return True

    def _lead(self) -> bool:
        """The leader waits for metadata, as long as it takes, and meanwhile does nothing else. False: it still does."""
        problem = self.consumer.membership.lead()
        if problem is not None:
            self.throw(problem)
        return self.consumer.leading.answer is None

    def _get_ready(self) -> bool:
        """What poll does before it looks at records. False: it has to wait. Nobody waits for a join, though."""
        consumer = self.consumer
        if not consumer.config.heartbeat_thread:
            consumer.beat()
        if not consumer.discovery.ensure():
            return False
        if consumer.membership.must_join():
            if consumer.interest.pattern is not None and not self._has_fresh_names():
                return False
            consumer.membership.go_on()
            if consumer.membership.must_join():
                return True
        consumer.commits.commit_when_due()
        return consumer.seeking.go_on()

    def _has_fresh_names(self) -> bool:
        """A pattern joins with metadata that is as new as can be, so that one new topic means one rebalance."""
        metadata = self.consumer.metadata
        if self._fresh_after < 0:
            if metadata.may_ask():
                metadata.request()
            if metadata.is_fresh():
                return True
            self._fresh_after = metadata.version
        if metadata.version <= self._fresh_after:
            return False
        self._fresh_after = -1
        self.consumer.interest.notice(metadata)
        return True

    # What the application does with it

    def _begin_processing(self, batch: list[Taken]) -> None:
        self.doing = Doing.PROCESSING
        self.batch = batch
        self.polled_as = self.consumer.member.public
        self._process_until(self.out.now + sum([taken.count for taken in batch]) * self.ms_per_record)

    def _process_until(self, instant: float) -> None:
        self._processed_at = instant
        self.until = int(-(-instant // 1))

    def _process(self) -> bool:
        if self.out.now < self.until:
            self.out.wake(self.until)
            return False
        consumer, who = self.consumer, self.polled_as
        for taken in self.batch:
            self.out.emit(RecordsProcessed(consumer.group_id, who.member_id, who.number, *taken.partition,
                                           taken.first, taken.last, taken.count))
        self.batch = []
        if self.config.commit == "sync":
            consumer.commits.begin_blocking(self.out.now + self.config.default_api_timeout_ms)
            self.doing = Doing.COMMITTING
            return True
        if self.config.commit == "async":
            consumer.commits.begin()
        self._begin_poll()
        return not (consumer.positions.all_are_good() and self.reads_on())

    def _commit(self) -> bool:
        ended = self.consumer.commits.go_on()
        if ended is None:
            return False
        if ended.outcome in GOES_ON:
            self._begin_poll()
            return True
        self.throw(ended.error)
        return self._catch()

    # Errors, and the end

    def _catch(self) -> bool:
        """As usual applications do: try again in a moment if that may help, else close the client and stop."""
        assert self.thrown is not None
        error, self.thrown = self.thrown, None
        self.out.emit(ConsumerFailed(self.consumer.group_id, self.consumer.member.public.member_id, error))
        if error in Error.__members__ and Error[error].retriable:
            self.doing = Doing.RESTING
            self.until = self.out.now + self.config.retry_backoff_ms
        else:
            self._begin_close()
        return True

    def _rest(self) -> bool:
        if self.out.now < self.until:
            self.out.wake(self.until)
            return False
        self._begin_poll()
        return True

    def _begin_close(self) -> None:
        self.doing = Doing.CLOSING
        self.until = self.out.now + min(CLOSE_MS, self.config.request_timeout_ms)
        self._has_left = False
        if self.consumer.commits.is_auto:
            self.consumer.commits.begin_blocking(self.until)

    def _close(self) -> bool:
        """Commit, leave, wait for what is still asked of the coordinator; but not longer than close() may take."""
        consumer, commits = self.consumer, self.consumer.commits
        is_over = self.out.now >= self.until
        self.out.wake(self.until)
        if not self._has_left:
            if commits.blocking is not None and commits.go_on() is None:
                return False
            if commits.are_pending() and not is_over:
                consumer.discovery.ensure()
                return False
            consumer.heartbeats.stop()
            consumer.ownership.let_go()
            consumer.membership.leave("closed", "the consumer is being closed")
            self._has_left = True
        coordinator = consumer.discovery.coordinator
        if coordinator is not None and consumer.connections.is_busy(coordinator) and not is_over:
            return False
        consumer.end()
        self.doing = Doing.NOTHING
        self.thrown = None
        if self._commands:
            self._obey()
        return True
