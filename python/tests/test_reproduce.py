"""reproduce: the claims of a paper as rows."""

import pytest

import forerun


def test_a_claim_is_a_row_with_its_figures_and_verdict():
    (row,) = forerun.reproduce("li04", only=["C1"])
    assert row["published"] == [540.0]
    assert abs(row["measured"][0] - 540) < 0.05 * 540
    assert (row["paper"], row["id"], row["verdict"]) == ("li04", "C1", "met")
    assert row["fitted"] is None and "seek" in row["note"]


def test_a_paper_or_a_claim_there_is_not_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match="li99.*li04.*kimbrel96"):
        forerun.reproduce("li99")
    with pytest.raises(ValueError, match="K1.*li04 has C1"):
        forerun.reproduce("li04", only=["K1"])
