"""A store as one self-contained page: the question, the answer in words, charts and provenance."""

from fabricarlo.report.writing import write_report

__all__ = ["write_report"]
