"""An agent without networks, for tests of what is around it."""

import zipfile

import gymnasium
import keras

BOX = gymnasium.spaces.Box(-1, 1, (2,))


class StandIn:
    """Stands in for `Dreamer`: its only weight is `generation`."""

    seed = 3
    compiled = True
    dtype_policy = keras.DTypePolicy("float32")

    def __init__(self, generation=0):
        self.generation = generation
        self.optimizer = keras.optimizers.SGD(0.1)

    def get_config(self):
        space = {"type": "Discrete", "n": 2, "start": 0, "dtype": "int64"}
        return {
            "config": {"size": "small", "recipe": "paper"},
            "observation_space": space,
            "action_space": space,
        }

    def save(self, path):
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("generation", str(self.generation))

    def load_weights(self, path):
        with zipfile.ZipFile(path) as file:
            self.generation = int(file.read("generation"))
