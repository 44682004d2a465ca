import agents
import numpy as np

from keras_dreamer.inspection.compiled import call


def test_gives_weights_prepared_batch_and_noise(quick_backend):
    model = agents.make_agent()
    batch = agents.random_batch(model)

    def function(tensors, batch, noise, absent):
        assert absent is None
        kernel = tensors["pol"]["mlp"]["linear0"]["kernel"]
        return {"sum": batch["reward"] + noise, "kernel": kernel}

    found = call(model, function, batch, np.ones((3, 6), "float32"), None)
    np.testing.assert_array_equal(found["sum"], batch["reward"][:, 1:] + 1)
    weights = model.official_weights()
    np.testing.assert_array_equal(
        found["kernel"], weights["pol/mlp/linear0/kernel"]
    )
