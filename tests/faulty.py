"""Environments that break on command."""


def faulty(fault="raise"):
    """Returns a factory of environments that break where the action is 1.

    Observations are `[steps since the reset, seed modulo 1000]`. Episodes end
    after nine steps.

    Args:
        fault: "raise", "shape" (of an observation), "info" (that cannot be
            pickled), "die", "hang", "reset" (raising there from the second
            one on) or "none".
    """

    def factory():
        # All local, so that it travels to the workers by value.
        import os
        import time

        import gymnasium
        import numpy as np

        class Stubborn(Exception):
            def __init__(self, code, lock):
                super().__init__(f"code {code} 100%d")
                self.lock = lock  # Cannot be pickled.

        def raise_error():
            raise Stubborn(42, (i for i in []))

        breaks = {
            "raise": raise_error,
            "die": lambda: os._exit(7),
            "hang": lambda: time.sleep(1000),
        }

        class Faulty(gymnasium.Env):
            observation_space = gymnasium.spaces.Box(-1, 1000, (2,))
            action_space = gymnasium.spaces.Discrete(2)
            seed = None

            def reset(self, *, seed=None, options=None):
                if self.seed is not None and fault == "reset":
                    raise Stubborn(41, iter([]))
                self.seed = self.seed if seed is None else seed
                self.count = 0
                return self.observe(), {}

            def step(self, action):
                self.count += 1
                observation, info = self.observe(), {}
                if action and fault in breaks:
                    breaks[fault]()
                elif action:
                    observation = np.ones(3 if fault == "shape" else 2, "f")
                    info = {"lock": (i for i in ())} if fault == "info" else {}
                return observation, 1.0, self.count == 9, False, info

            def observe(self):
                return np.array([self.count, self.seed % 1000], "float32")

        return Faulty()

    return factory
