"""The pages that there are."""

from docs.pages.choose_a_collective import CHOOSE_A_COLLECTIVE
from docs.pages.page import Page
from docs.pages.tails import TAILS

PAGES: dict[str, Page] = {page.name: page for page in (CHOOSE_A_COLLECTIVE, TAILS)}
"""By name; a new page is a file and a name here."""
