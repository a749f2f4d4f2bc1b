"""The physics of fabricarlo: pure, elementwise JAX kernels, wired by their annotations."""
