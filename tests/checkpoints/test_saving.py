import json
import types

import keras
import pytest
from stand_in import StandIn

from keras_dreamer.callbacks.resumable import Resumable
from keras_dreamer.checkpoints.saving import named
from keras_dreamer.checkpoints.saving import save


class Counter(Resumable, keras.callbacks.Callback):
    count = 0

    def get_state(self):
        return {"count": self.count}

    def set_state(self, state):
        self.count = state["count"]


class Other(Counter):
    pass


def test_callbacks_are_known_by_class_and_number():
    first, second, third = Counter(), Counter(), Counter()
    other, none = Other(), keras.callbacks.Callback()
    found = named([first, none, other, second, third])
    assert found == {
        "Counter": first,
        "Other": other,
        "Counter/1": second,
        "Counter/2": third,
    }


@pytest.mark.parametrize("with_replay", [True, False])
def test_a_checkpoint_holds_these_files(tmp_path, with_replay):
    written = []

    def save_changes(directory, previous):
        written.append((directory, previous))
        (directory / "replay.npz").write_bytes(b"123")

    replay = types.SimpleNamespace(save_changes=save_changes)
    replay = replay if with_replay else None
    counter = Counter()
    counter.count = 5
    save(tmp_path, "before", StandIn(7), replay, [counter], updates=9)
    record = json.loads((tmp_path / "state.json").read_text())["content"]
    assert record["updates"] == 9
    assert record["seed"] == 3
    assert record["callbacks"] == {"Counter": {"count": 5}}
    assert record["settings"]["config"]["recipe"] == "paper"
    assert record["replay"] is with_replay
    assert ("replay.npz" in record["files"]) is with_replay
    assert record["files"]["agent.keras"] > 0
    assert written == [(tmp_path, "before")] * with_replay
