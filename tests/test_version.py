import re

from keras_dreamer.version import __version__


def test_version_is_a_release_or_a_development_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", __version__)
