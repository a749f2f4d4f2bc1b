"""Laws of waiting by pattern: rings, trees, pairs, lines and barriers."""
