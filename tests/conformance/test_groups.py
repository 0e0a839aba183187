"""Every answer is the one that a real Kafka 4.3 broker gave."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from cluster.coordinator import turn
from cluster.coordinator.states import GroupState, On
from scenarios.conformance import Case, play_case, read
from seesaw.command import main
from tests.transcripts.test_transcripts import play as play_transcript

HERE = Path(__file__).parent
FILES = [HERE / "groups.yaml", HERE / "cases.yaml"]
CASES = [case for path in FILES for case in read(path) if case.protocol == "classic"]

UNREACHABLE = {  # cells that no request or timer can find a group in
    # A group that this coordinator gave up is not in its memory any more, so nothing can happen to it.
    *((on, GroupState.DEAD) for on in On if on not in (On.PLAN_LOST, On.PLACE_LOST)),
    # Only members have sessions, static ids or records on their way, and an empty group has no members.
    *(
        (on, GroupState.EMPTY)
        for on in (On.JOIN_LEADER, On.JOIN_CHANGED, On.JOIN_BACK, On.JOIN_BACK_REVOTE, On.SYNC_LEADER, On.SESSION_OVER)
    ),
    # A timer is disarmed by whatever ends what it waits for.
    *((On.DELAY_OVER, state) for state in GroupState if state is not GroupState.PREPARING),
    *((On.JOIN_OVER, state) for state in GroupState if state is not GroupState.PREPARING),
    *((On.SYNC_OVER, state) for state in (GroupState.EMPTY, GroupState.PREPARING)),
    # A group is loaded as Empty or Stable, and only one with members is too large.
    *((On.TOO_LARGE, state) for state in GroupState if state is not GroupState.STABLE),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_answer_is_the_recorded_one(case: Case) -> None:
    differences = play_case(case).differences
    assert bool(differences) is case.is_quirk, differences


def test_the_command_counts_cases_and_reports_quirks_without_counting_them() -> None:
    result = CliRunner().invoke(main, ["conformance", "--only", "classic", str(FILES[0])])
    assert result.exit_code == 0
    assert result.output.endswith("2 quirks of the recorded broker, not counted\n106 cases, 0 differ\n")
    assert "leaving-while-waiting-in-sync (a quirk" in result.output


def test_a_wrong_answer_is_shown_as_request_recorded_and_ours(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text("cases:\n- case: wrong\n  steps:\n  - {do: heartbeat, member_id: x, answer: {error: NONE}}\n")
    result = CliRunner().invoke(main, ["conformance", str(path)])
    assert result.exit_code == 1
    assert result.output == (
        "wrong\n  request   {do: heartbeat, member_id: x}\n  recorded  {error: NONE}\n"
        "  ours      {error: UNKNOWN_MEMBER_ID}\n\n1 cases, 1 differ\n"
    )


def test_every_cell_that_can_be_reached_is_reached_by_a_recording_or_a_transcript(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reached: set[tuple[On, GroupState]] = set()

    class Watched(dict[tuple[On, GroupState], object]):
        def __getitem__(self, cell: tuple[On, GroupState]) -> object:
            reached.add(cell)
            return super().__getitem__(cell)

    monkeypatch.setattr(turn, "PROGRAM", Watched(turn.PROGRAM))
    for case in CASES:
        play_case(case)
    for path in sorted((HERE.parent / "transcripts").glob("*.txt")):
        play_transcript(path.read_text())
    everything = {(on, state) for on in On for state in GroupState}
    assert reached == everything - UNREACHABLE
