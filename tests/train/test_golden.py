"""Golden numbers: three epochs in float64, to guard every refactoring between the files and the
loss.
"""

import numpy as np
import pytest

from gcnii.results.fit import fit

GOLDEN = {  # data set, model, seed → train and validation loss of epochs 1 to 3, at 8 layers
    ("cora", "gcnii", 0): [
        (1.9471973621748873, 1.9498730439671668),
        (1.9460818328915626, 1.9464479272712507),
        (1.944903704546534, 1.943531501451323),
    ],
    ("texas", "gcnii-star", 3): [
        (1.5730212503935213, 1.551642087310127),
        (1.5548057090009906, 1.5334273601306323),
        (1.533179954599781, 1.5065733347591623),
    ],
}


@pytest.mark.parametrize(("name", "model", "seed"), GOLDEN)
def test_the_first_losses_are_what_they_were(real_data, name, model, seed):
    result = fit(
        real_data(name), model, seeds=[seed], layers=8, epochs=3, precision="float64", device="cpu"
    )
    losses = [point[:2] for point in result.runs[0].curve]
    np.testing.assert_allclose(losses, GOLDEN[name, model, seed], rtol=1e-9)
