"""A report on a fitted model: one HTML file that works offline and in which nothing a user named can run."""

from plackett.report.write import write_report

__all__ = ["write_report"]
