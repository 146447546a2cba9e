"""JAX: which GPUs it sees, what it preallocates, and what it meets at the cap."""
import gc
import os

import jax
import numpy
from jax._src import hardware_utils

from check import MIB, SHIM, check, fill, live_bytes, main, raises, said, scene, view, within_cap

# JAX looks for a device node before it asks the driver, and simulated cards have none.
if not os.path.exists("/dev/nvidiactl"):
    hardware_utils._NVIDIA_GPU_DEVICES.append(os.devnull)

PIECE = 32 * MIB


def piece(k=0):
    return jax.device_put(numpy.zeros(PIECE, numpy.uint8), jax.devices()[k]).block_until_ready()


def limit(k=0):
    return jax.devices()[k].memory_stats()["bytes_limit"]


def fill_and_go_on(most):
    """Fills the first GPU until JAX says no, which it does at `most` bytes, then frees everything and allocates again."""
    if not SHIM:
        pieces, error = fill(piece, jax.errors.JaxRuntimeError, 8)
        check("8 pieces fit", (len(pieces), error), (8, None))
        return
    pieces, error = fill(piece, jax.errors.JaxRuntimeError)
    check("an error", str(error), lambda text: "RESOURCE_EXHAUSTED" in text)
    # The context's share is the cap's, too.
    check("bytes that fit", len(pieces) * PIECE, lambda it: most - 448 * MIB <= it <= most)
    within_cap(view[0])
    pieces.clear()
    gc.collect()
    _, error = fill(piece, jax.errors.JaxRuntimeError, most // 2 // PIECE)
    check("after del", error, None)
    within_cap(view[0])


@scene()
def enumeration():
    """`jax.devices()`: as many as the policy grants, in its order; each with 3/4 of its cap, preallocated at the
    first use"""
    devices = jax.devices()
    check("platform", jax.default_backend(), "gpu")
    check("count", len(devices), len(view))
    for k, gpu in enumerate(view):
        check(f"kind of {k}", devices[k].device_kind, lambda it: bool(it))
        check(f"limit of {k}", limit(k), gpu.bytes * 3 // 4)
    held = piece(len(view) - 1)
    check("on the last", held.devices(), {devices[-1]})
    for gpu in view:
        within_cap(gpu)


@scene()
def outside():
    """A device beyond the view, asked for by `jax_cuda_visible_devices=9`, is JAX's own error"""
    jax.config.update("jax_cuda_visible_devices", "9")
    raises("devices", RuntimeError, "no supported devices found for platform CUDA", lambda: jax.devices("cuda"))
    said("cuDeviceGet(9): invalid device ordinal", f"this process sees {len(view)} GPU")


@scene(env={"XLA_PYTHON_CLIENT_PREALLOCATE": "true", "XLA_CLIENT_MEM_FRACTION": "0.5"})
def preallocation():
    """`XLA_CLIENT_MEM_FRACTION=0.5`: half of the cap, preallocated"""
    check("limit", limit(), view[0].bytes // 2)
    held = piece()
    live = live_bytes(view[0])
    if live is not None:
        check("the driver holds half of the cap", live, lambda it: view[0].bytes // 2 <= it <= view[0].bytes)
    del held


@scene(env={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"})
def no_preallocation():
    """`XLA_PYTHON_CLIENT_PREALLOCATE=false`: grows to 3/4 of the cap, then `RESOURCE_EXHAUSTED`; after `del` the
    program goes on"""
    held = piece()
    live = live_bytes(view[0])
    if live is not None:
        check("the driver holds what is used", live, lambda it: it < 128 * MIB)
    del held
    fill_and_go_on(view[0].bytes * 3 // 4)


@scene()
def preallocated_full():
    """Preallocation on: beyond its share JAX says `RESOURCE_EXHAUSTED`; after `del` the program goes on"""
    fill_and_go_on(view[0].bytes * 3 // 4)


@scene(env={"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"})
def platform_allocator():
    """`XLA_PYTHON_CLIENT_ALLOCATOR=platform` (an allocation each): grows to the cap itself, and the program goes on"""
    fill_and_go_on(view[0].bytes)
    said("refused, out of memory", f"GPU {view[0].index}")


@scene(env={"XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"})
def async_allocator():
    """`XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async` (the driver's pools): grows to the cap itself, and the program goes on"""
    fill_and_go_on(view[0].bytes)


@scene(env={"CUDA_VISIBLE_DEVICES": "1"})
def variable_given():
    """`CUDA_VISIBLE_DEVICES=1` on the command line: the second of the view, alone"""
    check("count", len(jax.devices()), 1)
    check("limit", limit(), view[1].bytes * 3 // 4)


@scene()
def variable_set_by_program():
    """`os.environ[\"CUDA_VISIBLE_DEVICES\"]` after `import jax`, before the first use, counts"""
    os.environ["CUDA_VISIBLE_DEVICES"] = view[1].uuid
    check("count", len(jax.devices()), 1)
    check("limit", limit(), view[1].bytes * 3 // 4)


@scene()
def visible_by_option():
    """`jax_cuda_visible_devices=1`: JAX's own choice counts within the view"""
    jax.config.update("jax_cuda_visible_devices", "1")
    check("count", len(jax.devices()), 1)
    check("limit", limit(), view[1].bytes * 3 // 4)


@scene(way="shim", policy="devices = none", env={"JAX_PLATFORMS": ""})
def none_granted():
    """`devices = none`: JAX works on the CPU"""
    check("platform", jax.default_backend(), "cpu")


@scene(way="shim", policy="peer_access = deny")
def peers_denied():
    """`peer_access = deny`: arrays still move between GPUs"""
    there = jax.device_put(piece(0), jax.devices()[1])
    check("moved", there.block_until_ready().devices(), {jax.devices()[1]})


@scene()
def compiled():
    """A jitted function with a gradient runs on every GPU"""
    step = jax.jit(jax.grad(lambda weights, data: ((data @ weights) ** 2).mean()))
    for device in jax.devices():
        weights, data = (jax.device_put(numpy.ones((64, 64), numpy.float32), device) for _ in range(2))
        check(f"on {device}", step(weights, data).block_until_ready().devices(), {device})


if __name__ == "__main__":
    main(globals())
