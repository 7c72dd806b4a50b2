"""International football: draws, home advantage, teams whose strength moves."""

import csv
import json
from os import PathLike

import numpy as np
from sklearn.utils import Bunch

from skpref.datasets._files import Source, bundled_path, fetch_texts, read_integers, read_text

_RESULTS = "results.csv"
_COMMIT = "65d212aac5deec5157071dcf6e9b05fce0223c84"

FOOTBALL = Source(
    title="football",
    url=f"https://raw.githubusercontent.com/martj42/international_results/{_COMMIT}/",
    folders=(
        "football_international",
        f"international_results-{_COMMIT}",
        f"football_international/international_results-{_COMMIT}",
    ),
    checksums={_RESULTS: "100afa17b2258ffcc0e9ef9612e374c5349e2b9390ec450b72147d4643c42070"},
)


def _make_match_bunch(shown, goals, neutral, **others):
    """Return the Bunch of matches whose teams are ``shown``, home first."""
    return Bunch(
        X=shown,
        y=np.sign(goals[:, 0] - goals[:, 1]),
        order=np.where(neutral, 0, 1).astype(np.int8),
        goals=goals,
        **others,
    )


def load_football() -> Bunch:
    """Load ten years of international football: 9,562 matches of 293 teams, 23 % draws.

    From 20 July 2016 to 19 July 2026, the finals of the World Cup. :func:`fetch_football` has
    all matches since 1872.

    Returns
    -------
    data : Bunch
        X : ndarray of shape (n_matches, 2)
            Indices into ``team_names``, the home team first. By date.
        y : ndarray of shape (n_matches,)
            1 if the first team won, 0 for a draw, -1 if the second won: the sign of the
            difference of goals after extra time, without penalty shoot-outs.
        order : ndarray of shape (n_matches,) of int8
            1 if the first team played at home, 0 on neutral ground.
        goals : ndarray of shape (n_matches, 2)
        date : ndarray of shape (n_matches,) of datetime64[D]
        tournament : ndarray of shape (n_matches,)
            Index into ``tournament_names``.
        team_names, tournament_names : list of str
            Sorted. Teams bear their present name throughout.
        DESCR : str
            Description, origin, licence (CC0 1.0).
        filename : str

    See Also
    --------
    fetch_football : All 49,520 matches, downloaded.

    References
    ----------
    M. Jürisoo, "International football results from 1872 to 2026",
    https://github.com/martj42/international_results.

    Examples
    --------
    >>> from skpref.datasets import load_football
    >>> data = load_football()
    >>> data.X.shape, [data.team_names[k] for k in data.X[-1]], data.y[-1].item()
    ((9562, 2), ['Spain', 'Argentina'], 1)
    """
    table = read_integers("football-matches.csv.gz")
    names = json.loads(read_text("football-names.json"))
    return _make_match_bunch(
        table[:, 1:3].copy(),
        table[:, 3:5].copy(),
        table[:, 5] == 1,
        date=table[:, 0].astype("datetime64[D]"),
        tournament=table[:, 6].copy(),
        team_names=names["teams"],
        tournament_names=names["tournaments"],
        DESCR=read_text("FOOTBALL-NOTICE.txt"),
        filename=str(bundled_path("football-matches.csv.gz")),
    )


def fetch_football(
    *,
    data_home: str | PathLike | None = None,
    download_if_missing: bool = True,
    n_retries: int = 3,
    delay: float = 1.0,
) -> Bunch:
    """Fetch all international football matches to 19 July 2026: 49,520 of 337 teams.

    The file is looked for in ``data_home`` and downloaded into it if it is not there.

    Parameters
    ----------
    data_home : str, path-like or None, default=None
        Folder that holds ``results.csv`` or a folder ``football_international`` with it; None:
        the folder ``skpref`` in scikit-learn's data home.
    download_if_missing : bool, default=True
        If False, a missing file is an error.
    n_retries : int, default=3
        Attempts to download.
    delay : float, default=1.0
        Seconds between attempts.

    Returns
    -------
    data : Bunch
        As :func:`load_football` gives it, without ``filename``.

    Raises
    ------
    ValueError
        If ``n_retries`` or ``delay`` is not one of those above.
    TypeError
        If ``n_retries`` is no integer or ``delay`` no number.
    ImportError
        If files are to be downloaded and pooch is not installed.
    OSError
        If the file is not there and cannot be downloaded, or has not the checksum of the
        version that is fetched. The message says what to put where.

    See Also
    --------
    load_football : The last ten years, which come with the package.

    References
    ----------
    M. Jürisoo, "International football results from 1872 to 2026",
    https://github.com/martj42/international_results.

    Examples
    --------
    >>> from skpref.datasets import fetch_football
    >>> football = fetch_football()  # doctest: +SKIP
    >>> football.X.shape, football.date[0]  # doctest: +SKIP
    ((49520, 2), np.datetime64('1872-11-30'))
    """
    options = data_home, download_if_missing, n_retries, delay
    texts = fetch_texts(FOOTBALL, (_RESULTS,), *options)
    rows = list(csv.DictReader(texts[_RESULTS].splitlines()))
    home, away, tournament = (
        [row[column] for row in rows] for column in ("home_team", "away_team", "tournament")
    )
    team_names, shown = np.unique([home, away], return_inverse=True)
    tournament_names, kind = np.unique(tournament, return_inverse=True)
    return _make_match_bunch(
        shown.reshape(2, -1).T.copy(),
        np.array([[row["home_score"], row["away_score"]] for row in rows], dtype=np.int64),
        np.array([row["neutral"] == "TRUE" for row in rows]),
        date=np.array([row["date"] for row in rows], dtype="datetime64[D]"),
        tournament=kind,
        team_names=team_names.tolist(),
        tournament_names=tournament_names.tolist(),
        DESCR=read_text("about-football.txt"),
    )
