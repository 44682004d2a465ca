"""Hyperparameters: one frozen dataclass, the published sizes and recipes."""

import dataclasses
import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from keras_dreamer.config_checks import check
from keras_dreamer.config_checks import named
from keras_dreamer.config_checks import refuse_unknown

# Item 4.1: loss scales of danijar/dreamerv3 at e3f0224, configs.yaml:86.
LOSS_SCALES = MappingProxyType(
    {
        "rec": 1.0,
        "rew": 1.0,
        "con": 1.0,
        "dyn": 1.0,
        "rep": 0.1,
        "policy": 1.0,
        "value": 1.0,
        "repval": 0.3,
    }
)


def _published(d):
    """Widths that follow from the model dimension `d` (item 2.1)."""
    return {
        "deter": 8 * d,
        "hidden": d,
        "units": d,
        "stoch": 32,
        "classes": d // 16,
    }


SIZES = MappingProxyType(
    {
        # Our own, for trying things out on a CPU: fewer and smaller latents.
        "small": {
            "deter": 256,
            "hidden": 64,
            "units": 64,
            "stoch": 16,
            "classes": 8,
        },
        "1m": _published(64),
        "12m": _published(256),
        "25m": _published(384),
        "50m": _published(512),
        "100m": _published(768),
        "200m": _published(1024),
        "400m": _published(1536),
    }
)

RECIPES = MappingProxyType(
    {
        # 2411f7d with the first-prevact fix of 29eb964: the published curves.
        "paper": {
            "imag_start": "data",
            "slow_copy": True,
            "decoder_outscale": 0.1,
            "actor_unimix": 0.01,
            "train_ratio": 512.0,
            "action_repeat": 2,
            "env_steps": 500_000,
        },
        # danijar/dreamerv3 at e3f0224.
        "head": {
            "imag_start": "model",
            "slow_copy": False,
            "decoder_outscale": 1.0,
            "actor_unimix": 0.0,
            "train_ratio": 1024.0,
            "action_repeat": 1,
            "env_steps": 1_100_000,
        },
    }
)


@dataclasses.dataclass(frozen=True, init=False)
class Config:
    """Hyperparameters of a published size and recipe, with overrides.

    The defaults are those of danijar/dreamerv3 at e3f0224,
    `dreamerv3/configs.yaml` (line numbers in the comments), which are also
    those of the paper where it names them. Fields without a default follow
    from the size (item 2.1) or the recipe (items 1.5, 3.5, 3.14, 3.18,
    7.5); `loss_scales` given as an override need only name what they change.

    Args:
        size: str. `"1m"` to `"400m"` as published, or `"small"`, our own
            size for trying things out on a CPU.
        recipe: str. `"paper"` for the code behind the published curves,
            `"head"` for the newest published code.
        **overrides: Any of the fields below, for example `batch_size=8`.

    Example:

    >>> config = keras_dreamer.Config(size="12m", recipe="paper")
    >>> config.deter, config.replace(batch_size=8).batch_size
    (2048, 8)
    """

    size: str
    recipe: str

    # World model (items 1.4, 2.1 to 2.13).
    deter: int  # D, features of the deterministic state.
    hidden: int  # U, width of the layers inside the RSSM.
    units: int  # Width of the encoder, decoder and all heads.
    classes: int  # C, classes of each categorical latent.
    stoch: int  # S, categorical latents, 32 as published. configs.yaml:91
    blocks: int = 8  # G, blocks of the GRU. configs.yaml:91
    imglayers: int = 2  # Hidden layers of the prior. configs.yaml:91
    obslayers: int = 1  # Hidden layers of the posterior. configs.yaml:91
    encoder_layers: int = 3  # configs.yaml:94
    decoder_layers: int = 3  # configs.yaml:97
    reward_layers: int = 1  # configs.yaml:98
    continue_layers: int = 1  # configs.yaml:99
    policy_layers: int = 3  # configs.yaml:100
    value_layers: int = 3  # configs.yaml:101
    unimix: float = 0.01  # Share of the uniform in latents. configs.yaml:91
    free_nats: float = 1.0  # KL below it costs nothing. configs.yaml:91
    bins: int = 255  # Of the two-hot distributions. configs.yaml:98
    decoder_outscale: float  # Of the output kernels' standard deviation.

    # Actor and critic (items 3.1 to 3.19).
    imag_start: str  # Reward and continue of the start: "data" or "model".
    actor_unimix: float  # Share of the uniform in discrete policies.
    policy_outscale: float = 0.01  # configs.yaml:100
    minstd: float = 0.1  # Of continuous policies. configs.yaml:100
    maxstd: float = 1.0  # configs.yaml:100
    imag_length: int = 15  # H, imagined steps. configs.yaml:105
    horizon: float = 333.0  # 1 / (1 - discount), in steps. configs.yaml:106
    contdisc: bool = True  # The discount sits in `con`. configs.yaml:107
    lam: float = 0.95  # λ of imagined returns. configs.yaml:108
    repval_lam: float = 0.95  # λ of replayed returns. configs.yaml:109
    actent: float = 3e-4  # Entropy scale. configs.yaml:108
    slowreg: float = 1.0  # Pull towards the slow critic. configs.yaml:108
    slow_rate: float = 0.02  # Of the slow critic's average. configs.yaml:110
    slow_copy: bool  # Whether its first update copies (item 3.18).
    retnorm_rate: float = 0.01  # Of the return percentiles. configs.yaml:111
    retnorm_limit: float = 1.0  # Smallest return scale. configs.yaml:111
    retnorm_perclo: float = 5.0  # Percentiles. configs.yaml:111
    retnorm_perchi: float = 95.0
    reward_grad: bool = True  # Rewards shape the latents. configs.yaml:88
    repval_grad: bool = True  # Replay values too. configs.yaml:116
    loss_scales: Mapping[str, float]  # configs.yaml:86

    # Optimizer (items 4.3 to 4.7), configs.yaml:87 and opt.py:109.
    lr: float = 4e-5
    warmup: int = 1000  # Updates until the full learning rate.
    agc: float = 0.3  # Largest ratio of gradient to weight norm.
    pmin: float = 1e-3  # Smallest weight norm that AGC assumes.
    beta1: float = 0.9
    beta2: float = 0.999  # The paper's text says 0.99, both codes 0.999.
    eps: float = 1e-20

    # Replay and loop (items 5.1 to 6.2, 7.5).
    batch_size: int = 16  # B, configs.yaml:10
    batch_length: int = 64  # T, trained steps per row. configs.yaml:11
    replay_context: int = 1  # K, rows before them, 0 or 1. configs.yaml:15
    train_ratio: float  # Trained steps per agent step.
    action_repeat: int
    env_steps: int  # Budget of the DMC proprio protocol, in simulator steps.

    def __init__(
        self, size: str = "12m", recipe: str = "paper", **overrides: Any
    ) -> None:
        refuse_unknown(overrides, [f.name for f in dataclasses.fields(self)])
        fields = {
            **{f.name: f.default for f in dataclasses.fields(self)},
            "loss_scales": LOSS_SCALES,
            **named(RECIPES, "recipe", recipe),
            **named(SIZES, "size", size),
            **overrides,
            "size": size,
            "recipe": recipe,
        }
        scales = {**LOSS_SCALES, **fields["loss_scales"]}
        fields["loss_scales"] = MappingProxyType(scales)
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        check(self, LOSS_SCALES)

    def __reduce__(self):
        # Mapping proxies, which keep the loss scales frozen, do not pickle.
        return functools.partial(Config, **self.to_dict()), ()

    @property
    def discount(self) -> float:
        """Discount factor per step, `1 - 1 / horizon`."""
        return 1.0 - 1.0 / self.horizon

    def replace(self, **fields: Any) -> "Config":
        """Returns a checked copy with some fields replaced.

        A new `size` or `recipe` brings the fields that belong to it.
        """
        base = self.to_dict()
        size = fields.get("size", self.size)
        recipe = fields.get("recipe", self.recipe)
        if size != self.size:
            base.update(named(SIZES, "size", size))
        if recipe != self.recipe:
            base.update(named(RECIPES, "recipe", recipe))
        scales = {**base["loss_scales"], **fields.get("loss_scales", {})}
        return Config(**{**base, **fields, "loss_scales": scales})

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields as a dict that JSON can hold.

        `Config(**config.to_dict())` is the same configuration.
        """
        fields = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
        }
        return {**fields, "loss_scales": dict(self.loss_scales)}

    @classmethod
    def dmc_proprio(cls, recipe: str = "paper", **overrides: Any) -> "Config":
        """Returns the protocol for dm_control's vector tasks (item 7.5)."""
        size = "1m" if recipe == "head" else "12m"
        return cls(**{"size": size, "recipe": recipe, **overrides})
