"""Runs the scenes of a framework's script, each in a process of its own, or tells of them.

    scenes.py run SCRIPT WAY    WAY is plain or shim; the last line is 'N passed, N failed'
    scenes.py table             the page docs/compatibility.md, out of the scripts and requirements

Knows what a scene is (a function with a docstring, marked by check.scene), which GPUs there are, and
the policy it lives in. It reads the scripts without importing them. Must not know any framework.

A scene's marks:
    devices     nvidia-smi indices that the policy grants; else the first of DEVICES
    policy      further policy text, applied inside
    way         the only way in which the scene has a meaning
    gpus        how many GPUs it needs, 1 if it does not say
    env         environment variables of its process; ENV=None takes one away
"""
import ast
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

MIB = 1 << 20
HERE = pathlib.Path(__file__).resolve().parent
SECONDS = int(os.environ.get("FRAMEWORKS_SECONDS", "240"))  # that a scene may take

# What the policy grants where a scene does not say otherwise, and the cap on each, by position.
DEVICES = (3, 1)
CAPS = (2048 * MIB, 1536 * MIB, 2560 * MIB, 1280 * MIB)

# The simulated driver's cards, in the order of nvidia-smi (simcuda/README.md).
SIMULATED = [(f"GPU-{i:02x}51c0da-51c0-4da0-8000-0000000000{i:02x}", size << 30) for i, size in enumerate((24, 80, 24, 80))]


class Scene:
    def __init__(self, function, marks):
        self.name = function.name
        self.text = " ".join((ast.get_docstring(function) or "").split())
        self.devices = marks.get("devices")
        self.policy = marks.get("policy")
        self.way = marks.get("way")
        self.gpus = marks.get("gpus", 1)
        self.env = marks.get("env") or {}


def read(script):
    """The scenes of a script, in its order."""
    for node in ast.parse(script.read_text()).body:
        for mark in getattr(node, "decorator_list", []):
            if isinstance(mark, ast.Call) and getattr(mark.func, "id", "") == "scene":
                yield Scene(node, {word.arg: ast.literal_eval(word.value) for word in mark.keywords})


def cards():
    """Every GPU of the machine: its UUID and size; and whether they are simulated."""
    if os.environ.get("FRAMEWORKS_REAL") != "1":
        return SIMULATED, True
    listed = subprocess.run(["nvidia-smi", "--query-gpu=uuid,memory.total", "--format=csv,noheader,nounits"],
                            capture_output=True, text=True, check=True).stdout
    return [(uuid, int(size) * MIB) for uuid, size in (line.split(", ") for line in listed.splitlines())], False


def environment(scene, way, work):
    """The environment of a scene's process, or None where the machine has too few GPUs for it."""
    every, simulated = cards()
    env = {**os.environ, "HOME": str(work), "FRAMEWORKS_WAY": way, "PYTHONPATH": str(HERE), "PYTHONUNBUFFERED": "1",
           "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    build = pathlib.Path(env["FRAMEWORKS_BUILD"])
    env.pop("CUDA_VISIBLE_DEVICES", None)
    if simulated:
        env["LD_LIBRARY_PATH"] = str(build / "simcuda")
        env["SIMCUDA_STATE"] = str(work / "state")
    granted = scene.devices or (DEVICES if simulated else (0,))
    if way == "plain":
        granted = range(len(every))
    if max(granted) >= len(every) or len(granted) < scene.gpus:
        return None
    sizes = [every[gpu][1] if way == "plain" else min(cap, every[gpu][1]) for gpu, cap in zip(granted, CAPS)]
    env["FRAMEWORKS_VIEW"] = " ".join(f"{gpu}={every[gpu][0]}={size}" for gpu, size in zip(granted, sizes))
    if way == "shim":
        log = work / "log"
        log.touch()
        policy = work / "policy.conf"
        lines = ["[gpushim]", f"log = {log}", "[default]", "devices = " + ",".join(map(str, granted))]
        lines += [f"memory.{position} = {size}" for position, size in enumerate(sizes)]
        policy.write_text("\n".join(lines) + "\n")
        # By a link, since LD_PRELOAD takes no spaces and a checkout's path may have some.
        (work / "libgpushim.so").symlink_to(build / "libgpushim.so")
        env.update(LD_PRELOAD=str(work / "libgpushim.so"), GPUSHIM_CONF=str(policy), FRAMEWORKS_LOG=str(log))
        if scene.policy:
            env["GPUSHIM_POLICY"] = "[default]; " + scene.policy
    env.update(scene.env)
    return env


def play(script, scene, way):
    """Runs a scene: whether all was right (None: too few GPUs), and what it printed."""
    work = pathlib.Path(tempfile.mkdtemp(prefix="gpushim-frameworks-"))
    try:
        env = environment(scene, way, work)
        if env is None:
            return None, ""
        with open(work / "output", "w+") as output:
            process = subprocess.Popen([sys.executable, str(script), scene.name], env=env, cwd=work, start_new_session=True,
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
            try:
                good = process.wait(SECONDS) == 0
            except subprocess.TimeoutExpired:
                good = False
                output.write(f"\nstill running after {SECONDS} s\n")
            # Whatever a scene has started ends with it.
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
            output.seek(0)
            return good, output.read()
    finally:
        shutil.rmtree(work, ignore_errors=True)


def run(script, way):
    passed = failed = 0
    for scene in read(script):
        if scene.way not in (None, way):
            continue
        good, output = play(script, scene, way)
        if good is None:
            print(f"too few GPUs: {scene.text}")
            continue
        passed += good
        failed += not good
        print(f"{'ok' if good else 'FAILED'}: {scene.text}", flush=True)
        if not good or os.environ.get("FRAMEWORKS_VERBOSE") == "1":
            print(output, flush=True)
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed or not passed else 0


# The page's own words; all else on it comes from the scripts and the requirements.
HEAD = """# Unmodified frameworks under gpushim

What people install, unmodified, from PyPI, asked by `tests/frameworks/run.sh` on the simulated driver, where kernels do
nothing but enumeration, memory, errors, streams and processes are real. **Every line below is a test** that passes plainly and
under the shim (those marked *shim*: under it alone, since they ask for what a policy does). This page is written by
`tests/frameworks/run.sh --write-table`.

The policy grants two GPUs of four, in another order, with different caps, unless the line says otherwise.
"""

# What no line above says of itself.
TAIL = """
## Left out, and helped along

- vLLM and llama.cpp themselves: what they do with memory and devices is asked in `pytorch/bindings`.
- PyTorch built for CUDA 12: JAX and TensorFlow ask CUDA 12.
- Whatever needs kernels or NCCL to carry data: results, and checks that compare them between ranks.
- JAX looks for a device node (`/dev/nvidia0`) before it asks the driver. Simulated cards have none, so the script names
  another file.
- TensorFlow 2.21's wheel does not look for cuSOLVER where pip installs it for it, so the script loads it first.
"""


def table():
    """docs/compatibility.md"""
    print(HEAD)
    print("| environment | versions |\n| --- | --- |")
    folders = [listed.parent for listed in sorted(HERE.glob("*/requirements.txt"))]
    for folder in folders:
        asked = (folder / "requirements.txt").read_text().partition("# What these bring")[0].splitlines()
        print(f"| {folder.name} | " + ", ".join(line.replace("==", " ") for line in asked if "==" in line) + " |")
    for folder in folders:
        for script in sorted(folder.glob("*.py")):
            about = ast.get_docstring(ast.parse(script.read_text()))
            print(f"\n## {folder.name}/{script.stem}\n{about}\n")
            for scene in read(script):
                print(f"- {scene.text}" + (f" *({scene.way})*" if scene.way else ""))
    print(TAIL, end="")


if __name__ == "__main__":
    if sys.argv[1:] == ["table"]:
        sys.exit(table())
    if sys.argv[1:2] == ["run"] and len(sys.argv) == 4:
        sys.exit(run(pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]))
    sys.exit(__doc__)
