"""Kinds of reference tables, and what the product is held to on each."""
