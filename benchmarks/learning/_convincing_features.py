"""Numbers that stand for arguments: what their words are about, and how they are written."""

import re

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import StandardScaler

WRITING = (
    "log characters",
    "log words",
    "log sentences",
    "letters a word",
    "share of distinct words",
    "share of long words",
    "share of capitals",
    "commas a word",
    "exclamation marks a sentence",
    "question marks a sentence",
    "share of first and second person",
    "log oddities of spelling",
)
# Deviations from the mean at which numbers are cut: one text's letters a word are 25 of them off.
_FAR = 3.0
_PERSON = {"i", "me", "my", "mine", "you", "your", "yours", "we", "us", "our", "u", "im"}


def writing(text):
    """How a text is written, one number for each of ``WRITING``."""
    words = re.findall(r"[A-Za-z']+", text) or ["a"]
    low = [word.lower() for word in words]
    sentences = max(len(re.findall(r"[.!?]+(?:\s|$)", text)), 1)
    letters = max(sum(map(str.isalpha, text)), 1)
    odd = len(re.findall(r"[.!?,]{2,}|\b[b-hj-z]\b|[a-z][.!?,][A-Za-z]", text))
    odd += len(re.findall(r"(?:^|[.!?]\s+)[a-z]", text))  # sentences that begin small
    return [
        np.log1p(len(text)),
        np.log1p(len(words)),
        np.log(sentences),
        sum(map(len, words)) / len(words),
        len(set(low)) / len(low),
        np.mean([len(word) > 6 for word in words]),
        sum(map(str.isupper, text)) / letters,
        text.count(",") / len(words),
        text.count("!") / sentences,
        text.count("?") / sentences,
        np.mean([word in _PERSON for word in low]),
        np.log1p(odd),
    ]


def features(texts, known, n_words, seed=0):
    """All texts as rows of standardised numbers within ±3, learned from the known ones alone.

    Parameters
    ----------
    texts : ndarray of str
    known : ndarray of bool
        Texts of topics that may be seen.
    n_words : int
        Components of TF-IDF, by a truncated SVD.
    """
    vectors = TfidfVectorizer(sublinear_tf=True, min_df=3, stop_words="english")
    counts = vectors.fit(texts[known]).transform(texts)
    topics = TruncatedSVD(n_words, random_state=seed).fit(counts[known]).transform(counts)
    rows = np.hstack([np.array([writing(text) for text in texts]), topics])
    return np.clip(StandardScaler().fit(rows[known]).transform(rows), -_FAR, _FAR)
