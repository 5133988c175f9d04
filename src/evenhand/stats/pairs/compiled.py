"""Compile the kernels with numba, once: kernel modules are imported when first needed, never with the package."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

_Kernel = TypeVar("_Kernel", bound=Callable[..., object])
# Sums may be reordered and fused into vectors; square roots stay correctly rounded (no "afn").
_FAST = {"nnan", "ninf", "nsz", "arcp", "contract", "reassoc"}


def kernel(*, fast: bool = False) -> Callable[[_Kernel], _Kernel]:
    """Return a decorator that compiles a function for numbers and arrays, without the interpreter lock.

    The machine code is cached beside the module, or in the user's cache folder where the package is read-only;
    where neither can be written it is compiled again in each process.

    Parameters
    ----------
    fast
        Whether sums may be reordered, so that loops become vector instructions. Inputs must be finite.

    Examples
    --------
    >>> @kernel()
    ... def double(value: float) -> float:
    ...     return 2.0 * value
    >>> double(4.0)
    8.0
    """

    def decorate(function: _Kernel) -> _Kernel:
        math = _FAST if fast else False
        try:
            compiled = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=math)(function)
        except RuntimeError:  # numba: "cannot cache function: no locator available"
            compiled = numba.njit(nogil=True, error_model="numpy", fastmath=math)(function)
        return cast(_Kernel, compiled)

    return decorate
