"""Answers until the best is near, with the answers of earlier people and without them.

    python benchmarks/optimize/earlier.py [--tasks common groups unrelated rooms sushi]
        [--people 60] [--earlier 30] [--questions 30] [--asked optimizer] [--answers 40] [--seed 0]
        [--results FILE]

Tastes are bumps in three dimensions, whose centres differ between people: around one place
("common"), around four places ("groups"), or anywhere ("unrelated"). So many earlier people
answered 30 duels each, random ones or those of an optimizer of their own; each new person is asked
by an optimizer with their answers and by one without, of the same seed. Counted is the answers
until what is recommended is within 5 % of the range of the best (one more than the most, where it
never is). "rooms": one person, and the best light moves with five rooms; one optimizer that is
asked in each room by turns, until it was near there, against five optimizers. "sushi": ten kinds of
sushi, ranked by people; ranks from the best after 5 answers, and after 15 without earlier people.
Medians over the new people are in ``results/earlier.csv``.
"""

import argparse
import os
import sys
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy
    os.environ[variable] = "1"

import numpy as np

from skpref import PreferenceOptimizer
from skpref.data import ItemTable
from skpref.datasets import fetch_sushi

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, data_folder, report

TASKS = ["common", "groups", "unrelated", "rooms", "sushi"]
N_DIMENSIONS, WIDTH, SPREAD, NEAR = 3, 0.3, 0.05, 0.05
BOX = [(0.0, 1.0)] * N_DIMENSIONS
ROOMS = ["bath", "bed", "hall", "kitchen", "study"]


def bump(x, centre):
    """Utility of items (n, d)."""
    return np.exp(-0.5 * np.sum((np.asarray(x) - centre) ** 2, axis=-1) / WIDTH**2)


def shortfall(item, centre):
    """Return how far an item is from the best, as a share of the range."""
    corners = np.stack(np.meshgrid(*[[0.0, 1.0]] * len(centre)), axis=-1).reshape(-1, len(centre))
    return (1.0 - bump(item, centre)) / (1.0 - bump(corners, centre).min())


def draw_tastes(kind, n, rng):
    """Return the best items of n people, (n, d)."""
    if kind == "unrelated":
        return rng.uniform(0.1, 0.9, (n, N_DIMENSIONS))
    places = rng.uniform(0.2, 0.8, (1 if kind == "common" else 4, N_DIMENSIONS))
    own = SPREAD * rng.standard_normal((n, N_DIMENSIONS))
    return np.clip(places[rng.integers(len(places), size=n)] + own, 0.0, 1.0)


def earlier_answers(tastes, n_questions, asked, rng):
    """Return duels of people, and their answers, as ``earlier=`` takes them."""
    X = rng.random((len(tastes) * n_questions, 2, N_DIMENSIONS))
    users = np.repeat(np.arange(len(tastes)), n_questions)
    if asked == "optimizer":
        for person, centre in enumerate(tastes):
            optimizer = PreferenceOptimizer(BOX, random_state=1000 + person)
            optimizer.run(lambda a, b, c=centre: bump(a, c) > bump(b, c), n_duels=n_questions)
            X[users == person] = [duel for duel, _ in optimizer.history_]
    y = bump(X[:, 0], tastes[users]) > bump(X[:, 1], tastes[users])
    return {"X": X, "y": y.astype(int), "users": users}


def count_answers(optimizer, centre, most, has_prior):
    """Return the answers until what is recommended is near the best."""
    for n_answers in range(most + 1):
        if (n_answers or has_prior) and shortfall(optimizer.recommend(), centre) <= NEAR:
            return n_answers
        first, second = optimizer.ask()
        optimizer.tell((first, second), bool(bump(first, centre) > bump(second, centre)))
    return most + 1


def compare_people(kind, chosen, rng):
    """Return answers needed with earlier people and without, for each new person."""
    tastes = draw_tastes(kind, chosen.earlier + chosen.people, rng)
    answers = earlier_answers(tastes[: chosen.earlier], chosen.questions, chosen.asked, rng)
    rows = []
    for seed, centre in enumerate(tastes[chosen.earlier :]):
        pair = []
        for earlier in (answers, None):
            optimizer = PreferenceOptimizer(BOX, earlier=earlier, random_state=seed)
            pair.append(count_answers(optimizer, centre, chosen.answers, earlier is not None))
        rows.append(pair)
    return rows


def compare_rooms(chosen, rng):
    """Return answers needed in all rooms by one optimizer and by one for each room."""
    rows, space = [], {"room": ROOMS, "light": (0.0, 1.0), "warmth": (0.0, 1.0)}
    most = chosen.answers * len(ROOMS)
    for seed in range(chosen.people):
        start, step = rng.uniform(0.2, 0.4, 2), rng.uniform(-0.05, 0.1, 2)
        centres = {room: start + k * step for k, room in enumerate(ROOMS)}
        optimizer, open_rooms, together = PreferenceOptimizer(space, random_state=seed), ROOMS, 0
        while open_rooms and together < most:
            room = open_rooms[together % len(open_rooms)]
            duel = optimizer.ask(at={"room": room})
            first, second = (bump([i["light"], i["warmth"]], centres[room]) for i in duel)
            optimizer.tell(duel, bool(first > second))
            together += 1
            best = {each: optimizer.recommend(at={"room": each}) for each in open_rooms}
            open_rooms = [
                each
                for each, item in best.items()
                if shortfall([item["light"], item["warmth"]], centres[each]) > NEAR
            ]
        single = [
            count_answers(
                PreferenceOptimizer(BOX[:2], random_state=seed), centre, chosen.answers, False
            )
            for centre in centres.values()
        ]
        rows.append([together, sum(single)])
    return rows


def compare_sushi(chosen, rng):
    """Return ranks that the recommended sushi is from the best: after 5 answers, and 15 alone."""
    data = fetch_sushi(subset="a", data_home=data_folder(), download_if_missing=False)
    items = np.sort(data.rankings[0])
    names = [str(data.item_names[item]) for item in items]
    ranks = np.argsort(data.rankings, axis=1)  # of the items in their order
    people = rng.permutation(len(ranks))[: chosen.earlier + chosen.people]
    X, y, users = [], [], []
    for person in people[: chosen.earlier]:
        for _ in range(chosen.questions):
            first, second = rng.choice(len(names), 2, replace=False)
            X.append((names[first], names[second]))
            y.append(int(ranks[person, first] < ranks[person, second]))
            users.append(int(person))
    answers = {"X": X, "y": y, "users": users}
    rows = []
    for seed, person in enumerate(people[chosen.earlier :]):
        rank, pair = dict(zip(names, ranks[person], strict=True)), []
        for earlier, n_answers in ((answers, 5), (None, 15)):
            optimizer = PreferenceOptimizer(
                candidates=ItemTable.from_names(names), earlier=earlier, random_state=seed
            )
            optimizer.run(lambda a, b, rank=rank: rank[a] < rank[b], n_duels=n_answers)
            pair.append(int(rank[optimizer.recommend()]) - min(rank.values()))
        rows.append(pair)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=TASKS, choices=TASKS)
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--earlier", type=int, default=30)
    parser.add_argument("--questions", type=int, default=30)
    parser.add_argument("--answers", type=int, default=40)
    parser.add_argument("--asked", default="random", choices=["random", "optimizer"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", default=str(RESULTS / "earlier.csv"))
    chosen = parser.parse_args()
    rows = []
    for task in chosen.tasks:
        rng = np.random.default_rng([chosen.seed, TASKS.index(task)])
        if task == "rooms":
            pairs = compare_rooms(chosen, rng)
        elif task == "sushi":
            pairs = compare_sushi(chosen, rng)
        else:
            pairs = compare_people(task, chosen, rng)
        ours, alone = np.array(pairs).T
        unit = "ranks from the best" if task == "sushi" else "answers"
        row = {"task": task, "people": len(pairs), "unit": unit}
        row |= {"median": float(np.median(ours)), "median_alone": float(np.median(alone))}
        row |= {"mean": float(np.mean(ours)), "mean_alone": float(np.mean(alone))}
        rows.append(row)
        print(row, flush=True)
    report(rows, Path(chosen.results), arguments=vars(chosen))


if __name__ == "__main__":
    main()
