"""All networks of the agent, under their official names."""

from keras_dreamer.layers.continue_head import ContinueHead
from keras_dreamer.layers.decoder import Decoder
from keras_dreamer.layers.encoder import Encoder
from keras_dreamer.layers.functional import FunctionalLayer
from keras_dreamer.layers.initializers import spread_seeds
from keras_dreamer.layers.policy import Policy
from keras_dreamer.layers.rssm import RSSM
from keras_dreamer.layers.two_hot_head import TwoHotHead


class Networks(FunctionalLayer):
    """World model, actor and critics, built on construction.

    Source: `dreamerv3/agent.py` of danijar/dreamerv3 at e3f0224; items 2.1
    to 2.13, 3.15 and 3.18.

    Args:
        observation: dict of `Leaf`.
        action: dict of `Leaf`.
        config: `Config`.
        seed: int. Seed of all initial weights.

    Attributes:
        enc: `Encoder`.
        dyn: `RSSM`.
        dec: `Decoder`.
        rew: `TwoHotHead` of rewards.
        con: `ContinueHead`.
        pol: `Policy`, the actor.
        val: `TwoHotHead` of values, the critic.
        slowval: `TwoHotHead`, an exponential average of `val`.
    """

    def __init__(self, observation, action, config, seed, **kwargs):
        super().__init__(**kwargs)
        self._make_parts(observation, action, config, seed)
        self._build_parts(action, config)

    def _make_parts(self, observation, action, config, seed):
        c = config
        own = {"dtype": self.dtype_policy}
        seeds = spread_seeds(seed, 7)
        self.enc = Encoder(
            observation, c.encoder_layers, c.units, seeds[0], **own
        )
        self.dyn = RSSM(
            c.deter,
            c.hidden,
            c.stoch,
            c.classes,
            c.blocks,
            c.imglayers,
            c.obslayers,
            c.unimix,
            seeds[1],
            **own,
        )
        self.dec = Decoder(
            observation,
            c.decoder_layers,
            c.units,
            c.decoder_outscale,
            seeds[2],
            **own,
        )
        self.rew = self._two_hot_head(c, c.reward_layers, seeds[3])
        self.con = ContinueHead(c.continue_layers, c.units, seeds[4], **own)
        self.pol = Policy(
            action,
            c.policy_layers,
            c.units,
            c.actor_unimix,
            c.minstd,
            c.maxstd,
            c.policy_outscale,
            seeds[5],
            **own,
        )
        self.val = self._two_hot_head(c, c.value_layers, seeds[6])
        # The same seed: it starts as an exact copy.
        self.slowval = self._two_hot_head(c, c.value_layers, seeds[6])
        self.slowval.trainable = False

    def _two_hot_head(self, config, layers, seed):
        return TwoHotHead(
            layers,
            config.units,
            config.bins,
            seed=seed,
            dtype=self.dtype_policy,
        )

    def _build_parts(self, action, config):
        features = config.deter + config.stoch * config.classes
        actions = sum(leaf.width for leaf in action.values())
        self.enc.build()
        self.dyn.build((None, None, config.units), (None, None, actions))
        for head in self.heads():
            head.build((None, features))
        self.built = True

    def heads(self):
        """Returns the networks that take the latent state."""
        return [self.dec, self.rew, self.con, self.pol, self.val, self.slowval]

    def named_layers(self):
        names = "enc dyn dec rew con pol val slowval".split()
        return {name: getattr(self, name) for name in names}

    def acting_weights(self):
        """Returns the variables that choose actions."""
        parts = (self.enc, self.dyn, self.pol)
        return [w for part in parts for w in part.weights]


def refuse_float16(policy):
    """Raises an error where the agent cannot compute."""
    if policy.compute_dtype == "float16":
        raise ValueError(
            "`Dreamer` computes in float32 or bfloat16: float16 cannot hold "
            f"its returns. Received: dtype policy {policy.name!r}. Use "
            "'mixed_bfloat16' or 'float32'."
        )
