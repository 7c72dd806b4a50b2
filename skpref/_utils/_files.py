"""Files that are replaced whole."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


def replace_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files whole, then give all their names at once: what was there is whole until then.

    A name that is a symbolic link becomes a file; what it leads to stays as it is.
    """
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        for name, content in files.items():
            with Path(scratch, name).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())  # a full disk may say so only now
        for name in files:
            os.replace(Path(scratch, name), folder / name)
