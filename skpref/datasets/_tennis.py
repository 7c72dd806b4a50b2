"""Tennis: men's singles since 1968, players who rise and fade."""

import csv
import re
from collections.abc import Sequence
from os import PathLike

import numpy as np
from sklearn.utils import Bunch

from skpref._utils import check_choice, check_number
from skpref.data import balance_orientation
from skpref.datasets._files import Source, fetch_texts, read_text

_COMMIT = "5b6263dc487b4fa4fa35326764bc9b0215042a42"

TENNIS = Source(
    title="tennis",
    url=f"https://raw.githubusercontent.com/JeffSackmann/tennis_atp/{_COMMIT}/",
    folders=("tennis_atp", f"tennis_atp-{_COMMIT}"),
    checksums=dict(line.split() for line in read_text("tennis-checksums.txt").splitlines()),
)

# Level -> what its files are called, and their first season.
_LEVELS = {
    "main": ("atp_matches", 1968),
    "challenger": ("atp_matches_qual_chall", 1978),
    "futures": ("atp_matches_futures", 1991),
}
_LAST_SEASON = 2024

# In the order in which a tournament plays them; RR are groups and ties of the Davis Cup.
_ROUNDS = (
    *("Q1", "Q2", "Q3", "Q4", "PR", "CR", "ER", "R128", "R64", "R32", "R16", "RR"),
    *("QF", "SF", "BR", "F"),
)
_SURFACES = ("", "Hard", "Clay", "Grass", "Carpet")

# A set, as in "6-4" or "7-6(5)"; "[10-8]" is a tie-break in the place of one.
_SET = re.compile(r"(?<![\[\d])(\d+)-(\d+)")
_COLUMNS = (
    *("tourney_date", "round", "tourney_id", "match_num", "winner_id", "loser_id"),
    *("surface", "tourney_name", "winner_name", "loser_name", "score"),
)


def _count_games(score):
    """Return the games that winner and loser of a match won, tie-breaks aside."""
    sets = _SET.findall(score)
    return tuple(sum(int(each[k]) for each in sets) for k in (0, 1))


def _read_matches(text, level):
    """Return the matches of a file as tuples that sort into the order of play."""
    matches = []
    for row in csv.DictReader(text.splitlines()):
        date, rounds, identifier, number, winner, loser, surface, title, won, lost, score = (
            row[column] for column in _COLUMNS
        )
        if "W/O" in score or winner == loser:
            continue
        day, place = f"{date[:4]}-{date[4:6]}-{date[6:]}", _ROUNDS.index(rounds)
        in_order = day, place, level, identifier, int(number)
        players = int(winner), int(loser), won, lost
        matches.append((*in_order, *players, _SURFACES.index(surface), title, *_count_games(score)))
    return matches


def _season_files(
    levels: str | Sequence[str], first_season: int, last_season: int
) -> dict[str, int]:
    """Return the level of each file of some seasons; ValueError if there is none."""
    level_names = [levels] if isinstance(levels, str) else list(levels)
    for name in level_names:
        check_choice("levels", name, _LEVELS)
    span = {"low": 1968, "high": _LAST_SEASON, "integer": True}
    check_number("first_season", first_season, **span)
    check_number("last_season", last_season, **span)
    files = {
        f"{stem}_{season}.csv": level
        for level, (stem, first) in enumerate(_LEVELS.values())
        if list(_LEVELS)[level] in level_names
        for season in range(max(first, first_season), last_season + 1)
    }
    if not files:
        raise ValueError(
            f"levels={level_names} have no season from {first_season} to {last_season}: give at "
            "least one level, and seasons from 1968 (main), 1978 (challenger) or 1991 (futures) on."
        )
    return files


def fetch_atp_matches(
    *,
    levels: Sequence[str] = ("main", "challenger", "futures"),
    first_season: int = 1990,
    last_season: int = _LAST_SEASON,
    data_home: str | PathLike | None = None,
    download_if_missing: bool = True,
    n_retries: int = 3,
    delay: float = 1.0,
) -> Bunch:
    """Fetch men's tennis singles by date: by default 811,344 matches of 1990 to 2024.

    The files, one a level and season, are looked for in ``data_home`` and downloaded into it if
    they are not there. Their terms forbid commercial use.

    Parameters
    ----------
    levels : sequence of {"main", "challenger", "futures"}
        "main": main draws of the tour, Grand Slams and Davis Cup among them, from 1968;
        "challenger": challengers, and the tour's qualifying rounds, from 1978; "futures":
        satellites and futures, from 1991. Seasons before a level's first have none of it.
    first_season, last_season : int, default=1990 and 2024
        Seasons to read, 1968 to 2024. A season may begin in the December before.
    data_home : str, path-like or None, default=None
        Folder that holds the files or a folder ``tennis_atp`` with them; None: the folder
        ``skpref`` in scikit-learn's data home.
    download_if_missing : bool, default=True
        If False, missing files are an error.
    n_retries : int, default=3
        Attempts to download each file.
    delay : float, default=1.0
        Seconds between attempts.

    Returns
    -------
    data : Bunch
        X : ndarray of shape (n_matches, 2)
            Indices into ``player_names``. By date, within a date by round. Odd rows have the
            winner second.
        y : ndarray of shape (n_matches,)
            1 if the first player won, else 0.
        date : ndarray of shape (n_matches,) of datetime64[D]
            The first day of the tournament: the matches of a tournament share one.
        round : ndarray of shape (n_matches,)
            Index into ``round_names``, which are in the order of play.
        level, surface : ndarray of shape (n_matches,)
            Indices into ``level_names`` and ``surface_names``; the surface named "" is unknown.
        games : ndarray of int of shape (n_matches, 2)
            Games that the first and the second player won; few, or none, of a match that was not
            played to its end.
        tournament : ndarray of shape (n_matches,)
            Index into ``tournament_ids`` and ``tournament_names``: one a season.
        player_names, player_ids : list of str, ndarray of int
            By identifier in the source; two players may have one name.
        round_names, level_names, surface_names, tournament_ids, tournament_names : list of str
        DESCR : str
            Description, terms (CC BY-NC-SA 4.0), origin.

    Raises
    ------
    ValueError
        If ``levels``, a season, ``n_retries`` or ``delay`` is not one of those above, or if no
        level has the seasons.
    TypeError
        If a season or ``n_retries`` is no integer or ``delay`` no number.
    ImportError
        If files are to be downloaded and pooch is not installed.
    OSError
        If files are not there and cannot be downloaded, or if one has not the checksum of the
        version that is fetched. The message says what to put where.

    See Also
    --------
    load_football : Matches with draws and home advantage that come with the package.

    References
    ----------
    J. Sackmann, "Tennis databases, files, and algorithms", Tennis Abstract,
    https://github.com/JeffSackmann/tennis_atp.

    Examples
    --------
    >>> from skpref.datasets import fetch_atp_matches
    >>> tennis = fetch_atp_matches(levels=["main"], first_season=2024)  # doctest: +SKIP
    >>> tennis.X.shape  # doctest: +SKIP
    (3056, 2)
    """
    files = _season_files(levels, first_season, last_season)
    options = data_home, download_if_missing, n_retries, delay
    texts = fetch_texts(TENNIS, list(files), *options)
    matches = [match for name, text in texts.items() for match in _read_matches(text, files[name])]
    matches.sort(key=lambda match: match[:5])
    date, rounds, level, identifier, _, winner, loser, won, lost, surface, title, *games = (
        list(column) for column in zip(*matches, strict=True)
    )
    player_ids, shown = np.unique([winner, loser], return_inverse=True)
    tournament_ids, tournament = np.unique(identifier, return_inverse=True)
    names = dict(zip(winner + loser, won + lost, strict=True))
    titles = dict(zip(identifier, title, strict=True))
    X, y = balance_orientation(shown.reshape(2, -1).T)
    games_won = np.array(games).T  # of the winner, then of the loser
    games_won[y == 0] = games_won[y == 0, ::-1]
    return Bunch(
        X=X,
        y=y,
        date=np.array(date, dtype="datetime64[D]"),
        round=np.array(rounds),
        level=np.array(level),
        surface=np.array(surface),
        games=games_won,
        tournament=tournament,
        player_names=[names[k] for k in player_ids.tolist()],
        player_ids=player_ids,
        round_names=list(_ROUNDS),
        level_names=list(_LEVELS),
        surface_names=list(_SURFACES),
        tournament_ids=tournament_ids.tolist(),
        tournament_names=[titles[k] for k in tournament_ids.tolist()],
        DESCR=read_text("about-tennis.txt"),
    )
