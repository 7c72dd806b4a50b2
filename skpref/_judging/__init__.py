"""The server of `skpref judge`: people vote on a web page, and a board follows their votes.

Starlette and uvicorn do what a server does; nothing else of the package imports this room. Votes on
the files of a folder or the rows of a table are in one SQLite file; settings are tuned by an
optimizer with its journal.
"""

from skpref._judging._serve import serve_judging

__all__ = ["serve_judging"]
