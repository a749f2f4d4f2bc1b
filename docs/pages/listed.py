"""The pages that there are."""

from docs.pages.air_or_liquid import AIR_OR_LIQUID
from docs.pages.choose_a_collective import CHOOSE_A_COLLECTIVE
from docs.pages.page import Page
from docs.pages.roce_or_infiniband import ROCE_OR_INFINIBAND
from docs.pages.tails import TAILS

PAGES: dict[str, Page] = {
    page.name: page for page in (CHOOSE_A_COLLECTIVE, TAILS, ROCE_OR_INFINIBAND, AIR_OR_LIQUID)
}
"""By name; a new page is a file and a name here."""
