"""Measuring on PyTorch."""

import functools
import time
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.backend.parts import milliseconds
from benchmarks.backend.parts import noise_of
from benchmarks.backend.parts import world_model_loss
from keras_dreamer.models import dreamer

_CUDA = torch.cuda.is_available()
DEVICE = torch.cuda.get_device_name() if _CUDA else "cpu"


def wait(nest):
    if _CUDA:
        torch.cuda.synchronize()


def product(a, b):
    return a @ b


def device_peak():
    return torch.cuda.max_memory_allocated() if _CUDA else None


class Step:
    """The step of `fit`."""

    def __init__(self, model):
        model.make_train_function()
        self.model = model

    def __call__(self, batch):
        logs = self.model.train_function([(batch,)])
        wait(logs)
        return logs

    def close(self):
        pass


class _Counter(TorchDispatchMode):
    """Counts operators that compute; views do not."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += not function.is_view
        return function(*args, **(kwargs or {}))


def kernels(model, batch):
    """Counts operators: eager PyTorch starts a kernel or more for each."""
    with _Counter() as counter:
        model.train_step((batch,))
    return counter.count


def parts(model, batch):
    """Returns a function that times the parts of an eager update.

    Nothing is left out of an eager forward pass, so the clock is read where
    imagination begins and ends.
    """
    noise = noise_of(model, batch)
    weights = [weight.value for weight in model.trainable_variables]

    def gradient(loss, **kwargs):
        return torch.autograd.grad(loss, weights, allow_unused=True, **kwargs)

    def times():
        drawing, _ = milliseconds(lambda: noise_of(model, batch), wait)
        found = {"noise": drawing}
        with mock.patch.object(
            dreamer, "imagine", _timed(dreamer.imagine, found)
        ):
            start = time.perf_counter()
            found["forward"], update = milliseconds(
                model.loss_terms, wait, batch, noise
            )
        found["before"] = 1e3 * (found.pop("begin") - start)
        loss = world_model_loss(model, update)
        found["world_model_backward"], _ = milliseconds(
            functools.partial(gradient, retain_graph=True), wait, loss
        )
        found["backward"], _ = milliseconds(gradient, wait, update.total)
        return found

    times()
    return times


def _timed(function, found):
    def run(*args, **kwargs):
        wait(args)
        found["begin"] = time.perf_counter()
        found["imagination"], result = milliseconds(
            functools.partial(function, **kwargs), wait, *args
        )
        return result

    return run


def breakdown(times):
    """Returns the parts of an update in milliseconds."""
    forward, backward = times["forward"], times["backward"]
    world_model = times["before"] + times["world_model_backward"]
    imagination = times["imagination"]
    rest = times["update"] - forward - backward - times["noise"]
    return {
        "noise": times["noise"],
        "world_model": world_model,
        "imagination": imagination,
        "heads": forward + backward - world_model - imagination,
        "optimizer": rest,
        "world_model_forward": times["before"],
        "forward": forward,
    }
