"""How much memory PyTorch may hold: what it is told, and what it meets at the cap with each of its allocators."""
import gc

import torch

from check import MIB, SHIM, check, fill, live_bytes, main, raises, said, scene, view, within_cap

PIECE = 32 * MIB


def piece(k=0):
    return torch.empty(PIECE, dtype=torch.uint8, device=f"cuda:{k}")


def fill_and_go_on(k=0, words="CUDA out of memory. Tried to allocate 32.00 MiB"):
    """Fills GPU k until PyTorch says no, frees everything, and allocates again."""
    if not SHIM:  # the whole card takes long, and shows nothing of ours
        pieces, error = fill(lambda: piece(k), torch.OutOfMemoryError, 64)
        check("64 pieces fit", (len(pieces), error), (64, None))
        return
    room = torch.cuda.mem_get_info(k)[0]
    pieces, error = fill(lambda: piece(k), torch.OutOfMemoryError)
    check("an out-of-memory error", type(error), torch.OutOfMemoryError)
    check("its words", str(error), lambda text: words in text)
    # The rest is what the allocator rounds.
    check("bytes that fit", len(pieces) * PIECE, lambda it: room - 2 * PIECE <= it <= room)
    within_cap(view[k])
    said("refused, out of memory", f"GPU {view[k].index}")
    pieces.clear()
    gc.collect()
    torch.cuda.empty_cache()
    again, error = fill(lambda: piece(k), torch.OutOfMemoryError, room // PIECE - 2)
    check("after del and empty_cache", error, None)
    within_cap(view[k])


@scene()
def reported():
    """`mem_get_info`: total is the cap, free falls with each allocation and rises with `empty_cache`"""
    for k, gpu in enumerate(view):
        free, total = torch.cuda.mem_get_info(k)
        check(f"total of {k}", total, gpu.bytes)
        check(f"free of {k} is at most total", free, lambda it: 0 < it <= gpu.bytes)
    before = torch.cuda.mem_get_info(0)[0]
    held = torch.empty(256 * MIB, dtype=torch.uint8, device="cuda:0")
    check("free after 256 MiB", torch.cuda.mem_get_info(0)[0], before - 256 * MIB)
    del held
    torch.cuda.empty_cache()
    check("free after empty_cache", torch.cuda.mem_get_info(0)[0], before)


@scene()
def at_the_cap():
    """A growing allocation stops at the cap with `torch.OutOfMemoryError`; after `del` and `empty_cache` the program
    goes on"""
    fill_and_go_on()


@scene(gpus=2)
def each_its_own_cap():
    """Each GPU has a cap of its own: one at its cap leaves the other free"""
    held, _ = fill(piece, torch.OutOfMemoryError, 64)
    fill_and_go_on(1)
    check("the first still holds", len(held), lambda it: it > 0)


@scene(way="shim")
def larger_than_the_cap():
    """One tensor larger than the cap is refused at once, and a smaller one then fits"""
    raises("a tensor of the cap and 1 MiB", torch.OutOfMemoryError, "CUDA out of memory",
           lambda: torch.empty(view[0].bytes + MIB, dtype=torch.uint8, device="cuda"))
    check("half the cap", torch.empty(view[0].bytes // 2, dtype=torch.uint8, device="cuda").is_cuda, True)


@scene()
def fraction():
    """`set_per_process_memory_fraction(0.5)` is half of the cap"""
    torch.cuda.set_per_process_memory_fraction(0.5, 0)
    check("fraction", torch.cuda.get_per_process_memory_fraction(0), 0.5)
    raises("6/10 of the total", torch.OutOfMemoryError, "CUDA out of memory",
           lambda: torch.empty(view[0].bytes * 6 // 10, dtype=torch.uint8, device="cuda"))
    check("4/10 of the total", torch.empty(view[0].bytes * 4 // 10, dtype=torch.uint8, device="cuda").is_cuda, True)


@scene(env={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})
def expandable_segments():
    """`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`: the same at the cap (virtual memory management)"""
    fill_and_go_on()
    torch.cuda.empty_cache()
    if live_bytes(view[0]) is not None:
        gc.collect()
        torch.cuda.empty_cache()
        check("all is given back", live_bytes(view[0]), 0)


@scene(env={"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"})
def malloc_async():
    """`PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync`: the same at the cap (the driver's memory pools)"""
    check("backend", torch.cuda.get_allocator_backend(), "cudaMallocAsync")
    fill_and_go_on(words="would exceed allowed memory. (out of memory)")


@scene()
def pinned_memory():
    """Pinned host memory does not count"""
    before = torch.cuda.mem_get_info(0)[0]
    pinned = torch.empty(512 * MIB, dtype=torch.uint8, pin_memory=True)
    check("pinned", pinned.is_pinned(), True)
    check("free with 512 MiB pinned", torch.cuda.mem_get_info(0)[0], before)


@scene()
def captured():
    """A CUDA graph is captured and replayed, its private pool within the cap"""
    graph = torch.cuda.CUDAGraph()
    source = torch.ones(1024, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        source + 1
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        result = source + torch.empty(64 * MIB, device="cuda")[:1024]
    graph.replay()
    torch.cuda.synchronize()
    check("a result", result.shape[0], 1024)
    within_cap(view[0])


@scene(way="shim")
def over_the_cap_in_a_capture():
    """Out of memory while a CUDA graph is captured: PyTorch's own error, and the program goes on"""
    def capture():
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            return torch.empty(view[0].bytes + MIB, dtype=torch.uint8, device="cuda")
    raises("a capture", torch.OutOfMemoryError, "CUDA out of memory", capture)
    check("half the cap", torch.empty(view[0].bytes // 2, dtype=torch.uint8, device="cuda").is_cuda, True)


@scene()
def libraries():
    """What NVIDIA's libraries take for themselves (cuBLAS workspaces, cuDNN) lies within the cap"""
    left = torch.ones(512, 512, device="cuda")
    check("a product", tuple((left @ left).shape), (512, 512))
    image = torch.ones(4, 3, 64, 64, device="cuda")
    check("a convolution", tuple(torch.nn.Conv2d(3, 8, 3).cuda()(image).shape), (4, 8, 62, 62))
    within_cap(view[0])


@scene()
def training():
    """A small training loop with autograd and an optimiser runs"""
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).cuda()
    optimiser = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        optimiser.zero_grad()
        model(torch.randn(32, 64, device="cuda")).square().mean().backward()
        optimiser.step()
    torch.cuda.synchronize()
    check("parameters", next(model.parameters()).is_cuda, True)


if __name__ == "__main__":
    main(globals())
