"""Convincingness of arguments: duels of texts."""

import re
from collections.abc import Sequence

import numpy as np
from sklearn.utils import Bunch

from skpref._utils import check_choice, check_number
from skpref.datasets._files import bundled_path, read_integers, read_text


def _topic_indices(topics, names):
    """Return the indices of topics; ValueError or TypeError for topics that are not there."""
    if isinstance(topics, (str, bytes)) or np.ndim(topics) != 1 or len(topics) == 0:
        raise ValueError(
            f"topics={topics!r}: give a list of one or more topic names or indices, or None."
        )
    chosen = set()
    for topic in topics:
        if isinstance(topic, str):
            chosen.add(names.index(check_choice("topics", topic, names)))
        else:
            last = len(names) - 1
            chosen.add(int(check_number("topics", topic, low=0, high=last, integer=True)))
    return np.array(sorted(chosen))


def load_convincing_arguments(*, topics: Sequence[str | int] | None = None) -> Bunch:
    """Load which of two arguments for one side of a debate convinces more (UKPConvArg1).

    11,650 duels of 1,052 short English texts on 32 topics, each outcome agreed on by crowd
    workers. The first and second place are those of the source; the first won 5,872 times.

    Parameters
    ----------
    topics : list of str or int, or None, default=None
        Topics to keep, by name or by index into the names of all 32; None: all. Texts, pairs
        and topics are renumbered to those kept, in the order of the source.

    Returns
    -------
    data : Bunch
        X : ndarray of shape (n_duels, 2) of str
            Text duels, for a text pipeline under ``skpref.preprocessing.Itemwise``.
        y : ndarray of shape (n_duels,)
            1 if the first text is the more convincing, else 0.
        texts : ndarray of shape (n_texts,) of str
            Line breaks are ``"\\n"``. 13 texts occur more than once, under different ids.
        pairs : ndarray of shape (n_duels, 2)
            Indices into ``texts`` that make up ``X``.
        topic : ndarray of shape (n_duels,)
            Index into ``topic_names``: serves as ``groups`` of ``LeaveOneGroupOut``.
        topic_names : list of str
            Debate and stance.
        text_topic : ndarray of shape (n_texts,)
        rank : ndarray of shape (n_texts,)
            PageRank score within the topic: **lower** is more convincing. Derived from the
            duels, hence no feature to predict them with.
        ids : ndarray of shape (n_texts,) of str
            Identifiers in the source.
        DESCR : str
            Description, origin, licence (CC BY 4.0).
        filename : str

    Raises
    ------
    ValueError
        If a topic is unknown.
    TypeError
        If a topic is neither a text nor an integer.

    References
    ----------
    I. Habernal and I. Gurevych, "Which argument is more convincing?", ACL 2016.

    Examples
    --------
    >>> from skpref.datasets import load_convincing_arguments
    >>> data = load_convincing_arguments(topics=["tv-is-better-than-books_tv"])
    >>> data.X.shape[1], sorted(set(data.y.tolist())), data.topic_names
    (2, [0, 1], ['tv-is-better-than-books_tv'])
    """
    lines = read_text("ukpconvarg1-texts.tsv.gz").rstrip("\n").split("\n")[1:]
    fields = (line.split("\t") for line in lines)
    listed_ids, slugs, ranks, raw_texts = zip(*fields, strict=True)
    topic_names = sorted(set(slugs))
    number = {name: k for k, name in enumerate(topic_names)}
    text_topic = np.array([number[name] for name in slugs])
    ids = np.array(listed_ids, dtype=object)
    rank = np.array(ranks, dtype=np.float64)
    texts = np.array([re.sub(r" *<br/> *", "\n", text) for text in raw_texts], dtype=object)
    table = read_integers("ukpconvarg1-pairs.csv.gz")
    pairs, y = table[:, :2], table[:, 2]

    if topics is not None:
        chosen = _topic_indices(topics, topic_names)
        in_topics = np.isin(text_topic, chosen)
        duels = in_topics[pairs[:, 0]]  # both texts of a duel belong to one topic
        pairs, y = (np.cumsum(in_topics) - 1)[pairs[duels]], y[duels]
        ids, rank, texts = ids[in_topics], rank[in_topics], texts[in_topics]
        text_topic = np.searchsorted(chosen, text_topic[in_topics])
        topic_names = [topic_names[k] for k in chosen]
    return Bunch(
        X=texts[pairs],
        y=y.copy(),
        texts=texts,
        pairs=pairs.copy(),
        topic=text_topic[pairs[:, 0]],
        topic_names=topic_names,
        text_topic=text_topic,
        rank=rank,
        ids=ids,
        DESCR=read_text("UKPCONVARG1-NOTICE.txt"),
        filename=str(bundled_path("ukpconvarg1-texts.tsv.gz")),
    )
