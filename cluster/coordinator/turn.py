"""One thing that happens to one group, and what is done about it: the table, executed.

This is the only file that looks at a group's state to decide something, and all it does with it is to find the cell.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cluster.coordinator import guards, offsets, reactions
from cluster.coordinator.answers import UNGATED, refusal
from cluster.coordinator.group import Group, Member
from cluster.coordinator.states import Cell, Check, Do, GroupState, On, reaction
from cluster.machine import Envelope
from cluster.wire.errors import Error
from cluster.wire.fields import Message

if TYPE_CHECKING:
    from cluster.coordinator.shard import Shard


class Turn:
    __slots__ = ("about", "body", "cause", "envelope", "error", "group", "member", "on", "request", "said", "shard")

    def __init__(self, shard: "Shard", group: Group, on: On, envelope: Envelope | None, member: Member | None,
                 about: Any, error: Error | None) -> None:
        self.shard = shard
        self.group = group
        self.on = on
        self.envelope = envelope               # None: a timer, or a record of ours
        self.request: Any = None if envelope is None else envelope.body
        self.member = member                   # whom it is about, if that is known
        self.about = about                     # what else it is about; what was found, if it was a question
        self.error = error                     # why it was lost
        self.said: Error | None = None         # the error that was answered
        self.body: Message | None = None       # the answer that is due when the turn is over
        self.cause = ""                        # why members must rejoin, for people

    def say(self, error: Error) -> None:
        """Answer with an error, or with NONE where nothing else is to be said."""
        self.said = error
        if self.envelope is None:
            return
        body = refusal(self.envelope, error, self.shard.topics)
        if self.envelope.api_key in UNGATED:
            self.shard.out.answer(self.envelope, body)
        else:
            self.body = body


Word = Callable[[Turn], bool | None]           # False: nothing came of it, the cell ends here


def play(turn: Turn) -> None:
    """Ask the checks, then carry out the cell under the group's state."""
    asked, cell = PROGRAM[turn.on, turn.group.state]
    for is_true, otherwise in asked:
        if not is_true(turn):
            _carry_out(otherwise, turn)
            break
    else:
        _carry_out(cell, turn)
    if turn.body is not None and turn.envelope is not None:
        turn.shard.reply(turn.envelope, turn.body)


def _carry_out(cell: tuple[Word, ...], turn: Turn) -> None:
    for word in cell:
        if word(turn) is False:
            return


def _compile(cell: Cell) -> tuple[Word, ...]:
    return tuple(_saying(word) if isinstance(word, Error) else WORDS[word] for word in cell)


def _saying(error: Error) -> Word:
    def say(turn: Turn) -> None:
        turn.say(error)

    return say


WORDS: dict[Do, Word] = {**reactions.WORDS, **offsets.WORDS}

Compiled = tuple[tuple[tuple[Callable[[Turn], bool], tuple[Word, ...]], ...], tuple[Word, ...]]     # asked, then done
PROGRAM: dict[tuple[On, GroupState], Compiled] = {}
for _on in On:
    for _state in GroupState:
        _asked, _cell = reaction(_on, _state)
        PROGRAM[_on, _state] = (
            tuple((guards.TRUE[check], _compile(otherwise)) for check, otherwise in _asked),
            _compile(_cell),
        )
assert set(guards.TRUE) == set(Check)
