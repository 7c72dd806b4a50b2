"""Environments in which the numerical libraries run their code for other processors.

One line each, of tab-separated ``NAME=value`` for ``env``: OpenBLAS's kernels of three generations
with numpy's loops of the same age. What the running processor or numpy's build does not know is
left out, as numpy refuses to start where a feature of its own baseline is to be disabled.

    python tests/processors.py
"""

from numpy._core import _multiarray_umath as umath

_AVX512 = ("AVX512", "X86_V4")
_AVX2 = ("AVX2", "FMA3", "X86_V3")
# Name to OpenBLAS, what the processor must have to run it, what numpy must do without.
_GENERATIONS = (
    ("Nehalem", "SSE42", _AVX512 + _AVX2),
    ("Sandybridge", "AVX", _AVX512 + _AVX2),
    ("Haswell", "AVX2", _AVX512),
)


def environments() -> list[dict[str, str]]:
    """What to set for each generation that can run here; none on other architectures."""
    has = umath.__cpu_features__
    can = [name for name in umath.__cpu_dispatch__ if has.get(name)]
    made = []
    for core, needed, without in _GENERATIONS:
        if has.get(needed):
            disabled = " ".join(name for name in can if name.startswith(without))
            made.append({"OPENBLAS_CORETYPE": core, "NPY_DISABLE_CPU_FEATURES": disabled})
    return made


if __name__ == "__main__":
    for environment in environments():
        print("\t".join(f"{name}={value}" for name, value in environment.items()))
