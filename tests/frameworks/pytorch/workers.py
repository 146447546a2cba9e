"""PyTorch's processes and threads: DataLoader workers, shared tensors, checkpoints, DataParallel."""
import os

import torch
import torch.multiprocessing

from check import MIB, check, fill, live_bytes, main, python, raises, said, scene, view, within_cap


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.full((4,), float(index))


class NumbersOnGpu(Numbers):
    def __getitem__(self, index):
        return super().__getitem__(index).cuda()


def load(data, start, **options):
    loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context=start, **options)
    return [batch.cuda() for batch in loader]


@scene()
def forked_workers():
    """DataLoader with forked workers and `pin_memory`, CUDA in use in the parent"""
    torch.ones(1, device="cuda")
    batches = load(Numbers(), "fork", pin_memory=True)
    check("batches", [tuple(batch.shape) for batch in batches], [(4, 4), (4, 4)])


@scene()
def cuda_in_forked_worker():
    """CUDA in a worker forked after CUDA is in use is PyTorch's own error, not a hang"""
    torch.ones(1, device="cuda")
    raises("a batch", RuntimeError, "Cannot re-initialize CUDA in forked subprocess", lambda: load(NumbersOnGpu(), "fork"))


@scene()
def forked_before_cuda():
    """A process forked before CUDA is in use has a cap of its own"""
    child = os.fork()
    if not child:
        pieces, _ = fill(lambda: torch.empty(32 * MIB, dtype=torch.uint8, device="cuda"), torch.OutOfMemoryError, 16)
        os._exit(len(pieces) != 16)
    held, _ = fill(lambda: torch.empty(32 * MIB, dtype=torch.uint8, device="cuda"), torch.OutOfMemoryError, 16)
    check("the child's 512 MiB", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
    check("our 512 MiB", len(held), 16)


@scene()
def spawned_workers():
    """DataLoader with spawned workers"""
    batches = load(Numbers(), "spawn", pin_memory=True)
    check("batches", [tuple(batch.shape) for batch in batches], [(4, 4), (4, 4)])


def reader(queue, answers):
    try:
        got = queue.get()
        answers.put((str(got.device), got.numel(), live_bytes(view[0])))
        del got
    except Exception as error:
        answers.put(str(error))


def share():
    """What another process says of a tensor that it gets through a queue."""
    context = torch.multiprocessing.get_context("spawn")
    queue, answers = context.SimpleQueue(), context.SimpleQueue()
    other = context.Process(target=reader, args=(queue, answers))
    other.start()
    try:
        tensor = torch.ones(64 * MIB, dtype=torch.uint8, device="cuda")
        queue.put(tensor)
        answer = answers.get()
        other.join()
        return answer
    finally:
        other.kill()


@scene()
def shared_tensor():
    """A CUDA tensor goes through a `torch.multiprocessing` queue (CUDA IPC); its owner alone is charged"""
    answer = share()
    check("device and size there", answer[:2], ("cuda:0", 64 * MIB))
    check("the reader holds nothing of its own", answer[2], lambda it: not it)


@scene(env={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})
def shared_segments():
    """The same with `expandable_segments:True`, whose memory goes by file descriptors"""
    answer = share()
    check("device and size there", answer[:2], ("cuda:0", 64 * MIB))


@scene(way="shim", policy="ipc = deny")
def shared_tensor_denied():
    """`ipc = deny`: sending a CUDA tensor to another process raises, and says why"""
    raises("a queue", torch.AcceleratorError, "operation not permitted", share)
    said("cuIpcGetMemHandle", "ipc")


CHECKPOINT = "import torch; torch.save({'weights': torch.ones(1024, device='cuda:0')}, 'checkpoint.pt')"


@scene(way="shim", policy="devices_per_process = 1")
def checkpoint():
    """`devices_per_process = 1`: a checkpoint saved on `cuda:0` and loaded on `cuda:1` without `map_location` is
    refused, with it loads"""
    python(CHECKPOINT)
    torch.cuda.set_device(1)
    mine = torch.ones(1024, device="cuda:1")
    # The runtime's word for a GPU that refuses a context.
    raises("torch.load", torch.AcceleratorError, "busy or unavailable", lambda: torch.load("checkpoint.pt"))
    said("devices_per_process = 1", "map_location")
    check("nothing on the other GPU", live_bytes(view[0]), 0)
    loaded = torch.load("checkpoint.pt", map_location="cuda:1")["weights"]
    check("with map_location", loaded.device.index, 1)
    check("the program goes on", (mine + loaded).device.index, 1)


@scene()
def checkpoint_freely():
    """Without that rule `torch.load` puts a checkpoint where it was saved"""
    python(CHECKPOINT)
    torch.cuda.set_device(1)
    check("device", torch.load("checkpoint.pt")["weights"].device.index, 0)


@scene()
def data_parallel():
    """`DataParallel` over two GPUs"""
    pair = [k for k in range(len(view)) if view[k].index in (1, 3)]
    model = torch.nn.DataParallel(torch.nn.Linear(64, 64).to(f"cuda:{pair[0]}"), device_ids=pair)
    result = model(torch.ones(32, 64, device=f"cuda:{pair[0]}"))
    check("result", (tuple(result.shape), result.device.index), ((32, 64), pair[0]))


@scene()
def threads():
    """Eight threads that allocate and free on both GPUs stay within the caps"""
    import threading

    def work(k):
        for _ in range(200):
            try:
                torch.empty(48 * MIB, dtype=torch.uint8, device=f"cuda:{k % 2}")
            except torch.OutOfMemoryError:
                pass
    every = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for one in every:
        one.start()
    for one in every:
        one.join()
    for gpu in view[:2]:
        within_cap(gpu)


if __name__ == "__main__":
    main(globals())
