"""A picture filter, judged on a web page
======================================

Tune an image filter on the page of Optuna Dashboard: click the worst of three pictures.

``python examples/judge_in_browser.py --page`` starts the page and says where it is. A click says
which picture is the worst; a new one takes its place. Pictures can be skipped, and answers taken
back under "Preferences (History)", the clock on the left. Everything is kept in the folder
``judge_run``: stop at any time (Ctrl-C), see the best setting so far, and start again to go on.
Options: ``--folder``, ``--port``.

Without ``--page`` a simulated judge compares with the undisturbed picture. The filter and the
picture are those of ``tune_image_filter.py``. Needs ``pip install "skpref[optuna,plot]"``.
"""

import argparse
import struct
import tempfile
import threading
import time
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import optuna
import optuna_dashboard
from optuna.artifacts import FileSystemArtifactStore, upload_artifact
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import TrialState
from optuna_dashboard.preferential import create_study
from tune_image_filter import SPACE, develop, disturbed, draw, error_of, picture, show_best

from skpref.integrations.optuna import PreferentialSampler

N_SHOWN = 3
N_SIMULATED = 12
NAME = "image filter"
# The user attribute of a trial under which the page finds its picture.
PICTURE = "picture"


def distribution(values):
    """An entry of the space in Optuna's words."""
    if isinstance(values, list):
        return CategoricalDistribution(values)
    whole = all(isinstance(end, int) for end in values)
    return (IntDistribution if whole else FloatDistribution)(*values)


def png(image, zoom=3):
    """A picture with values in [0, 1] as the bytes of a PNG file."""
    pixels = np.kron(np.rint(255.0 * image).astype(np.uint8), np.ones((zoom, zoom), np.uint8))
    height, width = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def open_study(folder, seed=None):
    """The study in a folder, begun or gone on with, and where its pictures are."""
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    study = create_study(
        n_generate=N_SHOWN,
        study_name=NAME,
        storage=f"sqlite:///{folder / 'study.db'}",
        sampler=PreferentialSampler(seed=seed),
        load_if_exists=True,
    )
    optuna_dashboard.register_preference_feedback_component(study, "artifact", PICTURE)
    return study, FileSystemArtifactStore(folder / "pictures")


def drop_unfinished(folder):
    """Tell trials whose picture was not drawn, as the program was stopped, as failed."""
    study = optuna.load_study(study_name=NAME, storage=f"sqlite:///{folder / 'study.db'}")
    for trial in study.get_trials(states=(TrialState.RUNNING,)):
        if PICTURE not in trial.user_attrs:
            study.tell(trial.number, state=TrialState.FAIL)


def draw_next(study, store, noisy):
    """One more trial with its picture, unless it is turned down or given up before it is drawn."""
    with tempfile.TemporaryDirectory() as folder, suppress(UpdateFinishedTrialError):
        trial = study.ask({name: distribution(values) for name, values in SPACE.items()})
        path = Path(folder) / f"{trial.number}.png"
        path.write_bytes(png(develop(noisy, trial.params)))
        made = upload_artifact(artifact_store=store, file_path=str(path), study_or_trial=trial)
        trial.set_user_attr(PICTURE, made)


def judged(study, store, noisy):
    """Draw what the page asks for until Ctrl-C, then say which setting is the best so far."""
    try:
        while True:
            while study.should_generate():
                draw_next(study, store, noisy)
            time.sleep(0.1)
    except KeyboardInterrupt:
        if not study.preferences:
            print("No answers yet.")
            return
        best = PreferentialSampler().recommend(study)
        print(f"The best so far is trial {best.number}: {best.params}")


def open_page(folder, port):
    """Optuna Dashboard, in the background."""
    storage = optuna.storages.RDBStorage(f"sqlite:///{folder / 'study.db'}")
    store = FileSystemArtifactStore(folder / "pictures")
    options = {"host": "127.0.0.1", "port": port, "artifact_store": store}
    run = optuna_dashboard.run_server
    threading.Thread(target=run, args=(storage,), kwargs=options, daemon=True).start()
    print(f"Judge at http://127.0.0.1:{port}/dashboard/studies/1 (Ctrl-C ends it).", flush=True)


def simulated(study, clean, noisy):
    """Say which of the pictures shown is farthest from the undisturbed one."""
    worse = {trial.number for _, trial in study.preferences}
    shown = [trial for trial in study.trials if trial.number not in worse]
    errors = [error_of(develop(noisy, trial.params), clean) for trial in shown]
    worst = shown.pop(int(np.argmax(errors)))
    study.report_preference(shown, worst)


def main():
    reader = argparse.ArgumentParser(description="A picture filter, judged on a web page.")
    reader.add_argument("--page", action="store_true", help="judge yourself, in a browser")
    reader.add_argument("--folder", type=Path, default=Path("judge_run"))
    reader.add_argument("--port", type=int, default=8080)
    chosen = reader.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    clean = picture()
    noisy = disturbed(clean, np.random.default_rng(0))
    if chosen.page:
        study, store = open_study(chosen.folder)
        drop_unfinished(chosen.folder)
        open_page(chosen.folder, chosen.port)
        judged(study, store, noisy)
        return
    with tempfile.TemporaryDirectory() as folder:
        study, store = open_study(Path(folder), seed=0)
        for _ in range(N_SIMULATED):
            while study.should_generate():
                draw_next(study, store, noisy)
            simulated(study, clean, noisy)
        print(f"Best after {N_SIMULATED} answers to {N_SHOWN} pictures:")
        best = PreferentialSampler().recommend(study).params
    show_best(best, noisy, clean)
    draw(develop(noisy, best), noisy, clean)


if __name__ == "__main__":
    main()
