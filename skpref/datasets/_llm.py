"""Duels of language models with judges and ties."""

import csv
import json

import numpy as np
from sklearn.utils import Bunch

from skpref._utils import check_choice
from skpref.datasets._files import bundled_path, read_integers, read_text

_JUDGE_COLUMN = {"gpt-3": 3, "gpt-4": 4}
_TIE = 2


def load_llm_duels(*, judge: str = "crowd", ties: bool = False) -> Bunch:
    """Load duels of 59 language models on 13 prompts (LLMFAO, 2023).

    The models have no features: use ``items=ItemTable.from_names(data.model_names)``, which
    makes the model a Bradley-Terry one. 39 % of the crowd's verdicts are ties.

    Parameters
    ----------
    judge : {"crowd", "gpt-3", "gpt-4"}, default="crowd"
        Whose verdicts: 124 crowd workers (8,931 verdicts) or one of two language models
        (2,139 each) on the same pairs of answers.
    ties : bool, default=False
        True: all verdicts in the order of the source, ties among them, for a model with
        ``tie_threshold``. False: ties are given apart from the decided duels.

    Returns
    -------
    data : Bunch
        X : ndarray of shape (n_duels, 2)
            Indices into ``model_names`` of the answers shown left (first) and right (second).
        y : ndarray of shape (n_duels,)
            1 if the left answer won, 0 if the right one did. With ``ties=True``: 1 if the left
            one won, 0 for a tie, -1 if the right one won.
        judge : ndarray of shape (n_duels,)
            Index of the worker; 0 throughout for "gpt-3" and "gpt-4".
        prompt : ndarray of shape (n_duels,)
            Index into ``prompts``.
        ties : ndarray of shape (n_ties, 2)
            Pairs judged equal. This and the next two are absent with ``ties=True``.
        tie_judge, tie_prompt : ndarray of shape (n_ties,)
        model_names, organisations : list of 59 str
            Models and those who made them.
        prompts, prompt_names : list of 13 str
            The text and a short name of each prompt.
        DESCR : str
            Description, origin, licence (CC BY 4.0).
        filename : str

    Raises
    ------
    ValueError
        If ``judge`` is unknown.
    TypeError
        If ``ties`` is neither True nor False.

    References
    ----------
    D. Ustalov, "Large Language Model Feedback Analysis and Optimization (LLMFAO)", 2023.

    Examples
    --------
    >>> from skpref.datasets import load_llm_duels
    >>> data = load_llm_duels()
    >>> data.X.shape, data.ties.shape, len(data.model_names)
    ((5460, 2), (3471, 2), 59)
    >>> data = load_llm_duels(ties=True)
    >>> data.X.shape, data.y[:6].tolist()
    ((8931, 2), [0, 0, -1, -1, -1, -1])
    """
    check_choice("judge", judge, ("crowd", *_JUDGE_COLUMN))
    if not isinstance(ties, (bool, np.bool_)):
        raise TypeError(f"ties must be True or False, got {ties!r}.")
    answers = read_integers("llmfao-pairs.csv.gz")
    filename = "llmfao-pairs.csv.gz"
    if judge == "crowd":
        filename = "llmfao-crowd.csv.gz"
        row, worker, verdict = read_integers(filename).T
    else:
        row = np.arange(len(answers))
        worker = np.zeros(len(answers), dtype=np.int64)
        verdict = answers[:, _JUDGE_COLUMN[judge]]

    prompt, shown = answers[row, 0], answers[row, 1:3]
    tie = verdict == _TIE
    if ties:
        y = np.where(tie, 0, 2 * verdict - 1)
        verdicts = {"X": shown, "y": y, "judge": worker, "prompt": prompt}
    else:
        verdicts = {
            "X": shown[~tie],
            "y": verdict[~tie],
            "judge": worker[~tie],
            "prompt": prompt[~tie],
            "ties": shown[tie],
            "tie_judge": worker[tie],
            "tie_prompt": prompt[tie],
        }
    models = list(csv.reader(read_text("llmfao-models.csv").splitlines()))[1:]
    prompts = json.loads(read_text("llmfao-prompts.json"))
    return Bunch(
        **verdicts,
        model_names=[model[0] for model in models],
        organisations=[model[1] for model in models],
        prompts=[entry["text"] for entry in prompts],
        prompt_names=[entry["slug"] for entry in prompts],
        DESCR=read_text("LLMFAO-NOTICE.txt"),
        filename=str(bundled_path(filename)),
    )
