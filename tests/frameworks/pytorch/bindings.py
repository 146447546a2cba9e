"""cuda.bindings (cuda-python): the driver's and the runtime's calls as they are, and the idioms of vLLM and llama.cpp in them."""
import ctypes
import os

from cuda.bindings import driver, runtime

from check import GIB, MIB, SHIM, check, fill, live_bytes, main, raises, scene, view, within_cap


class Failed(Exception):
    pass


def ask(answer):
    """The values of a call; its code, where that is not success, as an exception."""
    if int(answer[0]):
        raise Failed(answer[0].name)
    return answer[1] if len(answer) == 2 else answer[1:]


def start(device=0):
    ask(driver.cuInit(0))
    ask(driver.cuCtxSetCurrent(ask(driver.cuDevicePrimaryCtxRetain(ask(driver.cuDeviceGet(device))))))


def nvml():
    """NVML by ctypes, initialised, as vLLM's own copy of pynvml does it."""
    library = ctypes.CDLL("libnvidia-ml.so.1")
    check("nvmlInit", library.nvmlInit_v2(), 0)
    return library


@scene()
def enumeration():
    """Driver: count, UUIDs, order and totals are the policy's"""
    start()
    check("count", ask(driver.cuDeviceGetCount()), len(view))
    for k, gpu in enumerate(view):
        device = ask(driver.cuDeviceGet(k))
        check(f"UUID of {k}", ask(driver.cuDeviceGetUuid(device)).bytes.hex(), gpu.uuid.replace("-", "")[3:])
        check(f"total of {k}", ask(driver.cuDeviceTotalMem(device)), gpu.bytes)


@scene()
def outside():
    """Driver and runtime: an ordinal beyond the view is `CUDA_ERROR_INVALID_DEVICE`, `cudaErrorInvalidDevice`"""
    start()
    raises("cuDeviceGet", Failed, "CUDA_ERROR_INVALID_DEVICE", lambda: ask(driver.cuDeviceGet(9)))
    raises("cudaSetDevice", Failed, "cudaErrorInvalidDevice", lambda: ask(runtime.cudaSetDevice(9)))


@scene()
def at_the_cap():
    """Driver and runtime allocations together stop at one cap, with `CUDA_ERROR_OUT_OF_MEMORY` and
    `cudaErrorMemoryAllocation`"""
    start()
    room = ask(driver.cuMemGetInfo())[0]
    by_driver, _ = fill(lambda: ask(driver.cuMemAlloc(64 * MIB)), Failed, 8)
    by_runtime, error = fill(lambda: ask(runtime.cudaMalloc(64 * MIB)), Failed, 64 if SHIM else 8)
    if SHIM:
        check("both together", len(by_driver) + len(by_runtime), room // (64 * MIB))
        check("the runtime's error", str(error), "cudaErrorMemoryAllocation")
        raises("the driver's error", Failed, "CUDA_ERROR_OUT_OF_MEMORY", lambda: ask(driver.cuMemAlloc(64 * MIB)))
    within_cap(view[0])
    ask(runtime.cudaFree(by_runtime.pop()))
    check("one freed is one to be had", int(ask(driver.cuMemAlloc(64 * MIB))), lambda it: it != 0)


def block(device=0):
    prop = driver.CUmemAllocationProp()
    prop.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    prop.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    prop.location.id = device
    return ask(driver.cuMemCreate(64 * MIB, prop, 0))


def reach(address, device=0):
    access = driver.CUmemAccessDesc()
    access.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    access.location.id = device
    access.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    ask(driver.cuMemSetAccess(address, 64 * MIB, [access], 1))


@scene()
def pool_of_llama_cpp():
    """llama.cpp's pool: one reservation of 32 GiB, blocks mapped one behind the other, each handle released while it
    is mapped"""
    start()
    base = ask(driver.cuMemAddressReserve(32 * GIB, 0, 0, 0))
    used = [0]

    def grow():
        handle = block()
        ask(driver.cuMemMap(int(base) + used[0], 64 * MIB, 0, handle, 0))
        ask(driver.cuMemRelease(handle))
        reach(int(base) + used[0])
        used[0] += 64 * MIB

    room = ask(driver.cuMemGetInfo())[0]
    _, error = fill(grow, Failed, 64 if SHIM else 8)
    if SHIM:
        check("an error", str(error), "CUDA_ERROR_OUT_OF_MEMORY")
        check("grown to the cap", used[0], room // (64 * MIB) * 64 * MIB)
        check("free", ask(driver.cuMemGetInfo())[0], room - used[0])
    within_cap(view[0])
    ask(driver.cuMemUnmap(base, used[0]))
    check("live after the one unmap", live_bytes(view[0]), lambda it: not it)
    used[0] = 0
    _, error = fill(grow, Failed, 8)
    check("it grows again", (used[0], error), (8 * 64 * MIB, None))


@scene()
def sleep_of_vllm():
    """vLLM's sleep mode: unmap and release, then create and map at the same address; all is given back and had again"""
    start()
    addresses = [ask(driver.cuMemAddressReserve(64 * MIB, 0, 0, 0)) for _ in range(8)]
    for _ in range(3):
        handles = []
        for address in addresses:
            handles.append(block())
            ask(driver.cuMemMap(address, 64 * MIB, 0, handles[-1], 0))
            reach(address)
        within_cap(view[0])
        for address, handle in zip(addresses, handles):
            ask(driver.cuMemUnmap(address, 64 * MIB))
            ask(driver.cuMemRelease(handle))
        check("live while asleep", live_bytes(view[0]), lambda it: not it)
        free, total = ask(driver.cuMemGetInfo())
        check("free while asleep", free, lambda it: it > total // 2)


@scene(env={"CUDA_VISIBLE_DEVICES": "1,0"})
def devices_of_vllm():
    """vLLM's `int(CUDA_VISIBLE_DEVICES.split(",")[i])` as NVML's index: the same card as CUDA's device i"""
    start()
    library = nvml()
    for k in range(2):
        index = int(os.environ["CUDA_VISIBLE_DEVICES"].split(",")[k])
        handle, text = ctypes.c_void_p(), ctypes.create_string_buffer(96)
        check("nvmlDeviceGetHandleByIndex", library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)), 0)
        check("nvmlDeviceGetUUID", library.nvmlDeviceGetUUID(handle, text, 96), 0)
        digits = ask(driver.cuDeviceGetUuid(ask(driver.cuDeviceGet(k)))).bytes.hex()
        check(f"device {k}", digits, text.value.decode().replace("-", "")[3:])
        check("and the policy's", digits, view[index].uuid.replace("-", "")[3:])


if __name__ == "__main__":
    main(globals())
