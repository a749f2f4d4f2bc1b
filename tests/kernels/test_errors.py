"""Loss rates: the KP4 codeword law in float32, links and codewords, marginal links."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from fabric_kernels.maths.codeword import any_of, symbol_error, uncorrectable_codeword
from fabric_kernels.path import Path
from fabric_kernels.quantity import quantities
from tests.agreement import assert_share
from tests.answers import answer, precision
from tests.tables import reference_table

law = jax.jit(uncorrectable_codeword)
WIDE = 2**12


def codeword(rates: list[float]) -> tuple[np.ndarray, np.ndarray]:
    found = law(jnp.asarray(rates, jnp.float32))
    return np.asarray(found.probability, np.float64), np.asarray(found.log10, np.float64)


def log10_tail(rate: float) -> float:
    """log10 P(Binomial(544, p) >= 16) by logarithms of its terms, for any rate."""
    wrong = -np.expm1(10 * np.log1p(-np.float64(np.float32(rate))))
    count = np.arange(16, 545)
    choices = special.gammaln(545) - special.gammaln(count + 1) - special.gammaln(545 - count)
    terms = choices + count * np.log(wrong) + (544 - count) * np.log1p(-wrong)
    return float(special.logsumexp(terms) / np.log(10))


RATES = [1e-12, 1e-8, 1e-6, 1e-5, 5e-5, 1e-4, 2.4e-4, 5e-4, 1e-3, 2e-3, 4e-3]


def test_the_codeword_law_in_float32():
    probability, log10 = codeword(RATES)
    for found, shown, rate in zip(probability, log10, RATES, strict=True):
        truth = log10_tail(rate)
        assert shown == pytest.approx(truth, abs=1e-5)
        if truth > -37:
            assert found == pytest.approx(10**truth, rel=1e-5)


def test_the_check_sees_one_symbol_less():
    wrong = stats.binom.sf(14, 544, 1 - (1 - 1e-3) ** 10)
    assert codeword([1e-3])[0][0] != pytest.approx(wrong, rel=0.5)


def test_rows_of_the_table():
    rows = [r for r in reference_table("congestion_cases.csv") if r["case"].startswith("fec-kp4")]
    asked = [r for r in rows if r["quantity"] == "packet_loss_prob_4200B"]
    assert len(asked) >= 6
    for row in asked:
        rate = float(row["case"].partition("ber=")[2])
        frame = any_of(law(jnp.asarray([rate], jnp.float32)), jnp.asarray([8.0], jnp.float32))
        value = float(row["value"])
        assert float(frame.log10[0]) == pytest.approx(np.log10(value), abs=2e-5)
        if value > 1e-37:
            assert float(frame.probability[0]) == pytest.approx(value, rel=2e-5)


def test_the_cliff():
    """One event every 2.2 hours at the limit of 2.4e-4, every 0.23 s at twice that (850 Gbit/s)."""
    probability, _ = codeword([2.4e-4, 5e-4])
    seconds = 1 / (probability * 850e9 / 5440)
    assert seconds[0] == pytest.approx(2.2 * 3600, rel=0.02)
    assert seconds[1] == pytest.approx(0.23, rel=0.02)


@settings(max_examples=50)
@given(st.floats(0, 5e-3), st.floats(0, 5e-3))
def test_more_errors_never_lose_less(one: float, other: float):
    low, high = sorted((one, other))
    probability, log10 = codeword([low, high])
    assert (probability <= 1).all()
    assert probability[0] <= probability[1] * (1 + 1e-5)
    assert log10[0] <= log10[1] + 1e-5


def test_a_symbol_of_a_small_rate_is_ten_bits():
    assert float(symbol_error(jnp.float32(1e-9))) == pytest.approx(1e-8, rel=1e-6)


PATH = {
    "gpus": 8192,
    "parameters": 1e9,
    "fabric_tiers": 2,
    "packet_loss_rate": 1e-9,
    "bit_error_rate": 3e-4,
    "marginal_bit_error_rate": 5e-4,
}


def errors(name: str, **changes: float) -> dict[str, np.ndarray]:
    given_ = {"hop_latency": 1e-6, "gpu_rate": 1e11} | PATH | changes
    upper = np.arange(WIDE) % 2 == 0
    distance = (np.arange(WIDE) + 0.5) / (2 * WIDE)
    points = {"marginal": (upper[:200], distance[:: WIDE // 200][:200])}
    records = {"path": _path(given_)}
    return answer("errors", name, given_, uniforms=points, records=records)


def _path(given_: dict[str, float]) -> Path:
    values = {n: jnp.asarray(given_.get(n, 1.0), jnp.float64) for n in quantities(Path)}
    return Path(**values)


def test_given_rates_pass_through():
    with precision(np.float64):
        found = errors("given_population", marginal_packet_loss_rate=1e-5)
    assert (found["path_loss_rate"] == 1e-9).all()
    assert (found["marginal_path_loss_rate"] == 1e-5).all()
    assert (found["marginal_links"] == 0).all()


def test_frames_are_lost_on_every_link_of_the_way():
    with precision(np.float64):
        found = errors("forward_error_correction", marginal_link_share=1e-3)
    good, bad = (10 ** log10_tail(rate) for rate in (3e-4, 5e-4))
    assert found["path_loss_rate"][0] == pytest.approx(4 * 8 * good, rel=1e-4)
    assert found["marginal_path_loss_rate"][0] == pytest.approx(8 * (bad + 3 * good), rel=1e-4)


def test_marginal_links_are_a_poisson_number():
    with precision(np.float64):
        found = errors("given_population", marginal_link_share=1e-4)["marginal_links"]
    upper = np.arange(200) % 2 == 0
    distance = ((np.arange(WIDE) + 0.5) / (2 * WIDE))[:: WIDE // 200][:200]
    level = np.where(upper, 1 - distance, distance)
    expected = stats.poisson.ppf(level, 8192 * 2 * 1e-4)
    np.testing.assert_array_equal(found, expected)
    # a binomial of twice the share is another law
    other = stats.poisson.ppf(level, 8192 * 4 * 1e-4)
    assert (found != other).mean() > 0.3
    assert_share(int((found == expected).sum()), 200, 1.0)
