import json
import pathlib
import threading

import numpy as np
import pytest

from keras_dreamer.replay import Replay

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "traces.json"
TRACES = json.loads(GOLDEN.read_text())["replay"]


def starts(replay, draws):
    """Returns the start positions of uniformly drawn windows."""
    return replay.sample(draws, report=True)["step_id"][:, 0]


# The last batch of the third trace has 15 windows. Of the 15 queued ones those
# at 4, 7 and 10 have gone with their pages, 6 are served, 9 are uniform draws.
ONLINE_SERVED = {(10, 19): 6}


@pytest.mark.parametrize("trace", TRACES, ids=lambda t: f"cap{t['capacity']}")
def test_matches_the_trace_of_the_reference(small, trace):
    replay = small.replay(
        trace["workers"], trace["capacity"], batch_length=trace["length"] - 1
    )
    for entry in trace["log"]:
        t = entry["t"]
        flags = {"is_first": t % 7 == 0, "is_last": t % 7 == 6}
        for stream in range(trace["workers"]):
            replay.add(small.steps(stream * 1000 + t, **flags), stream)
        assert len(replay) == entry["items"]
        assert replay.queued == entry["queued"]
        if "online" in entry:
            served = ONLINE_SERVED.get((trace["capacity"], t))
            check_traced_batch(small, replay, entry, served)
    drawn = small.numbers(replay.sample(5000, report=True))[:, 0]
    start, counts = np.unique(drawn, return_counts=True)
    assert start.tolist() == trace["uniform_starts"]
    mean = 5000 / len(start)  # A binomial's variance is below its mean.
    assert np.abs(counts - mean).max() < 5 * np.sqrt(mean)


def check_traced_batch(small, replay, entry, served):
    batch = replay.sample(len(entry["online"]))
    window = small.numbers(batch)
    assert window[:served].tolist() == entry["online"][:served]
    # Uniform draws come from another generator: find the same windows in ours.
    uniform = replay.sample(2000, report=True)
    index = {w[0]: i for i, w in enumerate(small.numbers(uniform))}
    for i, numbers in enumerate(entry["online"]):
        of_queue = served is None or i < served
        source, row = (batch, i) if of_queue else (uniform, index[numbers[0]])
        assert small.numbers(source)[row].tolist() == numbers
        for flag in ("is_first", "is_last"):
            assert source[flag][row].astype(int).tolist() == entry[flag][i]


def test_batch_has_the_documented_fields(small):
    replay = small.replay(dtype="bfloat16")
    small.fill(replay, 9)
    batch = replay.sample(3)
    assert set(batch) == {
        "observation",
        "action",
        "reward",
        "is_first",
        "is_last",
        "is_terminal",
        "context",
        "step_id",
    }
    assert batch["observation"]["observation"].shape == (3, 5, 2)
    assert batch["action"]["action"].dtype == np.float32
    assert batch["reward"].dtype == np.float32
    assert batch["is_terminal"].dtype == bool
    assert batch["step_id"].shape == (3, 5)
    assert batch["step_id"].dtype == np.int64
    assert batch["context"]["deter"].dtype.name == "bfloat16"
    assert batch["context"]["stoch"].dtype == np.int32


@pytest.mark.parametrize("context", [0, 1, 2])
def test_context_is_the_row_before_the_trained_ones(small, context):
    replay = small.replay(replay_context=context)
    small.fill(replay, 12)
    batch = replay.sample(8)
    if context == 0:
        assert "context" not in batch
        replay.update(batch["step_id"], small.latents(batch["step_id"] * 0))
        return
    expected = small.latents(small.numbers(batch)[:, context - 1])
    for name, value in expected.items():
        np.testing.assert_array_equal(batch["context"][name], value)


def test_missing_latents_are_stored_as_zeros(small):
    replay = small.replay(1)
    for t in range(5):
        replay.add(small.steps(t + 1, context=False), 0)
    context = replay.sample(1)["context"]
    assert not context["deter"].any() and not context["stoch"].any()


def test_annotation_marks_the_step_before_a_first_one(small):
    # An episode that was abandoned at step 2: its last row has no is_last.
    replay = small.replay(1)
    small.fill(replay, 5, is_first=lambda t: t in (0, 3))
    batch = replay.sample(1)
    assert batch["is_first"].tolist() == [[True, False, False, True, False]]
    assert batch["is_last"].tolist() == [[False, False, True, False, False]]
    # Only the copy is annotated: row 1 is not first in the store.
    small.fill(replay, 1)
    batch = replay.sample(20)
    second = batch["is_first"][batch["step_id"][:, 0] == 1]
    assert second[0].tolist() == [True, False, True, False, False]


def test_report_leaves_the_queue_alone(small):
    replay = small.replay(1)
    small.fill(replay, 11)
    assert replay.queued == 2
    replay.sample(4, report=True)
    assert replay.queued == 2
    assert small.numbers(replay.sample(2))[:, 0].tolist() == [1, 6]


def test_without_online_queue_nothing_is_queued(small):
    replay = small.replay(1, online=False)
    small.fill(replay, 11)
    assert replay.queued == 0


def test_same_seed_same_windows(small):
    first, again, other = (small.replay(seed=seed) for seed in (3, 3, 4))
    for replay in (first, again, other):
        small.fill(replay, 50)
    expected = starts(first, 20)
    np.testing.assert_array_equal(starts(again, 20), expected)
    assert (starts(other, 20) != expected).any()


def test_several_rows_of_a_stream_in_one_call_keep_their_order(small):
    replay = small.replay(2)
    streams = np.array([0, 1, 1, 0, 1, 1, 0, 1])
    replay.add_batch(small.steps(np.arange(8)), streams)
    assert small.numbers(replay.sample(1)).tolist() == [[1, 2, 4, 5, 7]]
    replay.add_batch(small.steps(np.zeros(0, int)), [])
    assert len(replay) == 1


@pytest.mark.parametrize("length", [1, 2, 5, 63, 64, 65, 1000])
def test_every_step_of_any_episode_length_is_sampled(small, length):
    replay = small.replay(2, capacity=10_000, batch_length=64)
    steps = 300 if length < 1000 else 2100
    t = np.arange(steps)
    first, last = t % length == 0, t % length == length - 1
    for stream in range(2):
        number = stream * 10_000 + t
        replay.add_batch(
            small.steps(number, is_first=first, is_last=last),
            np.full(steps, stream),
        )
    batch = replay.sample(15 * len(replay))
    number = small.numbers(batch)
    assert np.unique(number).size == 2 * steps
    assert (np.diff(number) == 1).all()
    position = number % 10_000
    assert batch["is_first"][:, 0].all()
    np.testing.assert_array_equal(
        batch["is_first"][:, 1:], first[position[:, 1:]]
    )
    np.testing.assert_array_equal(batch["is_last"], last[position])


def test_update_replaces_latents_and_the_last_duplicate_wins(small):
    replay = small.replay(1, replay_context=1)
    small.fill(replay, 8)
    step_id = np.array([[1, 2], [2, 3]])  # Stream 0, so ids are positions.
    replay.update(step_id, small.latents([[101, 102], [202, 203]]))
    expected = {0: 0, 1: 101, 2: 202, 3: 203}
    batch = replay.sample(200)
    for start, deter in zip(
        batch["step_id"][:, 0], batch["context"]["deter"], strict=True
    ):
        assert deter.tolist() == [expected[start]] * 2


def test_update_takes_whole_windows_too(small):
    replay = small.replay(1, replay_context=1)
    small.fill(replay, 8)
    window = np.array([[0, 1, 2]])  # Row 0 is the context and stays.
    replay.update(window, small.latents([[101, 102]]))
    batch = replay.sample(200)
    stored = dict(
        zip(
            batch["step_id"][:, 0].tolist(),
            batch["context"]["deter"][:, 0].tolist(),
            strict=True,
        )
    )
    assert [stored[position] for position in range(4)] == [0, 101, 102, 3]


def test_update_of_evicted_rows_writes_nowhere(small):
    replay = small.replay(1, capacity=3)
    small.fill(replay, 5)
    old = replay.sample(1)["step_id"]
    small.fill(replay, 40)
    before = {k: v.copy() for k, v in replay._pool.arrays.items()}
    replay.update(old, small.latents(np.full((1, 5), 77)))
    foreign = np.array([[-1, 5 << 40, 1 << 39]])
    replay.update(foreign, small.latents(np.full((1, 3), 77)))
    for name, value in before.items():
        np.testing.assert_array_equal(replay._pool.arrays[name], value)


def test_memory_follows_the_rows_and_is_predicted(small):
    replay = small.replay(3, deter=256, capacity=5_000_000)
    assert replay.nbytes == 0
    # 2 * 4 + 2 * 4 + 4 + 3 + 256 * 4 + 3 bytes
    assert replay.step_nbytes == 1050
    for chunk in range(40):
        streams = np.arange(600) % 3
        steps = small.steps(np.arange(600), context=False)
        replay.add_batch(steps, streams)
        assert replay.nbytes == replay.predicted_nbytes(600 * (chunk + 1))
    reserved = sum(x.nbytes for x in replay._pool.arrays.values())
    assert reserved <= 1.05 * 24_000 * 1050
    assert replay.nbytes <= 1.01 * 24_000 * 1050


def test_memory_stops_growing_at_capacity(small):
    replay = small.replay(3, capacity=20)
    for steps in range(1, 200):
        small.fill(replay, 1)
        assert replay.nbytes == replay.predicted_nbytes(3 * steps)
        assert len(replay) <= 20
    # 20 items and 4 rows per stream to complete them, in pages of 8 rows.
    assert replay.nbytes <= 3 * 3 * 8 * replay.step_nbytes


def test_dtype_follows_the_policy(small):
    replay = Replay(small.Config(), small.envs(1))
    assert replay.schema.fields["context/deter"][1] == np.float32
    many = small.Config(classes=257)
    replay = Replay(many, small.envs(1), dtype="bfloat16")
    assert replay.schema.fields["context/deter"][1].name == "bfloat16"
    assert replay.schema.fields["context/stoch"][1] == np.uint16


def test_threads_add_sample_and_update_together(small):
    replay = small.replay(2, capacity=60)
    small.fill(replay, 10)
    errors = []

    def add(stream):
        for t in range(10, 400):
            replay.add(small.steps(stream * 1000 + t), stream)

    def learn():
        for _ in range(200):
            batch = replay.sample(4)
            number = small.numbers(batch)
            if (np.diff(number) != 1).any():
                errors.append(number)
            replay.update(batch["step_id"], small.latents(number))

    threads = [threading.Thread(target=add, args=(s,)) for s in range(2)]
    threads += [threading.Thread(target=learn) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    batch = replay.sample(60)
    expected = small.latents(small.numbers(batch)[:, 0])
    np.testing.assert_array_equal(batch["context"]["deter"], expected["deter"])


@pytest.mark.parametrize("stream", [-1, 2, 1.0])
def test_refuses_a_stream_out_of_range(small, stream):
    replay = small.replay(2)
    with pytest.raises(ValueError, match=r"num_envs - 1 = 1\. Received: .*"):
        replay.add(small.steps(0), stream)
    assert len(replay._items.rows) == 2 and not replay._items.rows.any()


def test_refuses_to_sample_without_items(small):
    replay = small.replay(2)
    small.fill(replay, 4)
    message = r"at least 5 steps.*per stream=\[4, 4\]\. Add more"
    with pytest.raises(ValueError, match=message):
        replay.sample(1)


def test_refuses_sizes_below_one(small):
    with pytest.raises(ValueError, match="Received: batch_length=0"):
        small.replay(batch_length=0)
    with pytest.raises(ValueError, match="capacity=0"):
        small.replay(capacity=0)


def test_a_refused_step_leaves_the_replay_as_it_was(small):
    replay = small.replay(1)
    step = small.steps(0)
    with pytest.raises(ValueError):
        replay.add({**step, "reward": "much"}, 0)
    small.fill(replay, 5)
    assert small.numbers(replay.sample(1)).tolist() == [[0, 1, 2, 3, 4]]
    assert replay.nbytes == replay.predicted_nbytes(5)
