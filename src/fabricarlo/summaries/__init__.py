"""What is kept of the samples of a cell: histograms, moments, extremes, counts; their estimates.

`summariser` turns tiles into parts, `state` merges parts, `wire` makes bytes of them, `estimate`
reads them. `state`, `wire` and `estimate` import no JAX.
"""
