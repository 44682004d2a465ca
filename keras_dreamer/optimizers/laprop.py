"""LaProp with adaptive gradient clipping, the optimizer of DreamerV3."""

import math
from typing import Any

import keras
from keras import ops

from keras_dreamer import backend


@keras.saving.register_keras_serializable(package="keras_dreamer")
class LaProp(backend.LaPropUpdate, keras.optimizers.Optimizer):
    """RMSProp, then momentum on the normalised gradient; clipped, warmed up.

    For every tensor `p` with gradient `g`, at update `k` (from 1 on):

        g  = g / max(1, norm(g) / (agc * max(pmin, norm(p))))
        nu = beta_2 * nu + (1 - beta_2) * g**2
        u  = g / (sqrt(nu / (1 - beta_2**k)) + epsilon)
        mu = beta_1 * mu + (1 - beta_1) * u
        p  = p - learning_rate * min((k - 1) / warmup, 1)
                 * mu / (1 - beta_1**k)

    The size of an update does not depend on the size of the loss, and with a
    warm-up the first update only fills the moments. An element whose
    gradients were all exactly 0 stays as it is.

    The moments are float32 also for half-precision variables. They keep `nu`
    times 2**28, so that it holds squares of gradients down to 1e-22.

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), p. 18, and
    danijar/dreamerv3 at e3f0224, `embodied/jax/opt.py` and
    `dreamerv3/agent.py`, from where `beta_2` is (the paper prints 0.99).

    Args:
        learning_rate: float, `keras.optimizers.schedules.LearningRateSchedule`
            or callable. The learning rate after the warm-up; the warm-up is a
            factor on top.
        beta_1: float in `[0, 1)`. Decay of the momentum; 0 means none.
        beta_2: float in `[0, 1)`. Decay of the mean of squared gradients.
        epsilon: float above 0, added after the root.
        agc: float or `None`. Largest norm of a tensor's gradient, as a share
            of the norm of the tensor. 0 or `None` means no clipping.
        pmin: float above 0. Norms of tensors count as at least this much, so
            that tensors of zeros are trained.
        warmup: int. Updates over which the learning rate grows from 0; 0
            means none.
        name: str. Name of the optimizer.
        **kwargs: further arguments of `keras.optimizers.Optimizer`. Note that
            Keras applies its `weight_decay` before the update and without
            the warm-up.

    Example:

    >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    >>> optimizer = keras_dreamer.optimizers.LaProp(learning_rate=1e-3)
    >>> model.compile(optimizer=optimizer, loss="mse")
    """

    # Gradients are squared after this factor, a power of two so that nothing
    # is rounded. Without it (1 - beta_2) * g**2 is below the smallest normal
    # float32 (1.2e-38, the CPU rounds less to 0) from g = 3e-18 on, the root
    # is 0, and the update is g / epsilon, hundreds of learning rates. With it
    # that happens from g = 2e-22 on, which is small beside epsilon. Squares
    # overflow from 1e15 on.
    gradient_scale = 2.0**14

    def __init__(
        self,
        learning_rate: Any = 4e-5,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-20,
        agc: float | None = 0.3,
        pmin: float = 1e-3,
        warmup: int = 1000,
        name: str = "laprop",
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        _check_decay("beta_1", beta_1)
        _check_decay("beta_2", beta_2)
        _check_at_least("epsilon", epsilon, 1e-30)
        _check_at_least("agc", agc or 0.0, 0.0)
        _check_at_least("pmin", pmin, 1e-30)
        _check_at_least("warmup", warmup, 0)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.agc = agc
        self.pmin = pmin
        self.warmup = warmup

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        self._nu = [self._add_moment(v, "nu") for v in variables]
        self._mu = [self._add_moment(v, "mu") for v in variables]

    def _add_moment(self, variable, name):
        owner = getattr(variable, "path", variable.name)
        return self.add_variable(
            shape=variable.shape,
            dtype=_moment_dtype(variable),
            layout=getattr(variable, "_layout", None),
            name=f"{owner.replace('/', '_')}_{name}",
        )

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        # Keras hands the learning rate on to `update_step`, tensor by tensor.
        # The scalars made of it take as long as the work on a small tensor
        # where Keras runs eagerly, so they are computed once. On PyTorch this
        # updates all tensors together.
        super()._backend_update_step(
            grads, trainable_variables, self._scalars(learning_rate)
        )

    def _scalars(self, learning_rate):
        """Returns the step size and the bias correction of `nu`."""
        done = ops.cast(self.iterations, "float32")
        step_size = ops.cast(learning_rate, "float32")
        if self.warmup:
            step_size = step_size * ops.minimum(done / self.warmup, 1.0)
        step_size = step_size / _one_minus_power(self.beta_1, done + 1.0)
        return step_size, 1.0 / _one_minus_power(self.beta_2, done + 1.0)

    def update_step(self, gradient, variable, learning_rate):
        if not isinstance(learning_rate, tuple):  # Called by someone else.
            learning_rate = self._scalars(learning_rate)
        step_size, correction = learning_rate
        index = self._get_variable_index(variable)
        dtype = self._nu[index].dtype
        # Reshaping makes TensorFlow's sparse gradients dense, as the moments.
        g = ops.cast(ops.reshape(gradient, variable.shape), dtype)
        p, nu, mu = (
            ops.cast(x, dtype)
            for x in (variable, self._nu[index], self._mu[index])
        )
        g = g * self._factor(g, p)
        nu = nu * self.beta_2 + g * g * (1 - self.beta_2)
        rms = ops.sqrt(nu * ops.cast(correction, dtype))
        u = g / (rms + self.epsilon * self.gradient_scale)
        mu = mu * self.beta_1 + u * (1 - self.beta_1)
        change = mu * ops.cast(step_size, dtype)
        self.assign(self._nu[index], nu)
        self.assign(self._mu[index], mu)
        self.assign_sub(variable, ops.cast(change, variable.dtype))

    def _factor(self, gradient, param):
        """Returns `gradient_scale`, less for a gradient that is clipped."""
        if not self.agc:
            return self.gradient_scale
        limit = ops.maximum(_norm(param), self.pmin) * self.agc
        return self.gradient_scale / ops.maximum(_norm(gradient) / limit, 1.0)

    def get_config(self):
        config = super().get_config()
        return {
            **config,
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "agc": self.agc,
            "pmin": self.pmin,
            "warmup": self.warmup,
        }


def _norm(x):
    # `ops.norm` refuses rank 3 on TensorFlow, and isn't faster.
    return ops.sqrt(ops.sum(x * x))


def _one_minus_power(base, exponent):
    """Returns `1 - base**exponent` without cancellation, for a tensor."""
    log = math.log(base) if base else -math.inf
    return -ops.expm1(exponent * log)


def _moment_dtype(variable):
    dtype = keras.backend.standardize_dtype(variable.dtype)
    return keras.backend.result_type(dtype, "float32")


def _check_decay(name, value):
    if not 0 <= value < 1:
        raise ValueError(
            f"`{name}` must be at least 0 and below 1, as the decay of a "
            f"moving average. Received: {name}={value}. Use 0.0 for no "
            "averaging."
        )


def _check_at_least(name, value, least):
    if not value >= least:
        raise ValueError(
            f"`{name}` must be a number of at least {least}. Received: "
            f"{name}={value}. Leave it out for DreamerV3's value."
        )
