"""The agent as a Keras model."""

import functools

import keras
from keras import ops

from keras_dreamer import backend
from keras_dreamer import spaces
from keras_dreamer.backend.exchange import Exchange
from keras_dreamer.config import Config
from keras_dreamer.models import acting
from keras_dreamer.models import fitting
from keras_dreamer.models import learning
from keras_dreamer.models import noise as noises
from keras_dreamer.models import official
from keras_dreamer.models import world_model
from keras_dreamer.models.batch import prepare_batch
from keras_dreamer.models.exporting import Exporting
from keras_dreamer.models.imagination import imagine
from keras_dreamer.models.networks import Networks
from keras_dreamer.models.networks import refuse_float16
from keras_dreamer.models.saving import Saving
from keras_dreamer.models.terms import UpdateMeans
from keras_dreamer.models.terms import assemble
from keras_dreamer.models.terms import metric_names
from keras_dreamer.models.terms import weighted_total


@keras.saving.register_keras_serializable(package="keras_dreamer")
class Dreamer(backend.Trainer, Saving, Exporting, keras.Model):
    """DreamerV3: learns a world model and acts by what it imagines.

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), and
    danijar/dreamerv3 at e3f0224.

    Args:
        observation_space: gymnasium space of one environment. Pictures,
            texts, sequences and graphs are refused.
        action_space: gymnasium space of one environment.
        config: `Config`, or its dict.
        seed: int. Seed of the initial weights, of the noise of updates and of
            the noise of actions.

    Example:

    >>> space = gymnasium.spaces.Box(-1, 1, (3,))
    >>> config = keras_dreamer.Config(size="small")
    >>> model = keras_dreamer.Dreamer(space, space, config)
    >>> action, state = model.act(np.zeros((1, 3)))
    >>> action.shape
    (1, 3)
    """

    def __init__(
        self, observation_space, action_space, config=None, seed=0, **kwargs
    ):
        super().__init__(**kwargs)
        self.observation_space = observation_space
        self.action_space = action_space
        self.config = config or Config()
        self.seed = seed
        refuse_float16(self.dtype_policy)
        observation = spaces.leaves(observation_space, "observation")
        action = spaces.leaves(action_space, "action")
        self.observation_leaves = observation
        self.action_leaves = action
        self.networks = Networks(
            observation, action, self.config, seed, dtype=self.dtype_policy
        )
        self.retnorm_low = self._add_state("retnorm_low", "float32")
        self.retnorm_high = self._add_state("retnorm_high", "float32")
        self.slow_count = self._add_state("slow_count", "int32")
        self.noise_seed = keras.random.SeedGenerator(seed)
        self.means = UpdateMeans(metric_names(observation, action))
        self.exchange = Exchange(self.means.scalar_names)
        self.observations = spaces.Converter(observation_space, "observation")
        self.actions = spaces.Converter(action_space, "action")
        self.action_noise = noises.NumberedNoise(seed)
        self.policy = self.compile_function(
            functools.partial(acting.policy_step, self),
            self.networks.acting_weights(),
        )
        self.built = True

    def _add_state(self, name, dtype):
        return self.add_weight(
            name=name,
            shape=(),
            initializer="zeros",
            dtype=dtype,
            trainable=False,
            autocast=False,
        )

    # Learning.

    def loss_terms(self, batch, noise, training=True):
        """Returns every loss term, the fresh latents and the metrics.

        Args:
            batch: nest that `ReplayDataset.draw()` returns.
            noise: nest that `sample_noise` or `mode_noise` returns.
            training: bool. Whether the return percentiles move.

        Returns:
            `LossTerms`.
        """
        nets, config = self.networks, self.config
        # Copies: on PyTorch a tensor changes when its variable is assigned.
        percentiles = (self.retnorm_low + 0.0, self.retnorm_high + 0.0)
        batch = prepare_batch(self, batch)
        tensors = nets.tensors()
        fixed = nets.tensors(stop_gradient=True)
        posterior, terms, metrics = world_model.observe(
            nets, tensors, batch, noise, config
        )
        dream = imagine(nets, fixed, posterior, noise, config)
        learned = learning.actor_critic(
            nets,
            tensors,
            dream,
            batch,
            lambda returns: learning.percentiles(self, returns, training),
            config,
        )
        terms["repval"] = learning.replay_value_term(
            nets, tensors, posterior, batch, learned.returns, config
        )
        total = weighted_total(terms, config.loss_scales) + learned.total
        terms.update(learned.terms)
        metrics.update(learned.metrics)
        update = assemble(posterior, total, terms, metrics, config)
        return update._replace(percentiles=percentiles)

    def update_terms(self, batch):
        """Draws the noise of an update and returns its loss terms."""
        rows, steps = batch["is_first"].shape
        noise = self.sample_noise(rows, steps - self.config.replay_context)
        return self.loss_terms(batch, noise)

    def track_update(self, update, finite, norms):
        """Adds an update to the running means; returns what leaves it.

        Args:
            update: `LossTerms`.
            finite: bool tensor. If not, the return percentiles go back to
                what they were before the update.
            norms: dict of the norms of gradients, further metrics.
        """
        percentiles = (self.retnorm_low, self.retnorm_high)
        for now, old in zip(percentiles, update.percentiles, strict=True):
            now.assign(ops.where(finite, now.value, old))
        metrics = {**update.metrics, **norms}
        latest = self.means.update_state(metrics, finite)
        scalars = ops.stack([self.means.vector(), latest])
        return {"scalars": scalars, "latents": update.latents}

    @property
    def metrics(self):
        return [self.means]

    def sample_noise(self, batch_size, batch_length):
        """Draws all randomness of one update.

        Args:
            batch_size: int. B.
            batch_length: int. T, trained steps.

        Returns:
            Nest of float32 tensors: `posterior` `(B, T, S)` and `prior`
            `(H, B * T, S)`, uniform in `[0, 1)`, and `action`, for each key
            `(H, B * T, *shape)`, uniform for integers and standard normal
            for numbers.
        """
        shapes = self._noise_shapes(batch_size, batch_length)
        return noises.draw_noise(shapes, self.action_leaves, self.noise_seed)

    def mode_noise(self, batch_size, batch_length, normal=0.0):
        """Returns the noise of a deterministic update.

        Args:
            batch_size: int. B.
            batch_length: int. T, trained steps.
            normal: float. Noise of every normal: samples are
                `mean + normal * std`.

        Returns:
            Nest like that of `sample_noise`, with `None` for categoricals,
            which then take their most probable class.
        """
        shapes = self._noise_shapes(batch_size, batch_length)
        return noises.mode_noise(shapes, self.action_leaves, normal)

    def _noise_shapes(self, batch_size, batch_length):
        return noises.noise_shapes(
            self.config, self.action_leaves, batch_size, batch_length
        )

    # Keras.

    def compile(self, optimizer=None, jit_compile="auto", **kwargs):
        """Prepares the model for `fit`.

        Args:
            optimizer: any Keras optimizer; by default `LaProp` with the
                settings of the configuration.
            jit_compile: bool or `"auto"`: compiled by XLA on JAX and
                TensorFlow, eager on PyTorch.
            **kwargs: `run_eagerly` and the like. The model brings its own
                losses and metrics.
        """
        fitting.check_compile(kwargs)
        self.jit_asked = jit_compile
        if jit_compile == "auto":
            jit_compile = keras.backend.backend() != "torch"
        jit_compile = jit_compile and not kwargs.get("run_eagerly", False)
        super().compile(
            optimizer=optimizer or fitting.recipe_optimizer(self.config),
            jit_compile=jit_compile,
            **kwargs,
        )
        self.optimizer.build(self.trainable_variables)
        self.gradient_parts = self.networks.positions(self.trainable_variables)

    def fit(self, x=None, callbacks=None, verbose="auto", **kwargs):
        """Trains on a `ReplayDataset`.

        `SlowCritic` and `LatentWriteBack` are added when they are missing.
        Ctrl-C ends training cleanly.

        Args:
            x: `ReplayDataset`.
            callbacks: list of Keras callbacks.
            verbose: as in `keras.Model.fit`.
            **kwargs: `epochs`, `steps_per_epoch`, `initial_epoch`.

        Returns:
            `keras.callbacks.History`.
        """
        return fitting.fit(self, super().fit, x, callbacks, verbose, kwargs)

    def update_slow_critic(self, rate):
        """Moves the slow critic towards the critic (item 3.18).

            slow <- rate * critic + (1 - rate) * slow

        Under the recipe "paper" the first call copies the critic.
        """
        nets = self.networks
        first = 1.0 if self.config.slow_copy else rate
        self.blend(
            self.slow_count,
            nets.slowval.weights,
            nets.val.weights,
            (first, rate),
        )

    # Acting.

    def act(self, observation, state=None, is_first=None, deterministic=False):
        """Chooses the actions of a batch of environments.

        Args:
            observation: nest of arrays of the observation space with a
                leading axis, one row for each of N environments.
            state: `None` before the first step, then what `act` returned.
            is_first: `(N,)` bool array: which environments just started an
                episode. By default all when `state` is `None`, else none.
            deterministic: bool. Whether to take the modes of the latents and
                of the policy. The published agent always samples.

        Returns:
            Pair of the actions, a nest like the action space with a leading
            axis, and the state: a dict of NumPy arrays with `deter` `(N, D)`,
            `stoch` `(N, S)` class indices and `action`, the sampled values
            before they are scaled to the bounds.
        """
        return acting.act(self, observation, state, is_first, deterministic)

    # Weights by name.

    def official_weights(self):
        """Returns all weights under the names of danijar/dreamerv3.

        Returns:
            Dict of NumPy arrays, for example `dyn/dynin0/kernel`,
            `slowval/head/logits/bias` and `retnorm/lo/value`.
        """
        return official.export_weights(self)

    def load_official_weights(self, params):
        """Loads weights by the names of danijar/dreamerv3 at e3f0224.

        Args:
            params: dict of arrays; entries of other modules, such as the
                official optimizer's, are ignored.
        """
        official.import_weights(self, params)
