"""What every test runs under: a strict JAX on two CPU devices, and examples that never change."""

import os

# read when JAX starts its CPU backend, so set before anything imports it
os.environ.setdefault("JAX_PLATFORMS", "cpu")
_TWO_DEVICES = "--xla_force_host_platform_device_count=2"
if _TWO_DEVICES not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_TWO_DEVICES}".strip()

import jax  # noqa: E402
import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# A first example compiles, and a machine may be busy: neither is a failure, so nothing is timed.
settings.register_profile(
    "fixed", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "fresh", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fixed")


@pytest.fixture(scope="session", autouse=True)
def _compiled(tmp_path_factory):
    """What one test has compiled the next ones of a process load: most sweeps here are alike."""
    jax.config.update("jax_compilation_cache_dir", str(tmp_path_factory.mktemp("compiled")))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
