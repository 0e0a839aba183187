"""The words of the table, and its circumstances: which room carries out what. Nothing is decided here."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from cluster.consumer.answers import LOST, Answer
from cluster.consumer.commits import Outcome
from cluster.consumer.states import COMPLETING, PREPARING, PROGRAM, STABLE, Asked, Do, When
from cluster.wire.errors import Error

if TYPE_CHECKING:
    from cluster.consumer.consumer import Consumer


class Words:
    """One method for each `Do`, by its name, and one for each `When` but ALWAYS."""

    def __init__(self, consumer: "Consumer") -> None:
        self.consumer = consumer

    # Circumstances

    def is_same(self, answer: Answer) -> bool:
        return bool(answer.call.generation == self.consumer.member.generation)

    def is_outrun(self, answer: Answer) -> bool:
        return not self.is_same(answer) and self.consumer.member.state is PREPARING

    def is_joining(self, answer: Answer) -> bool:
        return self.consumer.member.state is PREPARING

    def is_syncing(self, answer: Answer) -> bool:
        return self.consumer.member.state is COMPLETING

    def is_in_group(self, answer: Answer) -> bool:
        return self.consumer.member.state is STABLE

    def is_moved_on(self, answer: Answer) -> bool:
        assert answer.partition is not None
        if answer.call.asked is Asked.FETCH:
            return self.consumer.fetching.has_moved_on(answer.part)
        return self.consumer.seeking.has_moved_on(answer.call, answer.partition)

    def is_resets(self, answer: Answer) -> bool:
        return self.consumer.seeking.resets()

    # The coordinator

    def found(self, answer: Answer) -> None:
        consumer = self.consumer
        if consumer.discovery.found(answer.body.coordinators[0].node_id):
            consumer.heartbeats.renew()
            consumer.commits.flush()
        else:
            consumer.commits.turn_away()

    def seek(self, answer: Answer) -> None:
        if answer.call is self.consumer.discovery.asked:
            self.consumer.discovery.seek()
            self.consumer.commits.turn_away()

    def lose(self, answer: Answer) -> None:
        is_lost = answer.error is LOST
        self.consumer.discovery.lose(answer.call.peer, "disconnected" if is_lost else answer.error.name,
                                     is_closed=is_lost)

    # Who this member is

    def reset_all(self, answer: Answer) -> None:
        self.consumer.member.reset(f"encountered {answer.error.name} from {answer.call.asked} response")

    def reset_generation(self, answer: Answer) -> None:
        self.consumer.member.reset(f"encountered {answer.error.name} from {answer.call.asked} response", keep_id=True)

    def rejoin(self, answer: Answer) -> None:
        self.consumer.member.rejoin("group is already rebalancing" if answer.call.asked is Asked.BEAT
                                    else "offset commit failed since group is already rebalancing")

    def name(self, answer: Answer) -> None:
        self.consumer.membership.name(answer.body.member_id)

    # Joining

    def enter(self, answer: Answer) -> None:
        self._throw_any(self.consumer.membership.enter(answer.body))

    def grant(self, answer: Answer) -> None:
        self.consumer.membership.grant(answer.body.assignment)

    def again(self, answer: Answer) -> None:
        self.consumer.membership.again(answer.error.name)

    def pause(self, answer: Answer) -> None:
        self.consumer.membership.pause(answer.error.name)

    # Heartbeats

    def beaten(self, answer: Answer) -> None:
        self.consumer.heartbeats.beaten()

    def missed(self, answer: Answer) -> None:
        self.consumer.heartbeats.missed()

    def stop(self, answer: Answer) -> None:
        self.consumer.heartbeats.stop()

    # Commits

    def committed(self, answer: Answer) -> None:
        self._end_commit(answer, Outcome.DONE)

    def commit_again(self, answer: Answer) -> None:
        self._end_commit(answer, Outcome.AGAIN)

    def commit_later(self, answer: Answer) -> None:
        self._end_commit(answer, Outcome.LATER)

    def commit_failed(self, answer: Answer) -> None:
        self._end_commit(answer, Outcome.FAILED)

    def commit_thrown(self, answer: Answer) -> None:
        self._end_commit(answer, Outcome.THROWN)

    def _end_commit(self, answer: Answer, outcome: Outcome) -> None:
        self.consumer.commits.answered(answer.call.about, outcome, answer.error)

    # Positions and records

    def adopt(self, answer: Answer) -> None:
        self._throw_any(self.consumer.seeking.adopt(answer.call, answer.body))

    def ask_offsets(self, answer: Answer) -> None:
        self.consumer.seeking.ask_again(answer.call)

    def begin(self, answer: Answer) -> None:
        assert answer.partition is not None
        self.consumer.seeking.begin(answer.partition, answer.part)

    def verify(self, answer: Answer) -> None:
        assert answer.partition is not None
        self._throw_any(self.consumer.seeking.verify(answer.partition, answer.part))

    def ask_later(self, answer: Answer) -> None:
        assert answer.partition is not None
        self.consumer.seeking.ask_later(answer.partition)

    def take(self, answer: Answer) -> None:
        answer.part.is_open = True

    def reset_position(self, answer: Answer) -> None:
        assert answer.partition is not None
        self.consumer.positions.reset(answer.partition)

    # The cluster

    def learn(self, answer: Answer) -> None:
        self.consumer.metadata.learn(answer.call, answer.body)

    def learn_later(self, answer: Answer) -> None:
        self.consumer.metadata.learn_later()

    def refresh(self, answer: Answer) -> None:
        self.consumer.metadata.request()

    def throw(self, answer: Answer) -> None:
        self.consumer.application.throw(answer.error.name)

    def _throw_any(self, problem: str | None) -> None:
        if problem is not None:
            self.consumer.application.throw(problem)


Line = tuple[Callable[[Words, Answer], bool] | None, tuple[Callable[[Words, Answer], None], ...]]  # if this, then that


def _compile(when: When, line: tuple[Do, ...]) -> Line:
    is_so = None if when is When.ALWAYS else getattr(Words, f"is_{when.name.lower()}")
    return is_so, tuple(getattr(Words, do.name.lower()) for do in line)


LINES: dict[Asked, dict[Error, tuple[Line, ...]]] = {
    asked: {error: tuple(_compile(when, line) for when, line in lines) for error, lines in errors.items()}
    for asked, errors in PROGRAM.items()}
