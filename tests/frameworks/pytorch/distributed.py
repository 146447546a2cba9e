"""torch.distributed over NCCL, by torchrun and accelerate, one process for each GPU."""
import os
import subprocess
import sys

import torch

from check import MIB, check, main, raises, said, scene, view


def launch(module, count, function, *options):
    """Runs a function of this file in `count` processes; whether all of them ended well."""
    how_many = "--num_processes" if "accelerate" in module else "--nproc-per-node"
    line = [sys.executable, "-m", module, *options, f"{how_many}={count}", __file__, function]
    done = subprocess.run(line, capture_output=True, text=True, timeout=200)
    print(done.stdout + done.stderr)
    return done.returncode == 0, done.stdout


def torchrun(count, function):
    return launch("torch.distributed.run", count, function, "--standalone")


def start():
    """What every rank begins with: its GPU, and the group."""
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", rank))
    return rank


def end(*facts):
    torch.distributed.destroy_process_group()
    sys.stdout.write(" ".join(map(str, ("rank", *facts))) + "\n")


def rank_reduces():
    rank = start()
    tensor = torch.ones(4 * MIB, device="cuda")
    torch.distributed.all_reduce(tensor)
    torch.distributed.barrier()
    torch.cuda.synchronize()
    end(rank, tensor.device, torch.cuda.mem_get_info()[1])


def check_reduction(count):
    good, printed = torchrun(count, "rank_reduces")
    check("status", good, True)
    for rank in range(count):
        check(f"rank {rank}", printed, lambda it: f"rank {rank} cuda:{rank} {view[rank].bytes}\n" in it)


@scene()
def two_ranks():
    """`torchrun` with 2 processes: `all_reduce` and `barrier` over NCCL, each rank on the GPU of its LOCAL_RANK"""
    check_reduction(2)


@scene(devices=(3, 1, 0, 2))
def four_ranks():
    """The same with 4 processes, on four GPUs in another order"""
    check_reduction(4)


@scene(policy="devices_per_process = 1")
def one_gpu_each():
    """The same under `devices_per_process = 1`: ranks that keep to their GPU notice nothing"""
    check_reduction(2)


@scene(way="shim", policy="peer_access = deny")
def without_peers():
    """The same under `peer_access = deny`: NCCL goes through host memory"""
    check_reduction(2)


def rank_strays():
    rank = int(os.environ["LOCAL_RANK"])
    torch.ones(1, device=f"cuda:{rank}")
    if rank:
        # The runtime's word for a GPU that refuses a context.
        raises("a stray tensor", torch.AcceleratorError, "busy or unavailable", lambda: torch.ones(1, device="cuda:0"))
    else:
        torch.ones(1, device="cuda:0")


@scene(way="shim", policy="devices_per_process = 1")
def stray_context():
    """`devices_per_process = 1`: a rank that strays onto `cuda:0` is refused there, before it takes memory"""
    check("status", torchrun(2, "rank_strays")[0], True)
    said("devices_per_process = 1", "CUDA device 0 refused")


def rank_trains():
    rank = start()
    # Without the check that the parameters are the same everywhere: it needs kernels that carry them.
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64).cuda(), device_ids=[rank], init_sync=False)
    model(torch.ones(8, 64, device="cuda")).sum().backward()
    torch.cuda.synchronize()
    end(rank, next(model.parameters()).device)


@scene()
def data_parallel():
    """`DistributedDataParallel`: a step forwards and backwards in 2 processes"""
    good, printed = torchrun(2, "rank_trains")
    check("status", good, True)
    check("ranks", printed, lambda it: "rank 0 cuda:0\n" in it and "rank 1 cuda:1\n" in it)


def rank_accelerates():
    import accelerate
    accelerator = accelerate.Accelerator()
    model = torch.nn.Linear(64, 64).to(accelerator.device)
    accelerator.backward(model(torch.ones(8, 64, device=accelerator.device)).sum())
    accelerator.wait_for_everyone()
    end(accelerator.process_index, accelerator.device)


@scene()
def accelerated():
    """`accelerate launch` with 2 processes: each has its GPU, a step backwards, and all wait for each other
    (without `prepare` of a model, in which NCCL compares the parameters)"""
    good, printed = launch("accelerate.commands.launch", 2, "rank_accelerates", "--multi_gpu", "--num_machines=1",
                           "--mixed_precision=no", "--dynamo_backend=no")
    check("status", good, True)
    check("ranks", printed, lambda it: "rank 0 cuda:0\n" in it and "rank 1 cuda:1\n" in it)


@scene()
def planned():
    """accelerate's `get_max_memory`, by which it shares a model out, is within the caps"""
    import accelerate.utils
    planned = accelerate.utils.get_max_memory()
    for k, gpu in enumerate(view):
        check(f"on GPU {k}", planned[k], lambda it: 0 < it <= gpu.bytes)


if __name__ == "__main__":
    main(globals())
