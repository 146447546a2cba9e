"""CuPy, by itself and with PyTorch in one process."""
import cupy

from check import MIB, SHIM, check, fill, main, raises, said, scene, view, within_cap

PIECE = 32 * MIB


def piece():
    return cupy.empty(PIECE, cupy.uint8)


def fill_and_go_on(most=None):
    """Fills the first GPU until CuPy says no, frees everything, and allocates again."""
    room = cupy.cuda.Device().mem_info[0]
    errors = (cupy.cuda.memory.OutOfMemoryError, cupy.cuda.runtime.CUDARuntimeError)
    pieces, error = fill(piece, errors, 64 if SHIM else 8)
    if not SHIM:
        check("8 pieces fit", (len(pieces), error), (8, None))
        return
    most = min(most or room, room)
    check("an error", str(error), lambda text: "emory" in text)
    check("bytes that fit", len(pieces) * PIECE, lambda it: most - PIECE <= it <= most)
    within_cap(view[0])
    pieces.clear()
    cupy.get_default_memory_pool().free_all_blocks()
    _, error = fill(piece, Exception, most // 2 // PIECE)
    check("after del and free_all_blocks", error, None)
    within_cap(view[0])


@scene()
def enumeration():
    """Count, UUIDs, order and `mem_info` are the policy's"""
    check("count", cupy.cuda.runtime.getDeviceCount(), len(view))
    for k, gpu in enumerate(view):
        properties = cupy.cuda.runtime.getDeviceProperties(k)
        digits = properties["uuid"].hex()
        # CuPy shows it up to the first byte that is zero.
        check(f"UUID of {k}", digits, lambda it: gpu.uuid.replace("-", "")[3:].startswith(it))
        with cupy.cuda.Device(k) as device:
            check(f"total of {k}", device.mem_info[1], gpu.bytes)


@scene()
def outside():
    """A device beyond the view is CuPy's own `invalid device ordinal`"""
    raises("Device(9).use()", cupy.cuda.runtime.CUDARuntimeError, "invalid device ordinal", lambda: cupy.cuda.Device(9).use())
    check("the first works", cupy.zeros(4).device.id, 0)


@scene()
def at_the_cap():
    """Grows to the cap, then `OutOfMemoryError`; after `del` and `free_all_blocks` the program goes on"""
    fill_and_go_on()


@scene()
def fraction():
    """`set_limit(fraction=0.5)` is half of the cap"""
    pool = cupy.get_default_memory_pool()
    pool.set_limit(fraction=0.5)
    check("limit", pool.get_limit(), view[0].bytes // 2)
    if SHIM:
        fill_and_go_on(view[0].bytes // 2)


@scene()
def malloc_async():
    """`MemoryAsyncPool` (the driver's pools): the same at the cap"""
    cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
    fill_and_go_on()


@scene()
def managed():
    """`malloc_managed`: managed memory counts like any other"""
    cupy.cuda.set_allocator(cupy.cuda.MemoryPool(cupy.cuda.malloc_managed).malloc)
    pieces, error = fill(piece, Exception, 64)
    check("pieces", len(pieces), lambda it: it <= view[0].bytes // PIECE)
    within_cap(view[0])


@scene(way="shim", policy="managed = deny")
def managed_denied():
    """`managed = deny`: `malloc_managed` is refused, plain memory is not"""
    raises("malloc_managed", cupy.cuda.runtime.CUDARuntimeError, "operation not permitted",
           lambda: cupy.cuda.malloc_managed(PIECE))
    said("managed")
    check("plain memory", cupy.cuda.alloc(PIECE).mem.size, lambda it: it >= PIECE)


@scene(way="shim")
def with_pytorch():
    """CuPy and PyTorch in one process share one cap"""
    import torch
    held = [torch.empty(PIECE, dtype=torch.uint8, device="cuda") for _ in range(40)]
    mine, error = fill(piece, cupy.cuda.memory.OutOfMemoryError, 64)
    check("CuPy's error", str(error), lambda text: "Out of memory" in text)
    check("CuPy's share", len(mine) * PIECE, lambda it: 0 < it <= view[0].bytes - len(held) * PIECE)
    within_cap(view[0])
    raises("PyTorch's next", torch.OutOfMemoryError, "CUDA out of memory",
           lambda: torch.empty(8 * PIECE, dtype=torch.uint8, device="cuda"))
    mine.clear()
    cupy.get_default_memory_pool().free_all_blocks()
    check("PyTorch goes on", torch.empty(8 * PIECE, dtype=torch.uint8, device="cuda").is_cuda, True)
    within_cap(view[0])


if __name__ == "__main__":
    main(globals())
