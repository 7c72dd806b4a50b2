"""Files that come with the package."""

import gzip
from importlib import resources
from importlib.resources.abc import Traversable

import numpy as np


def bundled_path(name: str) -> Traversable:
    """Path of a file in ``skpref/datasets/data``."""
    return resources.files(__package__).joinpath("data", name)


def read_text(name: str) -> str:
    """Text of a bundled file, unpacked if its name ends in ``.gz``."""
    content = bundled_path(name).read_bytes()
    if name.endswith(".gz"):
        content = gzip.decompress(content)
    return content.decode("utf-8").replace("\r\n", "\n")  # a checkout may change line ends


def read_integers(name: str) -> np.ndarray:
    """Integer table of a bundled CSV file without its header line, ``(n_rows, n_columns)``."""
    header, _, body = read_text(name).partition("\n")
    values = np.array(body.replace(",", " ").split(), dtype=np.int64)
    return values.reshape(-1, header.count(",") + 1)
