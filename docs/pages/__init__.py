"""Pages of results: each is written from the stores of shipped sweeps, and from nothing else.

    python -m docs.pages [NAME]... [--samples N]     # make pages

runs the sweeps of a page (a finished store under .cache/pages is taken as it is) and writes
docs/NAME.md and its figures. The page names the plans that it was made from, and a test compares
them with the sweeps as they are, so that no page outlives its sweep.
"""
