"""One fit of BoTorch's PairwiseGP on a problem file; prints a line of JSON.

Run by ``fit_speed.py`` in an environment that has botorch; nothing of this package is needed.
"""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import needs

needs("torch", "gpytorch", "botorch")
import torch
from botorch import __version__
from botorch.fit import fit_gpytorch_mll
from botorch.models.pairwise_gp import PairwiseGP, PairwiseLaplaceMarginalLogLikelihood
from gpytorch.kernels import RBFKernel, ScaleKernel
from scipy.special import ndtr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("problem", help="npz with W, L, test_a, test_b, test_y")
    parser.add_argument("--noise-variance", type=float, required=True)
    parser.add_argument("--learn", action="store_true")
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    warnings.simplefilter("ignore")
    data = np.load(options.problem)
    points = torch.tensor(np.concatenate([data["W"], data["L"]]))
    t, d = data["W"].shape
    comparisons = torch.stack([torch.arange(t), torch.arange(t, 2 * t)], dim=1)
    seconds = []
    for _ in range(options.repeats):
        start = time.perf_counter()
        if options.learn:
            model = PairwiseGP(points, comparisons)
            mll = PairwiseLaplaceMarginalLogLikelihood(model.likelihood, model)
            fit_gpytorch_mll(mll)
        else:
            # Its probit has unit noise on each utility: amplitude 1/σ² is noise σ² here.
            kernel = ScaleKernel(RBFKernel(ard_num_dims=d))
            kernel.base_kernel.lengthscale = 0.5
            kernel.outputscale = 1.0 / options.noise_variance
            model = PairwiseGP(points, comparisons, covar_module=kernel)
        model.eval()
        with torch.no_grad():
            model.posterior(points[:1])
        seconds.append(time.perf_counter() - start)
    with torch.no_grad():
        both = np.stack([data["test_a"], data["test_b"]], axis=1)
        posterior = model.posterior(torch.tensor(both))
        mean = posterior.mean.squeeze(-1).numpy()
        cov = posterior.distribution.covariance_matrix.numpy()
    variance = cov[:, 0, 0] + cov[:, 1, 1] - 2 * cov[:, 0, 1]
    p = ndtr((mean[:, 0] - mean[:, 1]) / np.sqrt(np.maximum(variance, 1e-300)))
    p = np.clip(np.where(data["test_y"] == 1, p, 1 - p), 1e-15, 1)
    result = {
        "seconds": seconds,
        "log_loss": float(-np.log(p).mean()),
        "accuracy": float(np.mean(p > 0.5)),
        "version": __version__,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
