"""Exact sums over all pairs of people on an NVIDIA graphics card, using only NumPy and CuPy.

The sums are the same as in `exact.tile_sums`: each person's sum of v_j max(0, D_ij - d_ij) over all other people j, and
the weight of the pairs with D > d. One launch processes many lots of people (models, weights of effort). ScoredPeople
are sorted along a Morton curve, so that neighbours in space are neighbours in memory. A block of 256 threads compares a
strip of 256 people (128 in double precision) with up to 64 blocks of 128 others, 16 people (8) of the strip in the
registers of each thread, and skips blocks whose scores differ by less than their distance. Each pair is computed once,
for both.

Sums are bit-identical in every run: within a thread block they have a fixed order, and between them they are added as
integers (a power of two of the sum, in 64 bits), whose order does not matter. There are no atomic additions of floats.

Precision: sums of up to some hundred pairs in single precision, all others in 64-bit integers; `precise` uses double
precision throughout. The single-precision root is the card's instruction (`sqrt.approx`, within 1 unit in the last
place), and max(0, x) is its saturation to [0, 1], which is valid because scores are in [0, 1].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil, log2
from types import ModuleType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mode = Literal["rows", "total", "largest"]
BLOCK = 128  # people in a block of columns
LANES = 16  # rows and columns of threads in a thread block
CHUNK = 64  # blocks of columns that a thread block takes
_LAUNCH_PAIRS = 2 * 10**12  # a launch takes a second or less, the delay of Ctrl-C
_BITS = 10  # bits of the Morton code for each axis
_MODES: dict[Mode, int] = {"rows": 0, "total": 1, "largest": 2}


class Lot(NamedTuple):
    """Coordinates with Euclidean or city-block distances, scores and weights of people whose pairs are compared."""

    u: Floats
    v: Floats
    score: Floats
    weight: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class CardPlan:
    """Sorted lots, padded to whole strips and stored consecutively on the card.

    Attributes
    ----------
    orders
        The person at each position of a lot, without padding.
    people
        (places, 4) u, v, score and weight; padding has a score of nan and weight 0.
    boxes
        (blocks, 6) the lowest u, v and score of each block of columns, then the highest.
    start
        (lots + 1,) the block at which each lot starts.
    scales
        (lots, 2) the factors of row sums and totals before conversion to integers; powers of two.
    diamond, precise, unit_weights
        Whether distances are city-block; whether numbers are float64; whether all weights are 1.
    """

    orders: list[Any]
    people: Any
    boxes: Any
    start: NDArray[np.int64]
    scales: Floats
    diamond: bool
    precise: bool
    unit_weights: bool

    @property
    def rows(self) -> int:
        """The number of people of a strip that each thread processes."""
        return 8 if self.precise else 16

    @property
    def per_strip(self) -> int:
        """The number of column blocks in a strip."""
        return self.rows * LANES // BLOCK


def why_not() -> str | None:
    """Return the reason no card can be used, or None if one can."""
    try:
        import cupy
    except ImportError:
        return "CuPy is not installed"
    except Exception as error:  # a broken installation may raise anything
        return f"CuPy cannot be loaded ({type(error).__name__})"
    try:
        return None if cupy.cuda.runtime.getDeviceCount() > 0 else "there is no NVIDIA graphics card"
    except Exception:  # no driver, or one that is too old
        return "no NVIDIA graphics card answers"


def describe() -> str:
    """Return the name of the card."""
    properties = _xp().cuda.runtime.getDeviceProperties(0)
    return str(properties["name"].decode())


def row_sums(
    lots: Sequence[Lot], *, diamond: bool, precise: bool, progress: Callable[[int, int], None] | None = None
) -> list[tuple[Floats, float]]:
    """Return, for each lot, each person's sum of v_j max(0, D_ij - d_ij) and the weight of pairs with D > d."""
    plan = plan_lots(lots, diamond=diamond, precise=precise)
    sums, totals = _launch(plan, "rows", progress)
    return [
        (_unsorted(plan, number, sums) / plan.scales[number, 0], float(totals[number]) / plan.scales[number, 1])
        for number in range(len(lots))
    ]


def totals(
    lots: Sequence[Lot], *, diamond: bool, precise: bool, progress: Callable[[int, int], None] | None = None
) -> list[float]:
    """Return, for each lot, the sum of v_i v_j max(0, D_ij - d_ij) over all pairs."""
    plan = plan_lots(lots, diamond=diamond, precise=precise)
    _, sums = _launch(plan, "total", progress)
    return [float(number) / scale for number, scale in zip(sums, plan.scales[:, 1], strict=True)]


def largest(lots: Sequence[Lot], *, diamond: bool, precise: bool) -> list[Floats]:
    """Return, for each lot, each person's largest D_ij - d_ij, at least 0."""
    plan = plan_lots(lots, diamond=diamond, precise=precise)
    bits, _ = _launch(plan, "largest", None)
    return [_unsorted(plan, number, bits).view(np.float64) for number in range(len(lots))]


def _unsorted(plan: CardPlan, number: int, sorted_values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the results for one lot's people in their original order."""
    order = _host(plan.orders[number])
    result = np.empty(order.size, dtype=sorted_values.dtype)
    first = plan.start[number] * BLOCK
    result[order] = sorted_values[first : first + order.size]
    return result


def plan_lots(lots: Sequence[Lot], *, diamond: bool, precise: bool) -> CardPlan:
    """Return the lots in the card's memory format."""
    xp, kind = _xp(), np.float64 if precise else np.float32
    strip = (8 if precise else 16) * LANES
    orders, parts, boxes, start, scales = [], [], [], [0], []
    for lot in lots:
        rows = xp.asarray(np.stack(lot, axis=1).astype(kind))
        order = _morton_order(xp, rows[:, :3])
        padding = -len(rows) % strip
        padded = rows[xp.concatenate([order, xp.repeat(order[-1:], padding)])]
        boxed = padded[:, :3].reshape(-1, BLOCK, 3)
        boxes.append(xp.concatenate([boxed.min(axis=1), boxed.max(axis=1)], axis=1))
        padded[len(rows) :, 2:] = xp.asarray([np.nan, 0.0])  # saturation turns nan into 0
        orders.append(order)
        parts.append(padded)
        start.append(start[-1] + len(padded) // BLOCK)
        total_weight = max(float(lot.weight.sum()), 1.0)
        scales.append([2.0 ** (61 - ceil(log2(total_weight))), 2.0 ** (61 - ceil(2.0 * log2(total_weight)))])
    unit_weights = all(bool((lot.weight == 1.0).all()) for lot in lots)
    sorted_people, boxed = xp.concatenate(parts), xp.concatenate(boxes)
    return CardPlan(
        orders=orders,
        people=sorted_people,
        boxes=boxed,
        start=np.array(start, dtype=np.int64),
        scales=np.array(scales),
        diamond=diamond,
        precise=precise,
        unit_weights=unit_weights,
    )


def _morton_order(xp: ModuleType, points: Any) -> Any:
    """Return the order of points (n, 3) along a Morton curve; points in the same cell keep their order."""
    low, high = points.min(axis=0), points.max(axis=0)
    wide = xp.where(high > low, high - low, 1)
    cells = ((points - low) / wide * (2**_BITS - 1)).astype(np.uint64)
    key = xp.zeros(len(points), dtype=np.uint64)
    for bit in range(_BITS):
        for axis in range(3):
            key |= ((cells[:, axis] >> np.uint64(bit)) & np.uint64(1)) << np.uint64(3 * bit + axis)
    places = xp.sort((key << np.uint64(32)) | xp.arange(len(points), dtype=np.uint64))  # all are distinct
    return (places & np.uint64(2**32 - 1)).astype(np.int64)


def _launch(
    plan: CardPlan, mode: Mode, progress: Callable[[int, int], None] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Run the kernel over all strips and return integer sums by position and by lot."""
    xp = _xp()
    kernel = _kernel(plan.precise, plan.diamond, plan.unit_weights, _MODES[mode])
    blocks = np.diff(plan.start)
    sums = xp.zeros(len(plan.people), dtype=np.int64)
    totals = xp.zeros(len(blocks), dtype=np.int64)
    start, scales = xp.asarray(plan.start), xp.asarray(plan.scales)
    longest = int(blocks.max())
    strips, chunks = longest // plan.per_strip, -(-longest // CHUNK)
    pairs = float(np.sum((blocks * float(BLOCK)) ** 2)) / 2.0
    step = max(1, int(strips * min(1.0, _LAUNCH_PAIRS / pairs)))
    for first in range(0, strips, step):
        grid = (min(step, strips - first), chunks, len(blocks))
        kernel(grid, (LANES * LANES,), (plan.people, plan.boxes, start, scales, np.int32(first), sums, totals))
        if progress is not None:
            xp.cuda.get_current_stream().synchronize()
            remaining = 1.0 - min(strips, first + step) / strips
            progress(int(pairs * (1.0 - remaining * remaining)), int(pairs))
    return _host(sums), _host(totals)


def _xp() -> ModuleType:
    """Return CuPy; tests without a card substitute NumPy."""
    import cupy

    module: ModuleType = cupy
    return module


def _host(array: object) -> NDArray[Any]:
    """Return an array from the card as a NumPy array."""
    return np.asarray(array.get() if hasattr(array, "get") else array)


@cache
def _kernel(precise: bool, diamond: bool, unit_weights: bool, mode: int) -> Any:
    """Compile a kernel; CuPy caches it on disk."""
    flags = f"{str(diamond).lower()}, {str(unit_weights).lower()}, {mode}"
    name = f"pairs<{'double, 8' if precise else 'float, 16'}, {flags}>"
    module = _xp().RawModule(code=SOURCE, options=("-std=c++17",), name_expressions=[name])
    return module.get_function(name)


SOURCE = r"""
enum { ROWS, TOTAL, LARGEST };
constexpr int BLOCK = 128, LANES = 16, CHUNK = 64, COLUMNS = BLOCK / LANES, WARPS = LANES * LANES / 32;
typedef unsigned long long Whole;
template <typename T> struct alignas(4 * sizeof(T)) Person { T u, v, m, w; };

__device__ __forceinline__ float root(float x) {
    float y;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ double root(double x) { return sqrt(x); }
__device__ __forceinline__ float above(float x) { return __saturatef(x); }
__device__ __forceinline__ double above(double x) { return x > 1e-12 ? x : 0.0; }
__device__ __forceinline__ float larger(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ double larger(double a, double b) { return fmax(a, b); }
__device__ __forceinline__ float size(float x) { return fabsf(x); }
__device__ __forceinline__ double size(double x) { return fabs(x); }

template <typename T, bool DIAMOND> __device__ __forceinline__ T length(T u, T v) {
    if constexpr (DIAMOND) return size(u) + size(v);
    else return root(u * u + v * v);
}

// Whether a pair of two blocks can count; not to the last digits, so that rounding leaves none out.
template <typename T, bool DIAMOND> __device__ bool can_count(const T* a, const T* b) {
    T du = larger(T(0), larger(a[0] - b[3], b[0] - a[3])), dv = larger(T(0), larger(a[1] - b[4], b[1] - a[4]));
    T most = larger(a[5] - b[2], b[5] - a[2]);
    return most + T(sizeof(T) == 4 ? 1e-6 : 1e-11) > length<T, DIAMOND>(du, dv);
}

__device__ __forceinline__ void add(Whole* to, double value, double scale) {
    atomicAdd(to, (Whole)__double2ll_rn(value * scale));
}

template <typename T, int R, bool DIAMOND, bool ALIKE, int MODE>
__global__ void __launch_bounds__(256, 2) pairs(
    const Person<T>* __restrict__ people, const T* __restrict__ boxes, const long long* __restrict__ start,
    const double* __restrict__ scales, int first_strip, Whole* sums, Whole* totals)
{
    constexpr int STRIP = R * LANES, PER_STRIP = STRIP / BLOCK;
    const int lot = blockIdx.z, tid = threadIdx.x, tx = tid % LANES, ty = tid / LANES;
    const long long origin = start[lot];
    const int blocks = (int)(start[lot + 1] - origin), strip = first_strip + blockIdx.x;
    const int from = blockIdx.y * CHUNK;
    if (strip * PER_STRIP >= blocks || from >= blocks || from + CHUNK <= strip * PER_STRIP) return;
    people += origin * BLOCK;
    boxes += origin * 6;
    sums += origin * BLOCK;

    __shared__ Person<T> columns[2][BLOCK];
    __shared__ T parts[WARPS][BLOCK];
    __shared__ unsigned todo[2];
    if (tid < CHUNK) {
        const int b = from + tid;
        bool needed = false;
        if (b >= strip * PER_STRIP && b < blocks)
            for (int s = 0; s < PER_STRIP; s++)
                needed = needed || can_count<T, DIAMOND>(boxes + 6 * (strip * PER_STRIP + s), boxes + 6 * b);
        const unsigned found = __ballot_sync(0xffffffffu, needed);
        if (tid % 32 == 0) todo[tid / 32] = found;
    }
    T u[R], v[R], m[R], w[R], row[R];
    #pragma unroll
    for (int r = 0; r < R; r++) {
        const Person<T> one = people[(long long)strip * STRIP + ty * R + r];
        u[r] = one.u; v[r] = one.v; m[r] = one.m; w[r] = one.w; row[r] = 0;
    }
    __syncthreads();
    Whole left = ((Whole)todo[1] << 32) | todo[0];
    double total = 0;
    int turn = 0;
    Person<T> coming;
    if (left && tid < BLOCK) coming = people[(long long)(from + __ffsll(left) - 1) * BLOCK + tid];
    while (left) {
        const int b = from + __ffsll(left) - 1;
        left &= left - 1;
        if (tid < BLOCK) {
            columns[turn][tid] = coming;
            if (left) coming = people[(long long)(from + __ffsll(left) - 1) * BLOCK + tid];
        }
        __syncthreads();
        const bool twice = b < (strip + 1) * PER_STRIP;  // within the strip both orders of a pair are computed
        T column[COLUMNS], tally = 0;
        #pragma unroll
        for (int k = 0; k < COLUMNS; k++) {
            const Person<T> c = columns[turn][tx + LANES * k];
            T sum = 0, hits = 0;
            #pragma unroll
            for (int r = 0; r < R; r++) {
                const T x = size(m[r] - c.m) - length<T, DIAMOND>(u[r] - c.u, v[r] - c.v);
                if constexpr (MODE == LARGEST) {
                    row[r] = larger(row[r], x);
                    sum = larger(sum, x);
                } else {
                    const T beyond = above(x);
                    sum += ALIKE ? beyond : w[r] * beyond;
                    if constexpr (MODE == ROWS) {
                        row[r] += ALIKE ? beyond : c.w * beyond;
                        if (beyond > T(1e-12)) hits += ALIKE ? T(1) : w[r];
                    }
                }
            }
            column[k] = sum;
            if constexpr (MODE == ROWS) tally += ALIKE ? hits : c.w * hits;
            if constexpr (MODE == TOTAL) tally += ALIKE ? sum : c.w * sum;
        }
        if constexpr (MODE != LARGEST) total += twice ? 0.5 * (double)tally : (double)tally;
        if constexpr (MODE != TOTAL) if (!twice) {
            #pragma unroll
            for (int k = 0; k < COLUMNS; k++) {
                const T other = __shfl_xor_sync(0xffffffffu, column[k], LANES);
                column[k] = MODE == LARGEST ? larger(column[k], other) : column[k] + other;
                if (tid % 32 < LANES) parts[tid / 32][tx + LANES * k] = column[k];
            }
            __syncthreads();
            if (tid < BLOCK) {
                T sum = parts[0][tid];
                #pragma unroll
                for (int p = 1; p < WARPS; p++)
                    sum = MODE == LARGEST ? larger(sum, parts[p][tid]) : sum + parts[p][tid];
                Whole* to = sums + (long long)b * BLOCK + tid;
                if constexpr (MODE == LARGEST) atomicMax(to, (Whole)__double_as_longlong((double)sum));
                else add(to, (double)sum, scales[2 * lot]);
            }
        }
        turn ^= 1;
    }
    if constexpr (MODE != TOTAL) {
        #pragma unroll
        for (int r = 0; r < R; r++) {
            double sum = row[r];
            #pragma unroll
            for (int apart = LANES / 2; apart; apart /= 2) {
                const double other = __shfl_xor_sync(0xffffffffu, sum, apart);
                sum = MODE == LARGEST ? larger(sum, other) : sum + other;
            }
            if (tx == 0) {
                Whole* to = sums + (long long)strip * STRIP + ty * R + r;
                if constexpr (MODE == LARGEST) atomicMax(to, (Whole)__double_as_longlong(sum));
                else add(to, sum, scales[2 * lot]);
            }
        }
    }
    if constexpr (MODE != LARGEST) {
        #pragma unroll
        for (int apart = 16; apart; apart /= 2) total += __shfl_xor_sync(0xffffffffu, total, apart);
        if (tid % 32 == 0) add(totals + lot, total, scales[2 * lot + 1]);
    }
}
"""
