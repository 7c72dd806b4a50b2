"""kickscore and TrueSkill Through Time one date ahead, in an environment of their own.

    python _peer_time.py PROBLEM.npz PROBABILITIES.npz '{"method": "kickscore", "kernel": "wiener"}'

Not to be run by hand: `strength_through_time.py` starts it. The problem has the arrays ``first``,
``second`` (positions of competitors), ``home`` (the first plays at home), ``outcome`` (1, 0, -1 as
seen from the first), ``day`` (in order), and ``n_train``. Matches from ``n_train`` on are predicted
one date ahead. Probabilities of (second wins, draw, first wins) are saved; the last line printed is
JSON with processor seconds, peak memory and version.
"""

import itertools
import json
import sys
import time
from importlib import metadata
from math import erf, sqrt
from pathlib import Path

import numpy as np

YEAR = 365.25
HOME = "home"


def peak():
    """Most memory of this process so far, in MiB.

    Not by ``getrusage``, which starts from the memory of the process that started this one.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return float("nan")


def blocks(day, start):
    """Pieces of one date each, from row ``start`` on."""
    cuts = start + np.flatnonzero(np.diff(day[start:])) + 1
    edges = [start, *cuts.tolist(), len(day)]
    return itertools.pairwise(edges)


def normal(x):
    """Distribution function of the standard normal."""
    return 0.5 * (1.0 + erf(x / sqrt(2.0)))


class Kickscore:
    """A kickscore model that takes in a date at a time.

    ``fit`` is kickscore's own. After a date only the answers of that date are visited by EP
    (``n_passes`` times) and only the chains of those who played are smoothed; ``sweep`` visits all.
    """

    def __init__(self, kernel, draws, home, n_passes=2, **settings):
        import kickscore as ks

        self.ks, self.kernel, self.draws, self.n_passes = ks, kernel, draws, n_passes
        self.settings = settings
        self.model = ks.TernaryModel(settings["margin"]) if draws else ks.BinaryModel()
        if home:
            self.model.add_item(HOME, ks.kernel.Constant(var=settings["home_variance"]))
        self.taken = 0

    def items(self, i, t):
        """Make the kernel of a competitor who has not been seen before ``t`` (years)."""
        if i in self.model.item:
            return
        kernels, s = self.ks.kernel, self.settings
        if self.kernel == "constant":
            kernel = kernels.Constant(var=s["variance"])
        elif self.kernel == "wiener":
            kernel = kernels.Wiener(var=s["drift"], t0=t, var_t0=s["variance"])
        elif self.kernel == "matern12":
            kernel = kernels.Constant(var=s["variance"])
            kernel += kernels.Exponential(var=s["moving"], lscale=s["lengthscale"])
        else:
            kernel = kernels.Affine(var_offset=s["variance"], var_slope=s["slope"], t0=t)
            kernel += kernels.Wiener(var=s["drift"], t0=t, var_t0=1e-4)
        self.model.add_item(i, kernel)

    def teams(self, a, b, home, t):
        """The two sides of a match, with the advantage of being at home."""
        self.items(a, t)
        self.items(b, t)
        return ([a, HOME] if home else [a]), [b]

    def observe(self, first, second, home, outcome, day):
        for a, b, at_home, y, d in zip(first, second, home, outcome, day, strict=True):
            t = d / YEAR
            one, two = self.teams(a, b, at_home, t)
            if y < 0:
                one, two = two, one
            if self.draws:
                self.model.observe(one, two, t=t, tie=bool(y == 0))
            else:
                self.model.observe(one, two, t=t)

    def predict(self, first, second, home, day):
        found = []
        for a, b, at_home, d in zip(first, second, home, day, strict=True):
            one, two = self.teams(a, b, at_home, d / YEAR)
            p = self.model.probabilities(one, two, t=d / YEAR)
            found.append((p[2], p[1], p[0]) if self.draws else (p[1], 0.0, p[0]))
        return found

    def fit(self, n_sweeps):
        done = self.model.fit(max_iter=n_sweeps)
        self.taken = len(self.model.observations)
        return done

    def take_in(self):
        """EP at the answers that are new."""
        new = self.model.observations[self.taken :]
        chains = {id(item): item.fitter for o in new for item in o._items}
        for chain in chains.values():
            chain.allocate()
            chain.fit()
        for _ in range(self.n_passes):
            for o in new:
                o.ep_update()
            for chain in chains.values():
                chain.fit()
        self.taken = len(self.model.observations)


class ThroughTime:
    """TrueSkill Through Time that takes in a date at a time.

    Dates are filtered forward as the package's ``History`` does when it is made; ``fit`` is
    its ``iteration``, which goes back and forth over all dates.
    """

    def __init__(self, draws, home, sigma, gamma, beta=1.0, p_draw=0.0, home_sigma=1.0):
        import trueskillthroughtime as ttt

        self.ttt, self.draws, self.beta = ttt, draws, beta
        self.p_draw = p_draw if draws else 0.0
        self.history = ttt.History([], sigma=sigma, beta=beta, gamma=gamma, p_draw=self.p_draw)
        self.history.time = True
        self.player = lambda: ttt.Player(ttt.Gaussian(0.0, sigma), beta, gamma)
        self.margin = ttt.compute_margin(self.p_draw, sqrt(2.0) * beta) if draws else 0.0
        if home:
            fixed = ttt.Player(ttt.Gaussian(0.0, home_sigma), 0.0, 0.0)
            self.history.agents[HOME] = ttt.Agent(fixed, ttt.Ninf, -ttt.inf)
        self.pending = None

    def agent(self, i):
        agents = self.history.agents
        if i not in agents:
            agents[i] = self.ttt.Agent(self.player(), self.ttt.Ninf, -self.ttt.inf)
        return agents[i]

    def observe(self, first, second, home, outcome, day):
        for start, stop in blocks(np.asarray(day), 0):
            rows = range(start, stop)
            composition, results = [], []
            for k in rows:
                self.agent(first[k]), self.agent(second[k])
                composition.append([[first[k], HOME] if home[k] else [first[k]], [second[k]]])
                y = outcome[k]
                results.append([1, 0] if y > 0 else [0, 1] if y < 0 else [0, 0])
            h, t = self.history, day[start]
            batch = self.ttt.Batch(composition, results, t, h.agents, h.p_draw)
            h.batches.append(batch)
            h.size += len(composition)
            self._pass_on(batch)

    def _pass_on(self, batch):
        for name in batch.skills:
            agent = self.history.agents[name]
            agent.last_time = batch.time
            agent.message = batch.forward_prior_out(name)

    def take_in(self):
        """Nothing: a date is filtered when it is observed."""

    def fit(self, n_sweeps):
        for _ in range(n_sweeps):
            self.history.iteration()
            self._pass_on(self.history.batches[-1])

    def predict(self, first, second, home, day):
        found = []
        for a, b, at_home, d in zip(first, second, home, day, strict=True):
            names = [(a, 1.0), (b, -1.0)] + ([(HOME, 1.0)] if at_home else [])
            mean, variance = 0.0, 0.0
            for name, sign in names:
                agent = self.agent(name)
                skill = agent.receive(self.ttt.compute_elapsed(agent.last_time, d))
                mean += sign * skill.mu
                variance += skill.sigma**2 + agent.player.beta**2
            scale = sqrt(variance)
            wins = normal((mean - self.margin) / scale)
            loses = normal((-mean - self.margin) / scale)
            found.append((loses, max(1.0 - wins - loses, 0.0), wins))
        return found


def main():
    problem, target, setting = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    data = np.load(problem)
    day, n_train = data["day"], int(data["n_train"])
    first, second = data["first"].tolist(), data["second"].tolist()
    home, outcome = data["home"].tolist(), data["outcome"].tolist()
    days = day.tolist()
    method, n_sweeps = setting.pop("method"), setting.pop("sweeps", 0)
    every, later_sweeps = setting.pop("every", np.inf), setting.pop("later_sweeps", 1)
    daily = setting.pop("daily", True)
    kind = {"kickscore": Kickscore, "trueskillthroughtime": ThroughTime}[method]
    draws = bool((data["outcome"] == 0).any())
    began = time.process_time()
    model = kind(draws=draws, home=bool(data["home"].any()), **setting)
    model.observe(*(a[:n_train] for a in (first, second, home, outcome, days)))
    if n_sweeps:
        model.fit(n_sweeps)
    learnt = time.process_time() - began
    probabilities, last = [], day[n_train - 1]
    for start, stop in blocks(day, n_train):
        rows = slice(start, stop)
        if days[start] - last >= every:
            model.fit(later_sweeps)
            last = days[start]
        part = [a[rows] for a in (first, second, home)]
        probabilities += model.predict(*part, days[rows])
        model.observe(*part, outcome[rows], days[rows])
        if daily:
            model.take_in()
    np.savez(target, probabilities=np.array(probabilities))
    print(
        json.dumps(
            {
                "learn s": learnt,
                "seconds": time.process_time() - began,
                "peak MiB": peak(),
                "version": metadata.version(method),
            }
        )
    )


if __name__ == "__main__":
    main()
