"""Which GPUs PyTorch sees: how many, which, in what order, and what CUDA_VISIBLE_DEVICES does."""
import os

import torch

from check import check, main, python, raises, said, scene, uuid, view


def seen():
    return [uuid(torch.cuda.get_device_properties(k).uuid) for k in range(torch.cuda.device_count())]


# The same, in a new interpreter that begins with `first`; before CUDA is in use the count comes from NVML.
SEEN = """
import os
{first}
import torch
{second}
before = torch.cuda.device_count()
torch.cuda.init()
{third}
count = torch.cuda.device_count()
print(before, count, *(f"GPU-{{torch.cuda.get_device_properties(k).uuid}}" for k in range(count)))
"""


def check_child(what, gpus, first="", second="", third="", **env):
    printed = python(SEEN.format(first=first, second=second, third=third), **env)
    right = " ".join([str(len(gpus)), str(len(gpus))] + [gpu.uuid for gpu in gpus])
    check(what, printed, right)


@scene()
def enumeration():
    """`device_count`, names, UUIDs and order are the policy's, before CUDA is in use (by NVML) and after;
    `total_memory` is the cap"""
    check("count before CUDA is in use", torch.cuda.device_count(), len(view))
    check("available", torch.cuda.is_available(), True)
    torch.cuda.init()
    check("count", torch.cuda.device_count(), len(view))
    check("UUIDs", seen(), [gpu.uuid for gpu in view])
    for k, gpu in enumerate(view):
        properties = torch.cuda.get_device_properties(k)
        check(f"name of {k}", torch.cuda.get_device_name(k), properties.name)
        check(f"total memory of {k}", properties.total_memory, gpu.bytes)


@scene()
def outside():
    """`cuda:k` beyond the view raises PyTorch's own `invalid device ordinal`, and the program goes on"""
    k = len(view)
    raises(f"a tensor on cuda:{k}", torch.AcceleratorError, "invalid device ordinal", lambda: torch.empty(1, device=f"cuda:{k}"))
    raises(f"set_device({k})", torch.AcceleratorError, "invalid device ordinal", lambda: torch.cuda.set_device(k))
    said(f"cudaSetDevice({k}): invalid device ordinal", f"this process sees {k} GPU")
    check("a tensor on cuda:0", torch.empty(1, device="cuda:0").device.index, 0)


@scene(gpus=2, env={"CUDA_VISIBLE_DEVICES": "1"})
def variable_given():
    """`CUDA_VISIBLE_DEVICES=1` on the command line: the second of the view, alone"""
    check("count before CUDA is in use", torch.cuda.device_count(), 1)
    torch.cuda.init()
    check("UUIDs", seen(), [view[1].uuid])
    check("the variable is left as it was", os.environ["CUDA_VISIBLE_DEVICES"], "1")


@scene(gpus=2)
def variable_forms():
    """`CUDA_VISIBLE_DEVICES` by integers in another order, by UUID, empty, -1, twice the same"""
    check_child("1,0", [view[1], view[0]], CUDA_VISIBLE_DEVICES="1,0")
    check_child("UUID", [view[1]], CUDA_VISIBLE_DEVICES=view[1].uuid)
    count = "import torch; print(torch.cuda.device_count(), torch.cuda.is_available())"
    for value in ("", "-1", "0,0"):
        check(f"CUDA_VISIBLE_DEVICES={value!r}", python(count, CUDA_VISIBLE_DEVICES=value), "0 False")
    beyond = ",".join(str(k) for k in range(len(view) + 2))
    check_child(f"{beyond} ends at the first that is not there", view, CUDA_VISIBLE_DEVICES=beyond)


@scene(gpus=2)
def variable_set_by_program():
    """`os.environ[\"CUDA_VISIBLE_DEVICES\"]` before and after `import torch` counts; once CUDA is in use it does not"""
    set_it = 'os.environ["CUDA_VISIBLE_DEVICES"] = "1"'
    check_child("before import", [view[1]], first=set_it)
    check_child("after import", [view[1]], second=set_it)
    check_child("after the first use", view, third=set_it)


@scene(way="shim", env={"CUDA_VISIBLE_DEVICES": "GPU-00"})
def variable_names_hidden():
    """A GPU that the policy does not grant cannot be had by naming its UUID"""
    check("available", torch.cuda.is_available(), False)
    check("count", torch.cuda.device_count(), 0)


@scene(way="shim", policy="devices = none")
def none_granted():
    """`devices = none`: `is_available` is False, and the CPU works"""
    check("available", torch.cuda.is_available(), False)
    check("on the CPU", float(torch.ones(2).sum()), 2.0)


@scene(way="shim", policy="device = 1")
def policy_with_a_mistake():
    """A policy with a mistake refuses CUDA and says where the mistake is"""
    raises("a tensor", Exception, "operation not permitted", lambda: torch.empty(1, device="cuda"))
    check("on the CPU", float(torch.ones(2).sum()), 2.0)


@scene(env={"PYTORCH_NVML_BASED_CUDA_CHECK": "1"})
def nvml_check():
    """`PYTORCH_NVML_BASED_CUDA_CHECK=1`: `is_available` by NVML alone leaves CUDA untouched"""
    check("available", torch.cuda.is_available(), True)
    check("initialised", torch.cuda.is_initialized(), False)
    check("count", torch.cuda.device_count(), len(view))


@scene(gpus=2)
def peers():
    """`can_device_access_peer` is the driver's answer"""
    one, other = (k for k in range(len(view)) if view[k].index in (1, 3))
    check("two of a kind", torch.cuda.can_device_access_peer(one, other), True)
    there = torch.ones(1024, device=f"cuda:{one}").to(f"cuda:{other}")
    check("a copy to the other GPU", there.device.index, other)


@scene(gpus=2, way="shim", policy="peer_access = deny")
def peers_denied():
    """`peer_access = deny`: PyTorch sees no peers, and copies between GPUs go on working"""
    check("0 to 1", torch.cuda.can_device_access_peer(0, 1), False)
    there = torch.ones(1024, device="cuda:0").to("cuda:1")
    check("a copy to the other GPU", there.device.index, 1)


if __name__ == "__main__":
    main(globals())
