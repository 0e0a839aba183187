"""What all tests share: `--rewrite` for transcripts, and no Ray where no Ray belongs."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

RAY_TESTS = Path(__file__).parent / "actors"

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write what transcripts print now; then read the diff")


@pytest.fixture(autouse=True)
def no_ray(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything outside tests/actors must work without Ray."""
    if RAY_TESTS in request.path.parents:
        return
    try:
        import ray
    except ImportError:
        return

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a test outside tests/actors started Ray")

    monkeypatch.setattr(ray, "init", refuse)
