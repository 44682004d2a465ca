"""What a configuration must fulfil, with messages that say what to do."""


def named(table, field, name):
    """Returns one entry of a table of sizes or recipes.

    Args:
        table: dict from names to entries.
        field: str. Name of the field, for the message.
        name: str. Name of the entry.

    Returns:
        The entry.
    """
    if name not in table:
        raise ValueError(
            f"`{field}` must be one of {sorted(table)}. Received: "
            f"{field}={name!r}. Start from one of them and override single "
            "fields, for example Config(size='1m', units=96)."
        )
    return table[name]


def refuse_unknown(names, known):
    """Refuses names of fields that do not exist.

    Args:
        names: iterable of str, as the user gave them.
        known: list of str, all fields.
    """
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise ValueError(
            f"The configuration has no fields {unknown}. It has: "
            f"{sorted(known)}. Correct the names."
        )


def check(config, losses):
    """Refuses wrong values and combinations, naming the fields.

    Args:
        config: `Config` with all fields set.
        losses: iterable of str. The names that `loss_scales` may have.
    """
    _check_choices(config, losses)
    _check_ranges(config)
    _check_sizes(config)
    _check_pairs(config)


def _check_choices(config, losses):
    if config.imag_start not in ("data", "model"):
        raise ValueError(
            "`imag_start` must be 'data' (replayed reward and continue at the "
            "start of imagination) or 'model' (predicted ones). Received: "
            f"imag_start={config.imag_start!r}. Set one of the two."
        )
    if config.replay_context not in (0, 1):
        raise ValueError(
            "`replay_context` must be 0 (start from zeros) or 1 (start from "
            "the stored latents of the row before). Received: "
            f"replay_context={config.replay_context}. Set one of the two."
        )
    unknown = sorted(set(config.loss_scales) - set(losses))
    if unknown:
        raise ValueError(
            f"`loss_scales` must name losses out of {sorted(losses)}. "
            f"Received also: {unknown}. Correct the names."
        )


_AT_LEAST_ONE = (
    "deter hidden units classes stoch blocks bins imag_length batch_size "
    "batch_length action_repeat horizon imglayers obslayers encoder_layers "
    "decoder_layers reward_layers continue_layers policy_layers value_layers"
).split()
_FRACTIONS = (
    "unimix actor_unimix lam repval_lam slow_rate retnorm_rate beta1 beta2"
).split()
_NOT_NEGATIVE = ("lr", "train_ratio", "warmup", "free_nats")


def _check_ranges(config):
    for name in _AT_LEAST_ONE:
        value = getattr(config, name)
        if value < 1:
            raise ValueError(
                f"`{name}` must be at least 1. Received: {name}={value}. "
                "Choose a larger value."
            )
    for name in _FRACTIONS:
        value = getattr(config, name)
        if not 0.0 <= value <= 1.0:
            raise ValueError(
                f"`{name}` must lie in [0, 1]. Received: {name}={value}. "
                "Choose a value in that range."
            )
    for name in _NOT_NEGATIVE:
        value = getattr(config, name)
        if value < 0:
            raise ValueError(
                f"`{name}` must not be negative. Received: {name}={value}. "
                "Choose zero or more."
            )


def _check_sizes(config):
    if config.deter % config.blocks:
        raise ValueError(
            "`deter` must be a multiple of `blocks`, so that every block of "
            f"the GRU has the same size. Received: deter={config.deter}, "
            f"blocks={config.blocks}. The nearest smaller valid value is "
            f"deter={config.deter - config.deter % config.blocks}."
        )
    if config.bins % 2 == 0:
        raise ValueError(
            "`bins` must be odd, so that one bin is exactly 0. Received: "
            f"bins={config.bins}. Use bins={config.bins + 1}."
        )
    if config.batch_length < 2:
        raise ValueError(
            "`batch_length` must be at least 2: the replay value loss needs "
            f"a next step. Received: batch_length={config.batch_length}. "
            "Choose a longer window."
        )


def _check_pairs(config):
    if not 0.0 < config.minstd <= config.maxstd:
        raise ValueError(
            "`minstd` must be positive and at most `maxstd`. Received: "
            f"minstd={config.minstd}, maxstd={config.maxstd}. The recipes "
            "use 0.1 and 1.0."
        )
    low, high = config.retnorm_perclo, config.retnorm_perchi
    if not 0.0 <= low < high <= 100.0:
        raise ValueError(
            "`retnorm_perclo` and `retnorm_perchi` must be percentiles, the "
            f"first one smaller. Received: retnorm_perclo={low}, "
            f"retnorm_perchi={high}. The recipes use 5 and 95."
        )
