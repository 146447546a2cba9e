"""TensorFlow: which GPUs it sees, what it preallocates, and what it meets at the cap."""
import ctypes
import gc
import os
import sysconfig

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "1"
# TensorFlow 2.21 does not look for cuSOLVER where pip has put it for it.
ctypes.CDLL(os.path.join(sysconfig.get_path("purelib"), "nvidia/cusolver/lib/libcusolver.so.11"))

import tensorflow

from check import MIB, SHIM, check, fill, live_bytes, main, raises, scene, view, within_cap

PIECE = 32 * MIB
gpus = None


def physical():
    return tensorflow.config.list_physical_devices("GPU")


def piece(k=0):
    with tensorflow.device(f"/GPU:{k}"):
        return tensorflow.zeros(PIECE, tensorflow.uint8)


def fill_and_go_on(most=None, k=0):
    """Fills GPU k until TensorFlow says no, frees everything, and allocates again."""
    if not SHIM:
        pieces, error = fill(lambda: piece(k), tensorflow.errors.ResourceExhaustedError, 6)
        check("6 pieces fit", (len(pieces), error), (6, None))
        return
    most = most or view[k].bytes
    pieces, error = fill(lambda: piece(k), tensorflow.errors.ResourceExhaustedError)
    check("an error", str(error), lambda text: "OOM when allocating tensor" in text)
    check("bytes that fit", len(pieces) * PIECE, lambda it: most // 2 <= it <= most)
    within_cap(view[k])
    pieces.clear()
    gc.collect()
    _, error = fill(lambda: piece(k), tensorflow.errors.ResourceExhaustedError, most // 2 // PIECE)
    check("after del", error, None)
    within_cap(view[k])


@scene()
def enumeration():
    """`list_physical_devices(\"GPU\")`: as many as the policy grants, and a tensor on the last lies on the right card"""
    check("count", len(physical()), len(view))
    for device in physical():
        tensorflow.config.experimental.set_memory_growth(device, True)
        check("name", tensorflow.config.experimental.get_device_details(device)["device_name"], lambda it: bool(it))
    last = len(view) - 1
    held = [piece(last) for _ in range(4)]
    check("device", held[0].device, lambda it: it.endswith(f"GPU:{last}"))
    live = live_bytes(view[last])
    if live is not None:
        check("the driver holds it there", live, lambda it: it >= 4 * PIECE)


@scene()
def outside():
    """A device beyond the view is TensorFlow's own error"""
    tensorflow.config.set_soft_device_placement(False)
    raises("/GPU:9", tensorflow.errors.InvalidArgumentError, "Could not satisfy device specification", lambda: piece(9))


@scene()
def preallocated():
    """By default TensorFlow preallocates what the cap leaves it, and says `ResourceExhaustedError` beyond"""
    fill_and_go_on()
    for gpu in view:
        within_cap(gpu)


@scene()
def memory_growth():
    """`set_memory_growth`: grows to the cap, then `ResourceExhaustedError`; after `del` the program goes on"""
    for device in physical():
        tensorflow.config.experimental.set_memory_growth(device, True)
    held = piece()
    live = live_bytes(view[0])
    if live is not None:
        check("the driver holds what is used", live, lambda it: it < 256 * MIB)
    del held
    fill_and_go_on()


@scene()
def visible_devices():
    """`set_visible_devices`: TensorFlow's own choice counts within the view"""
    tensorflow.config.set_visible_devices(physical()[1], "GPU")
    tensorflow.config.experimental.set_memory_growth(physical()[1], True)
    check("logical devices", len(tensorflow.config.list_logical_devices("GPU")), 1)
    held = piece()
    live = live_bytes(view[1])
    if live is not None:
        check("the driver holds it on the second", live, lambda it: it >= PIECE)
        check("and nothing on the first", live_bytes(view[0]), 0)
    del held


@scene()
def logical_devices():
    """Two logical devices with `memory_limit=192` on one GPU, each at its own limit, within the cap"""
    limits = [tensorflow.config.LogicalDeviceConfiguration(memory_limit=192) for _ in range(2)]
    tensorflow.config.set_visible_devices(physical()[0], "GPU")
    tensorflow.config.set_logical_device_configuration(physical()[0], limits)
    check("logical devices", len(tensorflow.config.list_logical_devices("GPU")), 2)
    for k in range(2):
        pieces, error = fill(lambda: piece(k), tensorflow.errors.ResourceExhaustedError, 32)
        check(f"bytes on {k}", len(pieces) * PIECE, lambda it: 96 * MIB <= it <= 192 * MIB)
        check(f"an error on {k}", error is not None, True)
    within_cap(view[0])


@scene(env={"TF_GPU_ALLOCATOR": "cuda_malloc_async"})
def malloc_async():
    """`TF_GPU_ALLOCATOR=cuda_malloc_async` (the driver's pools): the same within the cap"""
    fill_and_go_on()


@scene(env={"CUDA_VISIBLE_DEVICES": "1"})
def variable_given():
    """`CUDA_VISIBLE_DEVICES=1` on the command line: the second of the view, alone"""
    check("count", len(physical()), 1)
    tensorflow.config.experimental.set_memory_growth(physical()[0], True)
    held = piece()
    live = live_bytes(view[1])
    if live is not None:
        check("the driver holds it on the second", live, lambda it: it >= PIECE)
    del held


@scene()
def variable_set_by_program():
    """`os.environ[\"CUDA_VISIBLE_DEVICES\"]` after `import tensorflow`, before the first use, counts"""
    os.environ["CUDA_VISIBLE_DEVICES"] = "0"
    check("count", len(physical()), 1)


@scene(way="shim", policy="devices = none")
def none_granted():
    """`devices = none`: TensorFlow works on the CPU"""
    check("count", len(physical()), 0)
    check("a sum", float(tensorflow.reduce_sum(tensorflow.ones(4))), 4.0)


@scene()
def mirrored():
    """`MirroredStrategy` over two GPUs: a variable lies on each"""
    for device in physical():
        tensorflow.config.experimental.set_memory_growth(device, True)
    strategy = tensorflow.distribute.MirroredStrategy(["/gpu:0", "/gpu:1"])
    with strategy.scope():
        variable = tensorflow.Variable(tensorflow.ones(1024))
    check("replicas", strategy.num_replicas_in_sync, 2)
    check("devices", sorted(one.device[-5:] for one in variable.values), ["GPU:0", "GPU:1"])


@scene(way="shim", env={"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "XLA_PYTHON_CLIENT_ALLOCATOR": "platform"})
def with_jax():
    """TensorFlow and JAX in one process share one cap"""
    import jax
    from jax._src import hardware_utils
    if not os.path.exists("/dev/nvidiactl"):
        hardware_utils._NVIDIA_GPU_DEVICES.append(os.devnull)
    for device in physical():
        tensorflow.config.experimental.set_memory_growth(device, True)
    held = [piece() for _ in range(30)]
    import numpy
    mine, error = fill(lambda: jax.device_put(numpy.zeros(PIECE, numpy.uint8)).block_until_ready(), jax.errors.JaxRuntimeError)
    check("JAX's error", str(error), lambda text: "RESOURCE_EXHAUSTED" in text)
    check("JAX's share", len(mine) * PIECE, lambda it: 0 < it <= view[0].bytes - len(held) * PIECE)
    within_cap(view[0])


if __name__ == "__main__":
    main(globals())
