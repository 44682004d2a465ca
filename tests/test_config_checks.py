import pytest

from keras_dreamer.config import Config
from keras_dreamer.config_checks import check
from keras_dreamer.config_checks import named
from keras_dreamer.config_checks import refuse_unknown


def test_named_returns_the_entry():
    assert named({"a": 1, "b": 2}, "size", "b") == 2


def test_named_lists_what_there_is():
    with pytest.raises(
        ValueError, match=r"`size` must be one of \['a'\].*size='c'.*override"
    ):
        named({"a": 1}, "size", "c")


def test_refuse_unknown():
    refuse_unknown(["a"], ["a", "b"])
    with pytest.raises(
        ValueError, match=r"no fields \['x', 'y'\]. It has: \['a'\].*Correct"
    ):
        refuse_unknown(["y", "a", "x"], ["a"])


def test_check_accepts_a_config():
    config = Config()
    check(config, config.loss_scales)


@pytest.mark.parametrize(
    "fields, match",
    [
        ({"size": "13m"}, r"`size` must be one of .*'12m'.*size='13m'"),
        ({"recipe": "v1"}, r"`recipe` must be one of .*recipe='v1'"),
        ({"detr": 8}, r"no fields \['detr'\].*'deter'.*Correct the names"),
        ({"imag_start": "x"}, r"'data' .*'model' .*imag_start='x'"),
        ({"replay_context": 2}, r"must be 0 .*1 .*replay_context=2"),
        ({"loss_scales": {"img": 1}}, r"`loss_scales` .*'rec'.*\['img'\]"),
        ({"deter": 100}, r"multiple of `blocks`.*deter=100, blocks=8.*=96"),
        ({"bins": 254}, r"`bins` must be odd.*bins=254. Use bins=255"),
        ({"batch_length": 1}, r"at least 2.*batch_length=1. Choose"),
        ({"minstd": 2.0}, r"at most `maxstd`.*minstd=2.0, maxstd=1.0.*0.1"),
        ({"minstd": 0.0}, r"`minstd` must be positive.*minstd=0.0"),
        ({"retnorm_perclo": 95.0}, r"percentiles.*retnorm_perclo=95.0"),
        ({"retnorm_perchi": 101.0}, r"percentiles.*retnorm_perchi=101.0"),
    ],
)
def test_wrong_combinations(fields, match):
    with pytest.raises(ValueError, match=match):
        Config(**fields)


@pytest.mark.parametrize(
    "name",
    "deter hidden units classes stoch blocks bins imag_length batch_size "
    "batch_length action_repeat horizon imglayers obslayers encoder_layers "
    "decoder_layers reward_layers continue_layers policy_layers "
    "value_layers".split(),
)
def test_sizes_are_at_least_one(name):
    with pytest.raises(
        ValueError, match=f"`{name}` must be at least 1.*{name}=0. Choose"
    ):
        Config(**{name: 0})


@pytest.mark.parametrize(
    "name",
    "unimix actor_unimix lam repval_lam slow_rate retnorm_rate beta1 "
    "beta2".split(),
)
@pytest.mark.parametrize("value", [-0.1, 1.1])
def test_fractions(name, value):
    with pytest.raises(
        ValueError, match=rf"`{name}` must lie in \[0, 1\].*{name}={value}"
    ):
        Config(**{name: value})


@pytest.mark.parametrize("name", ["lr", "train_ratio", "warmup", "free_nats"])
def test_not_negative(name):
    with pytest.raises(
        ValueError, match=f"`{name}` must not be negative.*{name}=-1. Choose"
    ):
        Config(**{name: -1})
