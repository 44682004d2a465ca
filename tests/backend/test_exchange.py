import numpy as np
import pytest
from keras import ops

from keras_dreamer.backend.exchange import Exchange
from keras_dreamer.backend.exchange import run_step


def outputs(batch):
    """Stands in for a training step."""
    means, latest = [1.5, batch["reward"], 4.0], [0.5, np.inf, 1.0]
    return {
        "scalars": ops.convert_to_tensor([means, latest], "float32"),
        "latents": {"deter": "fresh"},
    }


@pytest.fixture
def exchange():
    return Exchange(["loss", "reward", "skipped"])


def test_batch_is_drawn_from_the_source_and_not_from_keras(exchange):
    exchange.source = lambda: {"reward": 2.0, "step_id": "ids"}
    nothing = iter(())
    logs = run_step(exchange, nothing, outputs)
    assert logs == {"loss": 1.5, "reward": 2.0, "skipped": 4.0}
    assert all(type(value) is float for value in logs.values())


def test_batch_comes_from_keras_without_a_source(exchange):
    logs = run_step(exchange, iter([({"reward": 3.0},)]), outputs)
    assert logs["reward"] == 3.0


def test_what_must_not_enter_the_logs_is_kept(exchange):
    exchange.source = lambda: {"reward": 2.0, "step_id": "ids"}
    run_step(exchange, None, outputs)
    assert exchange.step_id == "ids"
    assert exchange.latents == {"deter": "fresh"}
    latest = {"loss": 0.5, "reward": np.inf, "skipped": 1.0}
    assert exchange.scalars == latest


def test_only_the_last_update_tells_whether_it_was_skipped(exchange):
    assert not exchange.skipped
    exchange.scalars = {"skipped": 1.0}
    assert exchange.skipped
    exchange.scalars = {"skipped": 0.0}
    assert not exchange.skipped


def test_the_step_does_not_see_ids_and_the_batch_is_left_alone(exchange):
    batch = {"reward": 2.0, "step_id": np.arange(3)}
    exchange.source = lambda: batch
    seen = []

    def call(batch):
        seen.append(sorted(batch))
        return outputs(batch)

    run_step(exchange, None, call)
    assert seen == [["reward"]]
    assert sorted(batch) == ["reward", "step_id"]


def test_another_number_of_scalars_than_names_is_an_error(exchange):
    exchange.source = lambda: {"reward": 2.0}
    exchange.names = ["loss"]
    with pytest.raises(ValueError):
        run_step(exchange, None, outputs)


def test_reset_forgets_the_last_step(exchange):
    exchange.source = lambda: {"reward": 2.0, "step_id": "ids"}
    run_step(exchange, None, outputs)
    exchange.interrupted = True
    exchange.state = exchange.positions = "old"
    exchange.reset()
    assert exchange.step_id is exchange.latents is exchange.state is None
    assert exchange.interrupted is False and exchange.positions == {}
    assert exchange.scalars == {} and not exchange.skipped
    assert exchange.names == [
        "loss",
        "reward",
        "skipped",
    ]  # It still has its names.


def test_keras_does_not_wrap_it():
    with pytest.raises(AttributeError):
        Exchange([]).anything = {}
