"""The protocol is pure, layers point one way, and a group's state is written in one place: read off the source."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLUSTER = sorted((ROOT / "cluster").rglob("*.py"))
ALLOWED = {
    "bisect",
    "collections",
    "enum",
    "functools",
    "heapq",
    "itertools",
    "msgspec",
    "pickle",
    "random",
    "re",
    "struct",
    "typing",
    "uuid",
    "cluster",
}
LAYERS = {  # who may import whom, among ours
    "cluster": {"cluster"},
    "scenarios": {"cluster", "scenarios"},
    "seesaw": {"cluster", "scenarios", "seesaw"},
}
NOT_OF_RANDOM = {"random", "randint", "choice", "shuffle", "seed", "getrandbits", "sample", "uniform"}


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", CLUSTER, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_protocol_imports_nothing_that_could_touch_the_world(path: Path) -> None:
    assert {name.partition(".")[0] for name in imports(path)} <= ALLOWED


@pytest.mark.parametrize("path", CLUSTER, ids=lambda path: str(path.relative_to(ROOT)))
def test_randomness_and_ids_come_only_from_a_stream_that_was_given(path: Path) -> None:
    used = set(imports(path))
    assert not {f"random.{name}" for name in NOT_OF_RANDOM} & used
    assert not {"uuid.uuid1", "uuid.uuid4", "random"} & used


@pytest.mark.parametrize("layer", LAYERS)
def test_layers_point_one_way(layer: str) -> None:
    ours = {"cluster", "actors", "scenarios", "chaos", "spark", "lab", "seesaw"}
    for path in (ROOT / layer).rglob("*.py"):
        assert {name.partition(".")[0] for name in imports(path)} & ours <= LAYERS[layer], path


def test_the_state_of_a_group_is_written_in_one_place() -> None:
    written = [
        (path.relative_to(ROOT).as_posix(), function.name)
        for path in CLUSTER
        if path.parent.name == "coordinator"
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and node.attr == "state" and isinstance(node.ctx, ast.Store)
    ]
    assert written == [("cluster/coordinator/group.py", "move")]


@pytest.mark.parametrize("name", ["reactions.py", "offsets.py", "guards.py", "writes.py"])
def test_no_reaction_reads_the_state_of_a_group(name: str) -> None:
    tree = ast.parse((ROOT / "cluster/coordinator" / name).read_text())
    assert [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "state"] == []


@pytest.mark.parametrize("path", CLUSTER, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_iterates_over_a_bare_set(path: Path) -> None:
    """The order of a set depends on the hash seed. (What syntax shows of it; schedules show more.)"""
    for node in ast.walk(ast.parse(path.read_text())):
        over = node.iter if isinstance(node, (ast.For, ast.comprehension)) else None
        assert not isinstance(over, (ast.Set, ast.SetComp)), f"{path}:{over.lineno if over else 0}"


def test_tests_do_not_sleep() -> None:
    for path in (ROOT / "tests").rglob("*.py"):
        if "actors" not in path.parts:
            assert "time.sleep" not in set(imports(path)), path
            calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)]
            assert [node.lineno for node in calls if node.attr == "sleep"] == [], path


def test_only_snapshots_are_pickled() -> None:
    """What a world was is kept in memory; no message, record or file ever goes through pickle."""
    assert [path.name for path in CLUSTER if "pickle" in set(imports(path))] == ["snapshot.py"]
