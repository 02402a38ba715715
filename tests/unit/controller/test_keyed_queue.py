import threading

from geogenius.controller.keyed_queue import Backoff, Key, KeyedQueue

A, B = Key("maps", "a"), Key("maps", "b")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def a_queue(clock: Clock | None = None) -> KeyedQueue:
    return KeyedQueue(clock or Clock(), Backoff(first_seconds=1, cap_seconds=8, spread=lambda: 1.0))


def test_a_key_that_is_added_twice_is_handed_out_once() -> None:
    queue = a_queue()
    for key in (A, B, A):
        queue.add(key)
    assert [queue.get(), queue.get()] == [A, B]
    assert queue.depth() == 0


def test_a_key_that_is_worked_on_is_not_handed_out_a_second_time_and_comes_again_afterwards() -> None:
    queue = a_queue()
    queue.add(A)
    assert queue.get() == A
    queue.add(A)
    assert queue.depth() == 0
    queue.done(A)
    assert queue.get() == A


def test_a_delayed_key_comes_when_it_is_due() -> None:
    clock = Clock()
    queue = a_queue(clock)
    queue.add_after(A, 5)
    queue.add(B)
    assert queue.get() == B
    clock.now = 5
    assert queue.get() == A


def test_of_several_delays_the_earliest_counts_and_the_key_comes_once() -> None:
    clock = Clock()
    queue = a_queue(clock)
    queue.add_after(A, 9)
    queue.add_after(A, 2)
    queue.add_after(A, 4)
    clock.now = 10
    queue.add(B)
    assert [queue.get(), queue.get()] == [B, A]
    assert queue.depth() == 0


def test_a_failed_key_comes_again_later_each_time_up_to_a_cap() -> None:
    clock = Clock()
    queue = a_queue(clock)
    queue.add(A)
    for wait in (1, 2, 4, 8, 8):
        assert queue.get() == A
        queue.done(A, failed=True)
        assert queue.depth() == 0
        clock.now += wait


def test_success_forgets_the_failures() -> None:
    assert Backoff(1, 8, lambda: 1.0).seconds(1) == 1
    clock = Clock()
    queue = a_queue(clock)
    queue.add(A)
    assert queue.get() == A
    queue.done(A, failed=True)
    clock.now = 1
    assert queue.get() == A
    queue.done(A)
    queue.add(A)
    assert queue.get() == A
    queue.done(A, failed=True)
    clock.now = 2
    assert queue.get() == A


def test_backoff_is_spread_over_its_upper_half() -> None:
    assert Backoff(4, 60, lambda: 0.0).seconds(1) == 2
    assert Backoff(4, 60, lambda: 1.0).seconds(1) == 4


def test_closing_lets_every_waiting_worker_go() -> None:
    queue = a_queue()
    got: list[Key | None] = []
    workers = [threading.Thread(target=lambda: got.append(queue.get())) for _ in range(3)]
    for worker in workers:
        worker.start()
    queue.close()
    for worker in workers:
        worker.join(5)
    assert got == [None, None, None]
