"""The command `skpref`: from a table of votes to a board on paper.

`skpref rank votes.csv` reads votes, fits a model, and writes the board as text, CSV, Markdown, HTML
and JSON. Each step is what a user would write by `skpref.duels`, the estimator and `inspection`.
"""

from skpref._command._arguments import main

__all__ = ["main"]
