"""Environments: adapters, action repeat and vectors of them."""

from keras_dreamer.envs.action_repeat import ActionRepeat as ActionRepeat
from keras_dreamer.envs.checked import Checked as Checked
from keras_dreamer.envs.dm_control import FromDmControl as FromDmControl
from keras_dreamer.envs.environments import Environments as Environments
from keras_dreamer.envs.make import make as make
from keras_dreamer.envs.transitions import Rows as Rows
from keras_dreamer.envs.transitions import Transitions as Transitions
