"""numba-cuda: which GPUs it sees, and what it meets at the cap."""
import os

import numpy
from numba import cuda
from numba.cuda.cudadrv.driver import CudaAPIError

from check import MIB, SHIM, check, fill, main, raises, scene, uuid, view, within_cap

PIECE = 32 * MIB


@scene()
def enumeration():
    """`cuda.gpus`: count, UUIDs, order; `get_memory_info`: total is the cap"""
    check("count", len(cuda.gpus), len(view))
    for k, gpu in enumerate(view):
        with cuda.gpus[k]:
            check(f"UUID of {k}", uuid(cuda.current_context().device.uuid), gpu.uuid)
            check(f"total of {k}", cuda.current_context().get_memory_info()[1], gpu.bytes)


@scene()
def outside():
    """A device beyond the view is numba's own `IndexError`, and the program goes on"""
    raises("select_device(9)", IndexError, "out of range", lambda: cuda.select_device(9))
    check("the first works", cuda.device_array(4).size, 4)


@scene()
def at_the_cap():
    """Grows to the cap, then `CUDA_ERROR_OUT_OF_MEMORY`; after `del` the program goes on"""
    room = cuda.current_context().get_memory_info()[0]
    pieces, error = fill(lambda: cuda.device_array(PIECE, numpy.uint8), CudaAPIError, 256 if SHIM else 8)
    within_cap(view[0])
    if SHIM:
        check("an error", str(error), lambda text: "CUDA_ERROR_OUT_OF_MEMORY" in text)
        check("bytes that fit", len(pieces) * PIECE, lambda it: room - PIECE <= it <= room)
        pieces.clear()
        _, error = fill(lambda: cuda.device_array(PIECE, numpy.uint8), CudaAPIError, 16)
    check("the program goes on", error, None)


@scene(env={"CUDA_VISIBLE_DEVICES": "1"})
def variable_given():
    """`CUDA_VISIBLE_DEVICES=1` on the command line: the second of the view, alone"""
    check("count", len(cuda.gpus), 1)
    check("UUID", uuid(cuda.current_context().device.uuid), view[1].uuid)


@scene()
def variable_set_by_program():
    """`os.environ[\"CUDA_VISIBLE_DEVICES\"]` after the import, before the first use, counts"""
    os.environ["CUDA_VISIBLE_DEVICES"] = view[1].uuid
    check("count", len(cuda.gpus), 1)


if __name__ == "__main__":
    main(globals())
