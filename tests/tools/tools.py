#!/usr/bin/env python3
"""tools.py TOOL WAY CACHE: one of the tools people look at GPUs with, unmodified, on the simulated machine.

Knows: what each way of running it (CMakeLists.txt sets policy and preload) has to show, worked out by hand from the policy;
how to make each tool tell. Must not know: how the shim does it. What a tool shows becomes a list of rows (index, UUID, total
MiB, used MiB), which must be the right one. Exit status 77: the tool is not there (GPUSHIM_MUST_RUN=1 makes that a failure).
"""
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

# What of tests/runtimes.txt each tool needs.
NEEDS = {
    "nvidia-smi": [],
    "nvidia-ml-py": ["nvidia-ml-py"],
    "gpustat": ["gpustat", "nvidia-ml-py", "psutil", "blessed", "six", "wcwidth"],
    "nvitop": ["nvitop", "nvidia-ml-py", "psutil"],
}

# The simulated machine by nvidia-smi's numbers: 0 and 2 have 24 GiB, 1 and 3 have 80.
UUIDS = ["GPU-%02x51c0da-51c0-4da0-8000-0000000000%02x" % (i, i) for i in range(4)]
MIB = [24576, 81920, 24576, 81920]

# Which GPUs a way has to show, in which order, with how many MiB.
SHOWN = {
    "plain": [(0, MIB[0]), (1, MIB[1]), (2, MIB[2]), (3, MIB[3])],
    "view": [(3, 1024), (1, 20480)],  # devices = 3,1; memory = 1GiB; memory.1 = 25%
    "visible": [(3, 1024), (1, 20480)],  # the same with CUDA_VISIBLE_DEVICES=1, which NVML does not heed
    "caps": [(0, 8192), (1, 8192), (2, 8192), (3, 8192)],  # memory = 8GiB, and no view
    "physical": [(0, MIB[0]), (1, MIB[1]), (2, MIB[2]), (3, MIB[3])],  # devices = 3,1; nvml = physical
}
# Likewise for what asks CUDA. Without a view the faster cards come first.
CUDA = {
    "plain": [(1, MIB[1]), (3, MIB[3]), (0, MIB[0]), (2, MIB[2])],
    "view": SHOWN["view"],
    "visible": [(1, 20480)],
    "caps": [(1, 8192), (3, 8192), (0, 8192), (2, 8192)],
    "physical": [(3, MIB[3]), (1, MIB[1])],
}


def rows(shown):
    return [(i, UUIDS[gpu], mib, 0) for i, (gpu, mib) in enumerate(shown)]


def missing(what):
    print(what + " is not there; tests/fetch-runtimes.sh and tests/smi/fetch.sh fetch what can be had")
    sys.exit(1 if os.environ.get("GPUSHIM_MUST_RUN") == "1" else 77)


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0 or done.stderr:
        print("%s: status %d\n%s%s" % (" ".join(command), done.returncode, done.stdout, done.stderr))
        sys.exit(1)
    return done.stdout


def python(*arguments):
    return run(sys.executable, *arguments)


def must_be(what, got, right):
    if got != right:
        print("%s shows\n  %s\nnot\n  %s" % (what, "\n  ".join(map(str, got)), "\n  ".join(map(str, right))))
        sys.exit(1)


def nvidia_smi(way, cache):
    smi = os.path.join(cache, "nvidia-smi")
    if not os.access(smi, os.X_OK):
        missing("nvidia-smi")
    right = rows(SHOWN[way])
    listed = re.findall(r"^GPU (\d+): .*\(UUID: (.*)\)$", run(smi, "-L"), re.M)
    must_be("nvidia-smi -L", [(int(i), uuid) for i, uuid in listed], [row[:2] for row in right])
    text = run(smi, "--query-gpu=index,uuid,memory.total,memory.free", "--format=csv")
    must_be("nvidia-smi's query", text.splitlines(),
            ["index, uuid, memory.total [MiB], memory.free [MiB]"]
            + ["%d, %s, %d MiB, %d MiB" % (i, uuid, total, total - used) for i, uuid, total, used in right])
    table = re.findall(r"\|\s+(\d+)MiB /\s+(\d+)MiB \|", run(smi))
    must_be("nvidia-smi's table", [(int(used), int(total)) for used, total in table], [row[:1:-1] for row in right])


def nvidia_ml_py(way, _):
    told = json.loads(python("-c", """
import json, pynvml as nvml
nvml.nvmlInit()
rows = []
for i in range(nvml.nvmlDeviceGetCount()):
    device = nvml.nvmlDeviceGetHandleByIndex(i)
    uuid = nvml.nvmlDeviceGetUUID(device)
    one, two = nvml.nvmlDeviceGetMemoryInfo(device), nvml.nvmlDeviceGetMemoryInfo(device, nvml.nvmlMemory_v2)
    assert (one.total, one.free, one.used) == (two.total, two.free, two.used) and two.reserved == 0, i
    again = [nvml.nvmlDeviceGetHandleByUUID(uuid), nvml.nvmlDeviceGetHandleBySerial(nvml.nvmlDeviceGetSerial(device)),
             nvml.nvmlDeviceGetHandleByPciBusId(nvml.nvmlDeviceGetPciInfo(device).busId)]
    assert [nvml.nvmlDeviceGetIndex(d) for d in again] == [i] * 3, i
    assert nvml.nvmlDeviceGetComputeRunningProcesses(device) == [], i
    rows.append((nvml.nvmlDeviceGetIndex(device), uuid, one.total >> 20, one.used >> 20))
try:
    nvml.nvmlDeviceGetHandleByIndex(len(rows))
    assert False
except nvml.NVMLError_InvalidArgument:
    pass
nvml.nvmlShutdown()
print(json.dumps(rows))
"""))
    must_be("nvidia-ml-py", [tuple(row) for row in told], rows(SHOWN[way]))


def gpustat(way, _):
    told = json.loads(python("-m", "gpustat", "--json"))["gpus"]
    must_be("gpustat --json", [(g["index"], g["uuid"], g["memory.total"], g["memory.used"]) for g in told],
            rows(SHOWN[way]))
    plainly = re.findall(r"^\[(\d+)\].*\|\s*(\d+) /\s*(\d+) MB \|", python("-m", "gpustat", "--no-color"), re.M)
    must_be("gpustat", [(int(i), int(total), int(used)) for i, used, total in plainly],
            [(i, total, used) for i, _, total, used in rows(SHOWN[way])])


def nvitop(way, _):
    ask = """
import json
from nvitop import Device, CudaDevice
def row(device, index):
    return index, device.uuid(), device.memory_total() >> 20, device.memory_used() >> 20
print(json.dumps([[row(d, d.index) for d in Device.all()], [row(d, d.cuda_index) for d in CudaDevice.all()]]))
"""
    told = [[tuple(row) for row in devices] for devices in json.loads(python("-c", ask))]
    must_be("nvitop", told[0], rows(SHOWN[way]))
    must_be("nvitop, of CUDA,", told[1], rows(CUDA[way]))
    screen = re.findall(r"^\|\s+(\d+)\s+Simulated ", python("-m", "nvitop", "-1", "--ascii", "--colorful"), re.M)
    must_be("nvitop's screen", [int(i) for i in screen], [row[0] for row in rows(SHOWN[way])])


def main():
    tool, way, cache = sys.argv[1:]
    with open(os.path.join(HERE, "..", "runtimes.txt"), encoding="ascii") as file:
        pins = dict(line.strip().split("==") for line in file if "==" in line)
    folders = [os.path.join(cache, "%s-%s" % (need, pins[need])) for need in NEEDS[tool]]
    for folder in folders:
        if not os.path.isdir(folder):
            missing(os.path.basename(folder))
    os.environ["PYTHONPATH"] = ":".join(folders)
    {"nvidia-smi": nvidia_smi, "nvidia-ml-py": nvidia_ml_py, "gpustat": gpustat, "nvitop": nvitop}[tool](way, cache)


main()
