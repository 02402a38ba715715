from geogenius.domain.run import NEXT_PHASE, RunState
from geogenius.importer.progress import PERCENT, Progress


def test_percent_never_goes_back_from_phase_to_phase() -> None:
    order = [RunState.PENDING]
    while order[-1] in NEXT_PHASE:
        order.append(NEXT_PHASE[order[-1]])
    assert list(PERCENT) == order
    ends = [0, *(end for _, end in PERCENT.values())]
    assert [start for start, _ in PERCENT.values()] == ends[:-1]
    assert ends == sorted(ends)


def test_bytes_tell_how_far_a_phase_is() -> None:
    progress = Progress()
    progress.enter(RunState.STAGING)
    assert progress.snapshot()["percent"] == 21
    progress.expect_bytes(200)
    progress.add_bytes(100)
    progress.add_rows(10, 3)
    assert progress.snapshot() == {"rows": 10, "rejected": 3, "bytes": 100, "bytes_total": 200, "percent": 48}
    progress.enter(RunState.NORMALIZING)
    assert progress.snapshot() == {"rows": 10, "rejected": 3, "bytes": 0, "bytes_total": 0, "percent": 75}
    assert progress.phase is RunState.NORMALIZING
