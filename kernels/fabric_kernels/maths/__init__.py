"""Mathematics that several questions need: normal scores and order statistics."""
