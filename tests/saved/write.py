"""Write fitted models of this version, which later versions must read: at each release.

    PYTHONPATH=. python tests/saved/write.py

writes tests/saved/VERSION/: of a few models a pickle, a file of arrays and what they said. Run it
with the oldest libraries that the version admits (.ci/oldest.txt), since pickles of newer ones need
not be readable by older ones. Until a version is released its files may be written anew.
"""

import pickle
import sys
from pathlib import Path

import joblib
import numpy as np
import scipy
import sklearn

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import saved_support  # noqa: E402

import skpref  # noqa: E402

CHOSEN = ("learned", "judges", "hmc", "stream", "names", "told later", "users by features")


def main():
    folder = HERE / skpref.__version__
    folder.mkdir(exist_ok=True)
    for name in CHOSEN:
        model = saved_support.MODELS[name]()
        stem = folder / name.replace(" ", "_")
        stem.with_suffix(".pickle").write_bytes(pickle.dumps(model, protocol=5))
        np.savez_compressed(stem.with_suffix(".npz"), **model.to_arrays())
        np.savez_compressed(f"{stem}_said.npz", *saved_support.answers(name, model, draws=False))
    libraries = (np, scipy, sklearn, joblib)
    versions = "".join(f"{each.__name__}=={each.__version__}\n" for each in libraries)
    (folder / "versions.txt").write_text(versions, encoding="utf-8")


if __name__ == "__main__":
    main()
