"""The networks of the specification in plain NumPy, for one sample."""

import numpy as np


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def dense(weights, name, x):
    """Item 1.1."""
    return x @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]


def norm(weights, name, x):
    """Item 1.3."""
    scale = weights[f"{name}/scale"]
    return x / np.sqrt(np.mean(x**2) + 1e-4) * scale


def silu(x):
    return x * sigmoid(x)


def hidden(weights, name, norm_name, x):
    """Item 1.3: dense, norm, activation."""
    return silu(norm(weights, norm_name, dense(weights, name, x)))


def mlp(weights, x, layers, name="mlp/linear{}", norm_name="mlp/norm{}"):
    """Item 1.4."""
    for index in range(layers):
        x = hidden(weights, name.format(index), norm_name.format(index), x)
    return x


def block_dense(weights, name, x):
    """Item 1.2: every block by itself."""
    kernel, bias = weights[f"{name}/kernel"], weights[f"{name}/bias"]
    parts = np.split(x, len(kernel))
    return (
        np.concatenate([p @ k for p, k in zip(parts, kernel, strict=True)])
        + bias
    )


def gru(weights, deter, stoch, action, blocks):
    """Algorithm A."""
    action = action / np.maximum(1.0, np.abs(action))
    x = np.concatenate(
        [
            hidden(weights, f"dynin{i}", f"dynin{i}norm", value)
            for i, value in enumerate((deter, stoch, action))
        ]
    )
    x = np.concatenate(
        [np.concatenate([own, x]) for own in np.split(deter, blocks)]
    )
    x = silu(norm(weights, "dynhid0norm", block_dense(weights, "dynhid0", x)))
    gates = block_dense(weights, "dyngru", x).reshape(blocks, 3, -1)
    reset, candidate, update = (gates[:, i].reshape(-1) for i in range(3))
    candidate = np.tanh(sigmoid(reset) * candidate)
    update = sigmoid(update - 1)
    return update * candidate + (1 - update) * deter


def observe(weights, state, token, action, is_first, blocks, stoch):
    """Algorithm B with the most probable latents."""
    deter, latents = state
    if is_first:
        deter, latents, action = 0 * deter, 0 * latents, 0 * action
    deter = gru(weights, deter, latents, action, blocks)
    x = np.concatenate([deter, token])
    x = hidden(weights, "obs0", "obs0norm", x)
    logits = dense(weights, "obslogit", x).reshape(stoch, -1)
    latents = np.eye(logits.shape[-1])[logits.argmax(-1)].reshape(-1)
    return deter, latents, logits
