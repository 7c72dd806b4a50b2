"""A notebook of some cells, opened and run in JupyterLab in a headless browser."""

import contextlib
import json
import os
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from browser_support import free_port, open_page, served

ROOT = Path(__file__).resolve().parent.parent
# A page that asks for news would wait for a network.
_DISABLED = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}


class Lab:
    """JupyterLab with one notebook, in a page of a browser."""

    def __init__(self, page, address: str):
        self.page, self._address = page, address

    def open(self, name: str = "judge.ipynb") -> None:
        """Open the notebook anew, its outputs as they were saved."""
        self.page.goto(f"{self._address}/lab/tree/{name}?reset")
        self.page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=60_000)
        self.page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=60_000)

    def run_all(self) -> None:
        """Run every cell, by the menu."""
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_text("Run All Cells", exact=True).click()

    def kernels(self) -> list[str]:
        """Ids of the kernels that run."""
        with urllib.request.urlopen(f"{self._address}/api/kernels", timeout=20) as answer:
            return [each["id"] for each in json.load(answer)]

    def end_kernels(self) -> None:
        """End them, as when the machine is switched off."""
        for kernel in self.kernels():
            request = urllib.request.Request(
                f"{self._address}/api/kernels/{kernel}", method="DELETE"
            )
            urllib.request.urlopen(request, timeout=20).close()


@contextlib.contextmanager
def notebook(folder: Path, cells: Sequence[str], width: int = 1280, height: int = 900) -> Iterator:
    """A `Lab` with a notebook of these cells, not yet run; skips where there is no JupyterLab."""
    pytest.importorskip("jupyterlab")
    nbformat = pytest.importorskip("nbformat")
    work, config = folder / "work", folder / "config"
    work.mkdir()
    (config / "labconfig").mkdir(parents=True)
    (config / "labconfig" / "page_config.json").write_text(json.dumps(_DISABLED), "utf-8")
    made = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    nbformat.write(made, work / "judge.ipynb")
    port = free_port()
    options = ["ip=127.0.0.1", f"port={port}", "token=", "password=", "disable_check_xsrf=True"]
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += [f"--ServerApp.{option}" for option in options]
    command += [f"--ServerApp.root_dir={work}"]
    own = {"JUPYTER_CONFIG_DIR": config, "IPYTHONDIR": folder / "ipython"}
    own |= {f"JUPYTER_{name}_DIR": folder / name.lower() for name in ("DATA", "RUNTIME")}
    own |= {"JUPYTERLAB_WORKSPACES_DIR": folder / "workspaces"}
    own |= {"JUPYTERLAB_SETTINGS_DIR": folder / "settings", "PYTHONPATH": ROOT}
    environment = {**os.environ, **{name: str(value) for name, value in own.items()}}
    address = f"http://127.0.0.1:{port}"
    log = folder / "lab.log"
    with (
        served(command, f"{address}/api", log, environment=environment),
        open_page(width, height) as page,
    ):
        lab = Lab(page, address)
        try:
            lab.open()
            yield lab
        finally:
            lab.end_kernels()
