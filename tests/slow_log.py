"""A broker whose log can be slow to commit, as if its followers lagged behind, or refuse what is written."""

from typing import Any

import msgspec

from cluster.broker import elections
from cluster.broker.broker import Broker
from cluster.broker.image import OFFSETS_TOPIC, Change, PartitionChanged
from cluster.machine import Effect, Input, Received, Send, Told
from cluster.wire.apis import response
from cluster.wire.errors import Error
from cluster.wire.log import PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceResponse

THAW = "thaw"


class LedBy(msgspec.Struct, frozen=True):
    """As if the controller's log said that another broker leads the offsets topic now."""

    leader: int


class SlowLog(Broker):
    """Frozen, it writes and does not say so until it is told to thaw."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.is_frozen = False
        self.refuses: Error | None = None
        self.held: list[Effect] = []

    def step(self, now: int, event: Input) -> list[Effect]:
        if isinstance(event, Told) and event.command == THAW:
            released, self.held = self.held, []
            return released
        if isinstance(event, Told) and isinstance(event.command, LedBy):
            return self._led_by(now, event.command.leader)
        if self.refuses is not None and isinstance(event, Received) and isinstance(event.envelope.body, ProduceRequest):
            topic = event.envelope.body.topic_data[0]
            answer = ProduceResponse(
                (
                    TopicProduceResponse(
                        topic.name, (PartitionProduceResponse(topic.partition_data[0].index, self.refuses),)
                    ),
                )
            )
            return [Send(event.envelope.source, response(event.envelope, answer))]
        effects = super().step(now, event)
        if not self.is_frozen:
            return effects
        self.held += [effect for effect in effects if _is_commit(effect)]
        return [effect for effect in effects if not _is_commit(effect)]

    def _led_by(self, now: int, leader: int) -> list[Effect]:
        effects = self.out.begin(now)
        news: list[Change] = []
        for number, before in enumerate(self.image.topics[OFFSETS_TOPIC]):
            after = elections.bumped(before, msgspec.structs.replace(before, leader=leader))
            news.append(PartitionChanged(OFFSETS_TOPIC, number, after))
            self.image.apply(news[-1])
        self._learned(news)
        self._answer_the_waiting()
        return effects


def _is_commit(effect: Effect) -> bool:
    return isinstance(effect, Send) and isinstance(effect.envelope.body, ProduceResponse)
