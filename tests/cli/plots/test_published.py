import csv
import math

from keras_dreamer_cli.plots import published as module
from keras_dreamer_cli.plots.published import published


def test_a_curve():
    curve = published("dmc:cartpole_balance")
    assert curve.steps[[0, -1]].tolist() == [10_000, 490_000]
    # What examples/results/README.md says of it.
    assert (curve.at(20_000), curve.at(40_000)) == (226.7, 485.8)
    # Halfway between two points.
    middle = (curve.mean[0] + curve.mean[1]) / 2
    assert math.isclose(curve.at(15_000), middle)
    assert math.isnan(curve.at(600_000))
    assert (curve.std > 0).all()


def test_only_dm_control_has_one():
    for env in (None, "gym:CartPole-v1", "dmc:no_such"):
        assert published(env) is None


def test_the_table_says_where_it_is_from():
    path = module.__file__.replace(".py", ".csv")
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    head = " ".join(line for line in lines if line.startswith("#"))
    assert "danijar/dreamerv3, MIT License" in head
    rows = list(csv.DictReader(line for line in lines if line[:1] != "#"))
    assert len(rows) == 18 * 49
