"""Write pages of results: `python -m docs.pages [NAME]... [--samples N] [--out FOLDER]`."""

import argparse
from pathlib import Path

from docs.pages.listed import PAGES
from docs.pages.page import ROOT, made, stores_of


def main() -> None:
    """Run what the pages need and write them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PAGES)}")
    parser.add_argument("--samples", type=int, help="samples a cell, instead of the sweep's own")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="folder of the pages")
    asked = parser.parse_args()
    if unknown := set(asked.names) - PAGES.keys():
        parser.error(f"no page is called {', '.join(sorted(unknown))}: take of {', '.join(PAGES)}")
    for name in asked.names or PAGES:
        page = PAGES[name]
        text = made(page, stores_of(page, asked.samples), asked.out)
        (asked.out / f"{name}.md").write_text(text, encoding="utf-8")
        print(f"wrote {asked.out / name}.md")


if __name__ == "__main__":
    main()
