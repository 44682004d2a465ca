import math

import pytest
from helpers import trace
from hypothesis import given
from hypothesis import strategies

from keras_dreamer.callbacks.clock import RatioClock


@pytest.mark.parametrize("entry", trace("ratio"), ids=lambda e: e["ratio"])
def test_matches_every_entry_of_the_reference(entry):
    clock = RatioClock(entry["ratio"])
    assert [clock(step) for step in entry["steps"]] == entry["repeats"]


def test_matches_hand_computed_values():
    # Starts at step 5 with one update. Then 0.8 is due per step: 0.8 -> 0,
    # 1.6 -> 1, 0.6 + 0.8 = 1.4 -> 1, 0.4 + 0.8 = 1.2 -> 1, 0.2 + 0.8 -> 1.
    clock = RatioClock(0.8)
    assert [clock(step) for step in range(5, 12)] == [1, 0, 1, 1, 1, 1, 0]


def test_skipped_steps_are_made_up_for():
    clock = RatioClock(0.5)
    assert [clock(step) for step in (1, 9, 10, 11)] == [1, 4, 0, 1]


def stepped(ratio, steps):
    """Asks the clock at every step."""
    clock = RatioClock(ratio)
    due = {step: clock(step) for step in steps}
    return {step: repeats for step, repeats in due.items() if repeats}


def jumped(ratio, steps):
    """Asks the clock only when it says so."""
    clock = RatioClock(ratio)
    due, step = {}, clock.next_step(steps[0] - 1)
    while step <= steps[-1]:
        due[step] = clock(step)
        step = clock.next_step(step)
    return due


@given(
    ratio=strategies.floats(1e-3, 8.0),
    start=strategies.integers(1, 10**7),
)
def test_next_step_finds_exactly_the_steps_with_updates(ratio, start):
    steps = range(start, start + 300)
    assert jumped(ratio, steps) == stepped(ratio, steps)


@pytest.mark.parametrize("ratio", [0.5, 1 / 3, 0.1, 0.7, 1.0, 5 / 12, 2.5])
def test_next_step_over_a_long_run(ratio):
    steps = range(2048, 30_000)
    due = jumped(ratio, steps)
    assert due == stepped(ratio, steps)
    assert abs(sum(due.values()) - 1 - ratio * (len(steps) - 1)) < 1


def test_next_step_does_not_move_the_clock():
    clock = RatioClock(0.5)
    assert [clock.next_step(3), clock.next_step(3)] == [4, 4]
    assert clock(4) == 1
    assert [clock.next_step(4), clock.next_step(4)] == [6, 6]
    assert clock(6) == 1


def test_ratio_zero_is_never_due():
    clock = RatioClock(0)
    assert clock(1) == clock(10**9) == 0
    assert clock.next_step(1) == math.inf


def test_negative_ratio_is_refused():
    with pytest.raises(ValueError, match="not be negative.*ratio=-1.*Use 0"):
        RatioClock(-1)


def test_goes_on_where_another_clock_stopped():
    clock, other = RatioClock(0.3), RatioClock(0.3)
    before = [clock(step) for step in range(10, 24)]
    other.resume(clock.previous, 23, clock.ratio)
    assert sum(before) == 4
    after = [clock(step) for step in range(24, 60)]
    assert [other(step) for step in range(24, 60)] == after


def test_goes_on_before_the_first_update():
    clock = RatioClock(0.5)
    clock.resume(None, 7, 0.1)
    assert [clock(step) for step in (10, 11, 12)] == [1, 0, 1]


@pytest.mark.parametrize("old, new", [(0.01, 8.0), (8.0, 0.01)])
def test_another_ratio_brings_no_burst(old, new):
    # The other clock was 0.99 of an update ahead; so is this one.
    clock = RatioClock(new)
    clock.resume(100 - 0.99 / old, 100, old)
    due = [clock(step) for step in range(101, 501)]
    assert abs(sum(due) - 400 * new) <= 1
    assert max(due) <= max(1, new + 1)
    assert clock.next_step(500) >= 501
