import dataclasses
import json

from keras_dreamer.episode import Episode


def test_round_trip_through_json():
    episode = Episode(
        stream=2, episode_return=0.1 + 0.2, length=7, step=30, env_steps=60
    )
    state = json.loads(json.dumps(dataclasses.asdict(episode)))
    assert Episode(**state) == episode
