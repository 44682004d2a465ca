"""Recurrent state-space model: the world model's memory and imagination."""

import keras
from keras import ops

from keras_dreamer.backend import matmul
from keras_dreamer.backend import scan
from keras_dreamer.backend import scan_layers
from keras_dreamer.distributions import Categorical
from keras_dreamer.layers.block_gru import BlockGRU
from keras_dreamer.layers.functional import FunctionalLayer
from keras_dreamer.layers.functional import JoinedDense
from keras_dreamer.layers.functional import dense
from keras_dreamer.layers.functional import norm_silu
from keras_dreamer.layers.functional import swap_batch_and_time
from keras_dreamer.layers.initializers import spread_seeds
from keras_dreamer.layers.mlp import MLP
from keras_dreamer.layers.mlp import linear

# What `observe` multiplies by at every step, without later posterior layers.
_IN_LOOP = "dynin0 dynin1 own shared gates obs0deter obslogit".split()


@keras.saving.register_keras_serializable(package="keras_dreamer")
class RSSM(FunctionalLayer):
    """Filters observations into states and imagines states without them.

        deter[t] = gru(deter[t-1], stoch[t-1], action[t-1])
        stoch[t] ~ posterior(deter[t], tokens[t])     when observing
        stoch[t] ~ prior(deter[t])                    when imagining

    A state is a pair `(deter, stoch)`: D features and S one-hot encoded
    latents of C classes, flattened.

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), Eq. 1, and
    `dreamerv3/rssm.py` of danijar/dreamerv3 at e3f0224; items 2.1 to 2.8,
    Algorithms A to C.

    Args:
        deter: int. D, width of the deterministic state.
        hidden: int. Width of the layers in between.
        stoch: int. S, number of latents.
        classes: int. C, classes of each latent.
        blocks: int. Blocks of the recurrence.
        imglayers: int. Hidden layers of the prior.
        obslayers: int. Hidden layers of the posterior.
        unimix: float in `[0, 1]`. Share of the uniform in the latents.
        seed: int or `None`. Seed of the kernels' initial values.

    Call arguments:
        tokens: `(B, T, features)` tensor, the encoded observations.
        action: `(B, T, actions)` tensor, the encoded action before each of
            them.
        is_first: `(B, T)` bool tensor. Where an episode starts, the state
            before it is replaced by zeros.

    Returns:
        `deter` `(B, T, D)`, `stoch` `(B, T, S * C)` with the most probable
        latents, and the posterior's `logits` `(B, T, S, C)`.

    Example:

    >>> rssm = keras_dreamer.layers.RSSM(deter=16, hidden=8, stoch=4, classes=2)
    >>> ones = keras.ops.ones
    >>> deter, stoch, logits = rssm(
    ...     ones((2, 5, 3)), ones((2, 5, 1)), keras.ops.zeros((2, 5), "bool")
    ... )
    >>> tuple(deter.shape), tuple(stoch.shape), tuple(logits.shape)
    ((2, 5, 16), (2, 5, 8), (2, 5, 4, 2))
    """

    def __init__(
        self,
        deter=2048,
        hidden=256,
        stoch=32,
        classes=16,
        blocks=8,
        imglayers=2,
        obslayers=1,
        unimix=0.01,
        seed=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.deter = deter
        self.hidden = hidden
        self.stoch = stoch
        self.classes = classes
        self.blocks = blocks
        self.imglayers = imglayers
        self.obslayers = obslayers
        self.unimix = unimix
        self.seed = seed
        seeds = spread_seeds(seed, 5)
        own = {"dtype": self.dtype_policy}
        self.gru = BlockGRU(deter, hidden, blocks, seeds[0], **own)
        self.prior_mlp = MLP(
            imglayers, hidden, seeds[1], "prior{}", "prior{}norm", **own
        )
        self.prior_logits = linear(stoch * classes, seed=seeds[2], **own)
        self.posterior_mlp = MLP(
            obslayers, hidden, seeds[3], "obs{}", "obs{}norm", **own
        )
        self.posterior_logits = linear(stoch * classes, seed=seeds[4], **own)

    def named_layers(self):
        return {
            **self.gru.named_layers(),
            **self.prior_mlp.named_layers(),
            "priorlogit": self.prior_logits,
            **self.posterior_mlp.named_layers(),
            "obslogit": self.posterior_logits,
        }

    def build(self, tokens_shape, action_shape, is_first_shape=None):
        tokens, actions = tokens_shape[-1], action_shape[-1]
        self.gru.build(
            (None, self.deter),
            (None, self.stoch * self.classes),
            (None, actions),
        )
        self.prior_mlp.build((None, self.deter))
        self.prior_logits.build((None, self.hidden))
        self.posterior_mlp.build((None, self.deter + tokens))
        self.posterior_logits.build((None, self.hidden))

    def call(self, tokens, action, is_first):
        return self.apply(self.tensors(), tokens, action, is_first)

    def apply(self, tensors, tokens, action, is_first):
        carry = self.initial(ops.shape(tokens)[0])
        return self.observe(tensors, carry, tokens, action, is_first, None)

    def initial(self, batch_size):
        """Returns the state before an episode, zeros (item 2.2)."""
        dtype = self.compute_dtype
        return (
            ops.zeros((batch_size, self.deter), dtype),
            ops.zeros((batch_size, self.stoch * self.classes), dtype),
        )

    def latents(self, logits):
        """Returns the `Categorical` of `(..., S, C)` logits."""
        return Categorical(logits, self.unimix, event_ndim=1)

    def prior(self, tensors, deter):
        """Returns the prior's `(..., S, C)` logits."""
        x = self.prior_mlp.apply(tensors, deter)
        return self._logits(tensors["priorlogit"], x)

    def observe(self, tensors, carry, tokens, action, is_first, noise):
        """Filters a sequence of observations (item 2.7, Algorithm B).

        Args:
            tensors: the weights, from `tensors()`.
            carry: state before the first step.
            tokens: `(B, T, features)`.
            action: `(B, T, actions)`, the action before each step.
            is_first: `(B, T)` bool.
            noise: `(B, T, S)` uniform in `[0, 1)`, or `None` for the mode.

        Returns:
            `deter` `(B, T, D)`, `stoch` `(B, T, S * C)` with straight-through
            gradients, `logits` `(B, T, S, C)`, unmixed.
        """
        tensors, inputs = self._hoist(tensors, tokens, action, is_first)
        inputs = swap_batch_and_time([*inputs, noise])
        layers = {name: tensors[name] for name in _IN_LOOP}

        def step(layers, carry, inputs):
            return self._filter({**tensors, **layers}, carry, *inputs)

        _, states = scan_layers(step, layers, carry, inputs, tokens.shape[1])
        return swap_batch_and_time(states)

    def observe_step(self, tensors, carry, tokens, action, is_first, noise):
        """Filters one observation; `observe` without the time axis.

        Returns:
            `deter` `(N, D)` and `stoch` `(N, S * C)`.
        """
        tensors, inputs = self._hoist(tensors, tokens, action, is_first)
        return self._filter(tensors, carry, *inputs, noise)[0]

    def _hoist(self, tensors, tokens, action, is_first):
        """Computes for all steps at once what needs no state."""
        keep = ops.cast(ops.logical_not(is_first), self.compute_dtype)
        keep = keep[..., None]
        tensors = self.gru.prepare(tensors, tokens.shape[0])
        action = self.gru.embed_action(tensors, action * keep)
        kernel = tensors["obs0"]["kernel"]
        rest = {**tensors["obs0"], "kernel": kernel[self.deter :]}
        tensors = {**tensors, "obs0deter": {"kernel": kernel[: self.deter]}}
        return tensors, (keep, action, dense(rest, tokens))

    def _filter(self, tensors, carry, keep, action, tokens, noise):
        deter, stoch = (state * keep for state in carry)
        deter = self.gru.step(tensors, deter, stoch, action)
        x = matmul(deter, tensors["obs0deter"]["kernel"]) + tokens
        logits = self._posterior(tensors, x)
        stoch = self._sample(logits, noise)
        return (deter, stoch), (deter, stoch, logits)

    def imagine(self, tensors, carry, readouts, policy, noise, length):
        """Rolls the model forward under a policy (item 2.8, Algorithm C).

        All dense layers that take the same part of a state are one product.

        Args:
            tensors: the weights, from `tensors()`.
            carry: start states, `(N, ...)`.
            readouts: dict of the weights of dense layers on the features:
                `kernel` `(D + S * C, units)` and `bias`.
            policy: function `(projections, noise) -> (encoded, outputs)` of
                the dict of the readouts' `(N, units)` outputs and the noise.
                `encoded` is the `(N, actions)` encoding of the sampled
                action, `outputs` any nest of tensors.
            noise: pair of the policy's noise, a nest of `(H, N, ...)`, and
                the latents' noise, `(H, N, S)` or `None` for the mode.
            length: int. H, number of steps.

        Returns:
            The H states that actions were taken in, beginning with the start,
            as `deter` `(H, N, D)` and `stoch` `(H, N, S * C)`; the nest of
            outputs, `(H, N, ...)`; and the readouts' outputs of the last
            state.
        """
        tensors = self.gru.prepare(tensors, carry[0].shape[0])
        on_deter, on_stoch = self._join(tensors, readouts)

        def project(from_deter, from_stoch):
            return {
                name: from_deter[name] + from_stoch[name] for name in readouts
            }

        def step(carry, noise):
            deter, stoch, from_deter = carry
            from_stoch = on_stoch(stoch)
            action, outputs = policy(project(from_deter, from_stoch), noise[0])
            after = self.gru.advance(
                tensors,
                deter,
                (from_deter["dynin0"], from_stoch["dynin1"]),
                self.gru.embed_action(tensors, action),
            )
            from_deter = on_deter(after)
            x = self.prior_mlp.finish(tensors, from_deter["prior0"])
            latents = self.latents(self._logits(tensors["priorlogit"], x))
            sample = self._flatten(latents.one_hot(latents.sample(noise[1])))
            return (after, sample, from_deter), (deter, stoch, outputs)

        carry = (*carry, on_deter(carry[0]))
        last, (deter, stoch, outputs) = scan(step, carry, noise, length)
        return deter, stoch, outputs, project(last[2], on_stoch(last[1]))

    def _join(self, tensors, readouts):
        """Joins the layers on `deter` and those on `stoch`."""
        for_deter = {name: tensors[name] for name in ("dynin0", "prior0")}
        for_stoch = {"dynin1": tensors["dynin1"]}
        for name, layer in readouts.items():
            kernel = layer["kernel"]
            for_deter[name] = {**layer, "kernel": kernel[: self.deter]}
            for_stoch[name] = {"kernel": kernel[self.deter :]}
        return JoinedDense(for_deter), JoinedDense(for_stoch)

    def _posterior(self, tensors, x):
        """Continues after the first product, which was split."""
        x = norm_silu(tensors["obs0norm"], x)
        for index in range(1, self.obslayers):
            x = dense(tensors[f"obs{index}"], x)
            x = norm_silu(tensors[f"obs{index}norm"], x)
        return self._logits(tensors["obslogit"], x)

    def _logits(self, tensors, x):
        shape = (*ops.shape(x)[:-1], self.stoch, self.classes)
        return ops.reshape(dense(tensors, x), shape)

    def _sample(self, logits, noise):
        latents = self.latents(logits)
        return self._flatten(latents.straight_through(latents.sample(noise)))

    def _flatten(self, one_hot):
        flat = (*ops.shape(one_hot)[:-2], self.stoch * self.classes)
        return ops.cast(ops.reshape(one_hot, flat), self.compute_dtype)

    def compute_output_shape(self, tokens_shape, action_shape, is_first_shape):
        batch, latents = tuple(tokens_shape[:-1]), (self.stoch, self.classes)
        return (
            (*batch, self.deter),
            (*batch, self.stoch * self.classes),
            (*batch, *latents),
        )

    def get_config(self):
        names = (
            "deter hidden stoch classes blocks imglayers obslayers unimix seed"
        ).split()
        own = {name: getattr(self, name) for name in names}
        return {**super().get_config(), **own}
