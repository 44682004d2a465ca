"""PyTorch: LaProp on all variables at once."""

import torch


class LaPropUpdate:
    """Update step of `LaProp`, an operation a list instead of a tensor.

    Variable by variable, the many small ones take longer than their work.
    """

    @torch.no_grad()
    def _backend_update_step(self, grads, trainable_variables, scalars):
        step_size, correction = scalars
        indices = map(self._get_variable_index, trainable_variables)
        nu, mu = zip(
            *((self._nu[i].value, self._mu[i].value) for i in indices),
            strict=True,
        )
        g, p = (
            [x.to(moment.dtype) for x, moment in zip(tensors, nu, strict=True)]
            for tensors in (grads, [v.value for v in trainable_variables])
        )
        g = torch._foreach_mul(g, self._factors(g, p))
        torch._foreach_mul_(nu, self.beta_2)
        torch._foreach_addcmul_(nu, g, g, 1 - self.beta_2)
        rms = torch._foreach_mul(nu, correction)
        torch._foreach_sqrt_(rms)
        torch._foreach_add_(rms, self.epsilon * self.gradient_scale)
        torch._foreach_div_(g, rms)
        torch._foreach_lerp_(mu, g, 1 - self.beta_1)
        change = torch._foreach_mul(mu, step_size)
        torch._foreach_sub_([v.value for v in trainable_variables], change)

    def _factors(self, gradients, params):
        """Returns the gradients' factors, as `LaProp._factor` does."""
        if not self.agc:
            return self.gradient_scale
        norms = [
            torch.stack([torch.linalg.vector_norm(x) for x in tensors])
            for tensors in (gradients, params)
        ]
        limits = norms[1].clamp(min=self.pmin) * self.agc
        return (self.gradient_scale / (norms[0] / limits).clamp(min=1)).unbind()
