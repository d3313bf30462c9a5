"""Errors in the paper: the numbers of every counter-example."""

import pytest

from gcnii_paper.theory.errata import errata


@pytest.mark.parametrize(
    ("place", "where", "numbers"),
    [
        (0, "equation 2", "ends at 0.449, P̃ gives 0.449 and Ã -0.004"),
        # 4/10 and 4/11
        (1, "below theorem 1", "the hub ends at 0.400, π is 0.400, and 0.364 as worded"),
        # 2 (7/8)^4
        (2, "theorem 1", "Σx = 0, and at K = 4 the distance is 0.219; ‖x‖₁ for Σx gives 1.172"),
        # (3/4)^16, (7/8)^16
        (3, "proof of theorem 1", "0.0067 away, the bounds are 0.0100 and, as printed, 0.1181"),
        (4, "proof of theorem 2", "0.750, the proof gives -0.625 and the other 0.750"),
        (5, "theorem 2", "c = (0.7, 0.3, 0, 2, 5, 1) takes 5 layers"),
        (6, "proof of theorem 2", "with ε = 1e-2 for 0 the scores are 3.5e-03 off"),  # 0.01 / √8
        (
            7,
            "proof of theorem 2",
            "at a leaf -0.354, and one channel gives 0.000; two, (h⁺, h⁻), give -0.354",
        ),
    ],
)
def test_the_numbers_of_an_erratum_are_those_computed_by_hand(place, where, numbers):
    erratum = errata()[place]
    assert erratum.where == where
    assert numbers in erratum.holds


def test_there_are_eight_errata_and_the_conjecture_is_none_of_them():
    assert len(errata()) == 8
    assert not any("conjecture" in one.where for one in errata())
