"""A live board: which pairs to vote on next, and when to stop. Simulated votes, counted.

Utilities and votes are probit's: of a difference d the better one wins with probability Φ(d).

``--part ranks``: 100 competitors, utilities N(0, 0.5²), start with 2 000 uniform votes, or with
9 000 on 90 of them so that ten are new, and get 1 000 after 1 000 by one strategy. Mean length of
the 90 % rank intervals after each, and the share of them that hold the true rank.

``--part first``: 20 competitors, utilities N(0, 0.5²) whose first two are at least 0.15 apart.
Votes until `StoppingRule` names one at level 0.05, in batches of 100, each strategy on the same
competitors; at most 60 000 votes, which count where it is not settled then.

``--part peeking``: false "A is best" at level 0.05, looked at after every 100 votes, of
`StoppingRule` and of the rule "stop once the posterior probability of being best exceeds 0.95".
Truths are fixed (near ties, equal first two, spread) or drawn anew from the prior of the model.
Half of the votes are on the two that lead (by the evidence against them, or in the model), the
others uniform; at most 3 000. A statement is false if another is as good or better. Beside it the
share of tournaments settled, and the mean number of votes until then, those that are not settled
counted with all.

``--part five``: 40 competitors, utilities N(0, 1) in units of the noise, whose fifth and sixth are
at least 0.5 apart. Three judges vote in turn, with 0.7, 1 and 1.5 times that noise, which the model
is not told. All strategies start with a circle of the 40. Votes until each of the first five is
among the first five with a posterior probability of at least 0.95, looked at after every 50 votes;
at most 4 000, which count where it is not settled then. A statement is false if the five are
not the true first five. "ours" is `next_pairs` with the goal "members", and "ours, ranks" with its
default; "TrueSkill" asks about the competitor of the largest variance and the one that is closest
to it by TrueSkill's quality of a match, without ties and with its default variances (Herbrich et
al., NIPS 2006); "round robin" is every pair once, round by round, and so on.

Strategies: "uniform" pairs; "ours", `next_pairs`, with the goal of the part; "asap", expected
information gain on all utilities, pairs of a minimum spanning tree of its inverse, the model being
fitted after each tree (Mikhailiuk et al., ICPR 2021); "arena", at random in proportion to
√(v/n) − √(v/(n + 1)), with v = p(1 − p) and n the votes of the pair (Chiang et al., ICML 2024; p of
the pair's own votes, one added to wins and losses). Models are fitted with the true noise, by
Laplace.

    python benchmarks/leaderboard/live_board.py --part ranks|first|five|peeking [--repeats 20]
        [--simulations 2000]
"""

import argparse
import itertools
import sys
import time
from pathlib import Path

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.special import ndtr
from scipy.stats import norm

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.active import StoppingRule, all_pairs, bald, next_pairs
from skpref.inspection import leaderboard

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, few, report

LEVEL, SPREAD, BATCH = 0.05, 0.5, 100
# Votes that a board starts with, and how many of the 100 competitors they are on.
SETTINGS = {"2 000 votes": (2000, 100), "9 000 votes, ten newcomers": (9000, 90)}
STRATEGIES = ("uniform", "ours", "asap", "arena")


class Tournament:
    """Competitors, the votes so far, and the model of them."""

    def __init__(self, utility, rng, prior=SPREAD):
        self.utility, self._rng, self._prior = utility, rng, prior
        self.n = len(utility)
        self._table = ItemTable.from_names([f"model {i:03d}" for i in range(self.n)])
        self.pairs, self.won = np.zeros((0, 2), int), np.zeros(0, int)

    def vote(self, pairs):
        """Outcomes of votes on pairs, whose first is either with equal chances."""
        turn = self._rng.random(len(pairs)) < 0.5
        pairs = np.where(turn[:, None], pairs[:, ::-1], pairs)
        margin = self.utility[pairs[:, 0]] - self.utility[pairs[:, 1]]
        won = (self._rng.random(len(pairs)) < ndtr(margin)).astype(int)
        self.pairs, self.won = np.concatenate([self.pairs, pairs]), np.append(self.won, won)
        return pairs, won

    def uniform(self, n, among=None):
        """Pairs at random, of the first few competitors where ``among`` says how many."""
        among = self.n if among is None else among
        first = self._rng.integers(among, size=n)
        second = (first + self._rng.integers(1, among, size=n)) % among
        return np.stack([first, second], axis=1)

    def model(self):
        """The fit to all votes; the variance of utilities is 1, so the noise is relative to it."""
        model = PairwisePreferenceRegressor(
            items=self._table,
            noise_variance=0.5 / self._prior**2,
            optimizer=None,
            inference="laplace",
        )
        return model.fit(self.pairs, self.won)

    def chosen(self, strategy, n, **goal):
        """The next n pairs by a strategy; fewer of one that wants the votes first."""
        if strategy == "uniform":
            return self.uniform(n)
        if strategy == "arena":
            return self._arena(n)
        if strategy == "asap":
            return self._asap()[:n]
        plan = next_pairs(self.model(), n, **goal)
        return self._rng.permutation(np.repeat(plan.position, plan.votes, axis=0))

    def _asap(self):
        every = all_pairs(self.n)
        gain = np.maximum(bald(self.model().posterior_, every), 1e-12)
        cost = np.zeros((self.n, self.n))
        cost[every[:, 0], every[:, 1]] = 1.0 / gain
        tree = minimum_spanning_tree(cost).tocoo()
        return self._rng.permutation(np.stack([tree.row, tree.col], axis=1))

    def _arena(self, n):
        wins = np.zeros((self.n, self.n))
        best = np.where(self.won == 1, self.pairs[:, 0], self.pairs[:, 1])
        worst = np.where(self.won == 1, self.pairs[:, 1], self.pairs[:, 0])
        np.add.at(wins, (best, worst), 1.0)
        i, j = np.triu_indices(self.n, 1)
        votes = wins[i, j] + wins[j, i]
        rate = (wins[i, j] + 1.0) / (votes + 2.0)
        deviation, votes = np.sqrt(rate * (1.0 - rate)), np.maximum(votes, 1.0)
        share = deviation / np.sqrt(votes) - deviation / np.sqrt(votes + 1.0)
        at = self._rng.choice(len(i), size=n, p=share / share.sum())
        return np.stack([i[at], j[at]], axis=1)


def ranks(repeats):
    """Lengths of rank intervals after equally many votes."""
    found = {}
    for setting, seed in itertools.product(SETTINGS, range(repeats)):
        for strategy in STRATEGIES:
            rng = np.random.default_rng([1, seed])
            board = Tournament(SPREAD * rng.standard_normal(100), rng)
            board.vote(board.uniform(*SETTINGS[setting]))
            begun = len(board.won)
            for further in range(0, 5001, 1000):
                while len(board.won) < begun + further:
                    board.vote(board.chosen(strategy, begun + further - len(board.won)))
                table = leaderboard(board.model(), n_draws=4000, random_state=seed)
                true = 1 + np.argsort(np.argsort(-board.utility))[table.position]
                length = np.mean(table.rank_upper - table.rank_lower)
                held = np.mean((table.rank_lower <= true) & (true <= table.rank_upper))
                found.setdefault((setting, strategy, further), []).append((length, held))
    rows = []
    for (setting, strategy, further), values in found.items():
        length, held = np.array(values).T
        ratio = length / np.array(found[setting, "uniform", further])[:, 0]
        rows.append(
            {
                "start": setting,
                "strategy": strategy,
                "further_votes": further,
                "tournaments": repeats,
                "rank_interval": length.mean(),
                "of_uniform": ratio.mean(),
                "of_uniform_error": ratio.std() / np.sqrt(repeats),
                "held": held.mean(),
            }
        )
    return rows


def first_place(repeats, most=60_000):
    """Votes until the first place is settled."""
    found = {strategy: [] for strategy in STRATEGIES}
    for seed in range(repeats):
        for strategy in STRATEGIES:
            rng = np.random.default_rng([2, seed])
            while True:
                utility = SPREAD * rng.standard_normal(20)
                if np.diff(np.sort(utility)[-2:])[0] >= 0.15:
                    break
            board, rule = Tournament(utility, rng), StoppingRule(LEVEL, items=range(20))
            rule.update(*board.vote(board.uniform(400)))
            while not rule.settled and len(board.won) < most:
                until = len(board.won) + BATCH
                while len(board.won) < until:
                    pairs = board.chosen(strategy, until - len(board.won), goal="top", k=1)
                    rule.update(*board.vote(pairs))
            right = rule.settled and rule.best == np.argmax(utility)
            found[strategy].append((len(board.won), rule.settled, rule.settled and not right))
    rows = []
    for strategy, values in found.items():
        values = np.array(values, float)
        share = values[:, 0] / np.array(found["uniform"], float)[:, 0]
        rows.append(
            {
                "strategy": strategy,
                "tournaments": repeats,
                "votes": values[:, 0].mean(),
                "median": float(np.median(values[:, 0])),
                "of_uniform": values[:, 0].mean() / np.array(found["uniform"], float)[:, 0].mean(),
                "mean_share": share.mean(),
                "settled": values[:, 1].mean(),
                "false": values[:, 2].mean(),
            }
        )
    return rows


N_FIRST, N_LOOK = 5, 50
JUDGE_NOISE = np.array([0.7, 1.0, 1.5])


class JudgedTournament(Tournament):
    """Votes of judges in turn, of whom the model learns how reliable they are."""

    def vote(self, pairs):
        # Among two utilities noise of an item each.
        noise = np.sqrt(2.0) * JUDGE_NOISE[self._judges(len(pairs), len(self.won))]
        margin = (self.utility[pairs[:, 0]] - self.utility[pairs[:, 1]]) / noise
        won = (self._rng.random(len(pairs)) < ndtr(margin)).astype(int)
        self.pairs, self.won = np.concatenate([self.pairs, pairs]), np.append(self.won, won)
        return pairs, won

    def _judges(self, n, start=0):
        return (start + np.arange(n)) % len(JUDGE_NOISE)

    def model(self):
        model = PairwisePreferenceRegressor(
            items=self._table, noise_variance=1.0, optimizer=None, inference="laplace"
        )
        return model.fit(self.pairs, self.won, judges=self._judges(len(self.won)))


class TrueSkill:
    """Means and variances by duels without ties, and the closest pair of the least sure."""

    def __init__(self, n):
        self._mean, self._variance = np.zeros(n), np.ones(n)
        self._noise = 0.25  # β², with β half the prior's deviation, as by default

    def learn(self, pairs, won):
        for (a, b), first in zip(pairs, won, strict=True):
            winner, loser = (a, b) if first else (b, a)
            total = self._variance[winner] + self._variance[loser] + 2.0 * self._noise
            t = (self._mean[winner] - self._mean[loser]) / np.sqrt(total)
            v = np.exp(norm.logpdf(t) - norm.logcdf(t))
            for who, sign in ((winner, 1.0), (loser, -1.0)):
                share = self._variance[who] / total
                self._mean[who] += sign * share * np.sqrt(total) * v
                self._variance[who] *= 1.0 - share * v * (v + t)

    def pair(self):
        first = int(np.argmax(self._variance))
        total = self._variance[first] + self._variance + 2.0 * self._noise
        gap = self._mean[first] - self._mean
        quality = np.sqrt(2.0 * self._noise / total) * np.exp(-0.5 * gap**2 / total)
        quality[first] = -1.0
        return [first, int(np.argmax(quality))]


def round_robin(n):
    """All pairs of an even number of competitors, round by round (circle method)."""
    circle = np.arange(n)
    for _ in range(n - 1):
        yield from zip(circle[: n // 2], circle[: n // 2 - 1 : -1], strict=True)
        circle[1:] = np.roll(circle[1:], 1)


def first_five(repeats, most=4000):
    """Votes until the first five are settled."""
    strategies = ("uniform", "ours", "ours, ranks", "TrueSkill", "round robin")
    found = {strategy: [] for strategy in strategies}
    for seed in range(repeats):
        for strategy in strategies:
            rng = np.random.default_rng([4, seed])
            while True:
                utility = rng.standard_normal(40)
                if -np.diff(np.sort(utility)[::-1])[N_FIRST - 1] >= 0.5:
                    break
            found[strategy].append(_settle_five(utility, strategy, rng, most))
    uniform = np.array(found["uniform"], float)[:, 0]
    rows = []
    for strategy, values in found.items():
        votes, settled, false = np.array(values, float).T
        rows.append(
            {
                "strategy": strategy,
                "tournaments": repeats,
                "votes": votes.mean(),
                "median": float(np.median(votes)),
                "of_uniform": votes.mean() / uniform.mean(),
                "mean_share": (votes / uniform).mean(),
                "settled": settled.mean(),
                "false": false.mean(),
            }
        )
    return rows


def _settle_five(utility, strategy, rng, most):
    """Votes by one strategy, whether the first five are settled by them, and falsely so."""
    n = len(utility)
    board, skill = JudgedTournament(utility, rng), TrueSkill(n)
    rounds = itertools.cycle([list(pair) for pair in round_robin(n)])
    circle = rng.permutation(n)
    skill.learn(*board.vote(np.stack([circle, np.roll(circle, 1)], axis=1)))
    true = set(np.argsort(-utility)[:N_FIRST].tolist())
    while True:
        model = board.model()
        table = leaderboard(model, level=0.9, n_draws=2000, average=False)
        settled = bool((table.rank_upper[:N_FIRST] <= N_FIRST).all())
        if settled or len(board.won) >= most:
            return len(board.won), settled, settled and set(table.position[:N_FIRST]) != true
        if strategy == "TrueSkill":
            for _ in range(N_LOOK):
                skill.learn(*board.vote(np.array([skill.pair()])))
        elif strategy == "round robin":
            board.vote(np.array([next(rounds) for _ in range(N_LOOK)]))
        elif strategy == "uniform":
            board.vote(board.uniform(N_LOOK))
        else:
            goal = {"goal": "members", "k": N_FIRST} if strategy == "ours" else {}
            plan = next_pairs(model, N_LOOK, **goal)
            board.vote(rng.permutation(np.repeat(plan.position, plan.votes, axis=0)))


TRUTHS = {
    "two, equal": [0.0, 0.0],
    "two, 0.05 apart": [0.05, 0.0],
    "two, 0.2 apart": [0.2, 0.0],
    "six, first two equal": [0.0, 0.0, -0.4, -0.6, -0.8, -1.0],
    "six, first two 0.05 apart": [0.05, 0.0, -0.4, -0.6, -0.8, -1.0],
    "six, all equal": [0.0] * 6,
    "six, spread": [0.0, -0.4, -0.8, -1.2, -1.6, -2.0],
    "six, drawn from the prior": None,
}


def peeking(simulations, by_posterior, most=3000):
    """False statements when the board is looked at after every 100 votes."""
    rows = []
    for truth, utility in TRUTHS.items():
        for rule, repeats in (("stopping rule", simulations), ("posterior > 0.95", by_posterior)):
            start, found = time.process_time(), []
            for seed in range(repeats):
                found.append(_one(truth, utility, rule, seed, most))
            votes, settled, false = np.array(found, float).T
            rows.append(
                {
                    "truth": truth,
                    "rule": rule,
                    "simulations": repeats,
                    "false": false.mean(),
                    "false_error": np.sqrt(false.var() / repeats),
                    "settled": settled.mean(),
                    "votes": votes.mean(),
                    "seconds": time.process_time() - start,
                }
            )
            print(rows[-1], flush=True)
    return rows


def _one(truth, utility, rule, seed, most):
    rng = np.random.default_rng([3, seed])
    prior = SPREAD
    if utility is None:
        utility = prior * rng.standard_normal(6)
    utility = np.array(utility)
    board, test = Tournament(utility, rng, prior), StoppingRule(LEVEL, items=range(len(utility)))
    best = None
    lead = np.arange(2)
    while best is None and len(board.won) < most:
        pairs = board.uniform(BATCH)
        if len(utility) > 2:
            pairs[: BATCH // 2] = lead
            rng.shuffle(pairs)
        new = board.vote(pairs)
        if rule == "stopping rule":
            test.update(*new)
            best = test.best
            score = -test.e_values
        else:
            table = leaderboard(board.model(), n_draws=2000, random_state=seed)
            score = np.zeros(len(utility))
            score[table.position] = table.utility
            if table.probability_best.max() > 1.0 - LEVEL:
                best = int(table.position[np.argmax(table.probability_best)])
        lead = np.argsort(-score)[:2]
    single = np.sum(utility == utility.max()) == 1
    false = best is not None and not (single and best == np.argmax(utility))
    return len(board.won), best is not None, false


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=("ranks", "first", "five", "peeking"), required=True)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--by-posterior", type=int, default=300)
    options = parser.parse_args()
    parts = {
        "ranks": lambda: ranks(options.repeats),
        "first": lambda: first_place(options.repeats, few(60_000, 500)),
        "five": lambda: first_five(options.repeats, few(4000, 100)),
        "peeking": lambda: peeking(options.simulations, options.by_posterior),
    }
    rows = parts[options.part]()
    spread = 1.0 if options.part == "five" else SPREAD
    report(rows, RESULTS / f"live_board_{options.part}.csv", level=LEVEL, spread=spread)


if __name__ == "__main__":
    main()
