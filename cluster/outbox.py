"""What a machine does to the world during one step: the effects, in order."""

from cluster.events import Event
from cluster.machine import CancelTimer, Disconnect, Effect, Emit, Envelope, Send, SetTimer
from cluster.wire.apis import response
from cluster.wire.fields import Message


class Outbox:
    def __init__(self) -> None:
        self.now = 0
        self.effects: list[Effect] = []

    def begin(self, now: int) -> list[Effect]:
        self.now = now
        self.effects = []
        return self.effects

    def send(self, envelope: Envelope) -> None:
        self.effects.append(Send(envelope.destination, envelope))

    def answer(self, asked: Envelope, body: Message) -> None:
        self.effects.append(Send(asked.source, response(asked, body)))

    def emit(self, event: Event) -> None:
        self.effects.append(Emit(event))

    def set_timer(self, name: str, due: int) -> None:
        self.effects.append(SetTimer(name, due))

    def cancel_timer(self, name: str) -> None:
        self.effects.append(CancelTimer(name))

    def disconnect(self, peer: str) -> None:
        self.effects.append(Disconnect(peer))
