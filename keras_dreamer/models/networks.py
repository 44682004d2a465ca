"""All networks of the agent, under their official names."""

from keras_dreamer.layers.continue_head import ContinueHead
from keras_dreamer.layers.decoder import Decoder
from keras_dreamer.layers.encoder import Encoder
from keras_dreamer.layers.functional import FunctionalLayer
from keras_dreamer.layers.initializers import spread_seeds
from keras_dreamer.layers.policy import Policy
from keras_dreamer.layers.rssm import RSSM
from keras_dreamer.layers.two_hot_head import TwoHotHead

# What is trained together, for the norms of gradients.
PARTS = {
    "world_model": ("enc", "dyn", "dec", "rew", "con"),
    "actor": ("pol",),
    "critic": ("val",),
}


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
        seeds = spread_seeds(seed, 7)
        self._make_world_model(observation, config, seeds[:5])
        self._make_actor_critic(action, config, seeds[5:])
        self._build_parts(action, config)

    def _make_world_model(self, observation, config, seeds):
        c = config
        own = {"dtype": self.dtype_policy}
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
        self.rew = TwoHotHead(
            c.reward_layers, c.units, c.bins, seed=seeds[3], **own
        )
        self.con = ContinueHead(c.continue_layers, c.units, seeds[4], **own)

    def _make_actor_critic(self, action, config, seeds):
        c = config
        own = {"dtype": self.dtype_policy}
        self.pol = Policy(
            action,
            c.policy_layers,
            c.units,
            c.actor_unimix,
            c.minstd,
            c.maxstd,
            c.policy_outscale,
            seeds[0],
            **own,
        )
        self.val = TwoHotHead(
            c.value_layers, c.units, c.bins, seed=seeds[1], **own
        )
        # The same seed: it starts as an exact copy.
        self.slowval = TwoHotHead(
            c.value_layers, c.units, c.bins, seed=seeds[1], **own
        )
        self.slowval.trainable = False

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

    def positions(self, variables):
        """Returns the name of each part and its places in `variables`."""
        place = {id(variable): i for i, variable in enumerate(variables)}
        positions = []
        for part, names in PARTS.items():
            weights = [w for n in names for w in getattr(self, n).weights]
            found = (place.get(id(w)) for w in weights)
            positions.append((part, tuple(i for i in found if i is not None)))
        return tuple(positions)

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
