"""What the tests of sets and ties share: a taste, and judges who answer by it in many ways."""

import numpy as np

BEST = np.array([0.3, 0.6])


def taste(item):
    return -float(np.sum((np.asarray(item) - BEST) ** 2))


def ranking(items):
    """Positions, the best first."""
    return np.argsort([-taste(item) for item in items], kind="stable").tolist()


def said(items, way):
    """The arguments of `tell` for a set or duel, answered in one of the ways."""
    order = ranking(items)
    if way == "tie":
        near = abs(taste(items[0]) - taste(items[1])) < 0.02
        return {"outcome": "tie" if near else int(order[0] == 0)}
    return {
        "chosen": {"chosen": order[0]},
        "worst": {"worst": order[-1]},
        "both": {"chosen": order[0], "worst": order[-1]},
        "ranking": {"ranking": order},
        "top": {"ranking": order[:2]},
    }[way]


WAYS = ("chosen", "worst", "both", "ranking", "top")


def tell_sets(made, n, size=3, way="chosen"):
    """Ask and tell."""
    for _ in range(n):
        items = made.ask(size=size)
        made.tell(items, **said(items, way))
    return made
