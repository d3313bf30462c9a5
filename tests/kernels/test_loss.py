"""Cross-entropy in one launch against torch's own."""

import pytest
import torch
from torch.nn.functional import cross_entropy


@pytest.mark.parametrize(("n", "k"), [(30, 7), (1, 2000)])
def test_losses_and_their_gradients_are_those_of_torch(device, n, k):
    from gcnii.kernels.loss import Entropies

    scores = (30 * torch.randn(2, n, k, dtype=torch.float64, device=device)).requires_grad_()
    y = torch.randint(-1, k, (n,), device=device)
    expected = cross_entropy(scores.mT, y.clamp(min=0).expand(2, -1), reduction="none")
    found, G = Entropies.apply(scores, y), torch.randn_like(expected)
    torch.testing.assert_close(found, expected)
    own, others = (torch.autograd.grad(each, scores, G)[0] for each in (found, expected))
    torch.testing.assert_close(own, others)


@pytest.mark.filterwarnings("ignore:invalid value")  # of the interpreter
def test_a_score_that_is_not_finite_makes_the_loss_so(device):
    from gcnii.kernels.loss import Entropies

    scores = torch.tensor([[[0.0, torch.nan], [torch.inf, 0.0], [1.0, 2.0]]], device=device)
    found = Entropies.apply(scores, torch.zeros(3, dtype=torch.int64, device=device))
    assert found.isfinite().tolist() == [[False, False, True]]
