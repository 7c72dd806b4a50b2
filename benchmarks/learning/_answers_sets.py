"""Tasks of ``answers.py``: real answers with ties, and rankings, split into training and test."""

from typing import NamedTuple

import numpy as np
from _tied_bradley_terry import Matches
from common import data_folder
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit

from skpref.datasets import fetch_sushi, load_football, load_llm_duels

CUTS = ("2022-07-20", "2023-07-20", "2024-07-20", "2025-07-20")
N_SHOWN = (3, 4)


class TiedSplit(NamedTuple):
    """Answers of three outcomes. ``inner``: pairs of training rows to choose a penalty by.

    ``where``: what each training and test answer was about, such as its prompt; None: there is no
    such thing.
    """

    names: list
    train: Matches
    test: Matches
    inner: list
    where: tuple | None = None


class RankingSplit(NamedTuple):
    """Rankings (n, 10) of ``train``; ``test``: size of the set -> (shown (n, k), best (n,)).

    ``best`` is the position in ``shown`` of the item that its person ranks first among them.
    """

    table: np.ndarray
    train: np.ndarray
    test: dict
    inner: list


def llm_random(n_splits=5):
    """Verdicts of the crowd, four fifths of them for training."""
    data = load_llm_duels(ties=True)
    every = Matches(data.X, np.ones(len(data.y), dtype=np.int8), data.y)
    for seed in range(n_splits):
        folds = ShuffleSplit(1, test_size=0.2, random_state=seed)
        train, test = next(folds.split(data.X))
        inner = KFold(5, shuffle=True, random_state=0).split(train)
        yield (
            f"seed {seed}",
            TiedSplit(
                data.model_names,
                every.take(train),
                every.take(test),
                list(inner),
                (data.prompt[train], data.prompt[test]),
            ),
        )


def llm_prompts(n_splits=13):
    """Verdicts of the crowd, one prompt left out; penalties are chosen by prompts too."""
    data = load_llm_duels(ties=True)
    every = Matches(data.X, np.ones(len(data.y), dtype=np.int8), data.y)
    for prompt in range(13)[:n_splits]:
        train, test = np.flatnonzero(data.prompt != prompt), np.flatnonzero(data.prompt == prompt)
        inner = GroupKFold(4).split(train, groups=data.prompt[train])
        yield (
            data.prompt_names[prompt],
            TiedSplit(
                data.model_names,
                every.take(train),
                every.take(test),
                list(inner),
                (data.prompt[train], data.prompt[test]),
            ),
        )


def football(n_splits=4):
    """All matches before a day for training, those of the year after for the test.

    Penalties are chosen by the last year before the day.
    """
    data = load_football()
    every = Matches(data.X, data.order, data.y)
    year = np.timedelta64(365, "D")
    for text in CUTS[::-1][:n_splits]:
        cut = np.datetime64(text)
        past = data.date < cut
        train = np.flatnonzero(past)
        late = data.date[train] >= cut - year
        inner = [(np.flatnonzero(~late), np.flatnonzero(late))]
        test = np.flatnonzero(~past & (data.date < cut + year))
        yield f"from {text}", TiedSplit(data.team_names, every.take(train), every.take(test), inner)


def sushi(subset, n_people, n_splits=5):
    """Rankings of some people; of everybody else one set of three and one of four of their ten."""
    data = fetch_sushi(subset=subset, data_home=data_folder(), download_if_missing=False)
    for seed in range(n_splits):
        rng = np.random.default_rng(seed)
        people = rng.permutation(len(data.rankings))
        train, others = data.rankings[people[:n_people]], data.rankings[people[n_people:]]
        test = {}
        for k in N_SHOWN:
            places = rng.permuted(np.tile(np.arange(10), (len(others), 1)), axis=1)[:, :k]
            test[k] = np.take_along_axis(others, places, axis=1), places.argmin(axis=1)
        inner = KFold(min(5, n_people), shuffle=True, random_state=0).split(train)
        yield f"seed {seed}", RankingSplit(data.item_table, train, test, list(inner))


TIED = {"llm, at random": llm_random, "llm, by prompt": llm_prompts, "football": football}
