"""Random numbers by address: every uniform is a function of (seed, stream, replicate, n, j)."""
