"""What is kept of the samples of a cell: histograms, moments, extremes, counts, and their estimates.

`summariser` turns tiles into parts, `state` merges and stores parts, `estimate` reads a part.
Only `summariser` and `device` import JAX.
"""
