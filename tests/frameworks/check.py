"""What a scene says: what it should see, and what it saw.

A scene is a function of one of the scripts, run in a process of its own by scenes.py, plainly or under
the shim. Knows what scenes.py announces of this process, and the simulated driver's referee. Must not
know any framework, nor how the shim works.
"""
import ctypes
import os
import re
import subprocess
import sys

MIB = 1 << 20
GIB = 1 << 30

SHIM = os.environ["FRAMEWORKS_WAY"] == "shim"
LIB = os.path.dirname(os.path.abspath(__file__))
failures = []


class Gpu:
    """A GPU as this process should see it: `index` is nvidia-smi's, `bytes` is the cap or else the card's size."""

    def __init__(self, text):
        self.index, self.uuid, self.bytes = text.split("=")
        self.index, self.bytes = int(self.index), int(self.bytes)


# In the order in which CUDA and NVML should show them, before CUDA_VISIBLE_DEVICES.
view = [Gpu(text) for text in os.environ["FRAMEWORKS_VIEW"].split()]


def scene(devices=None, policy=None, way=None, gpus=1, env=None):
    """Marks a scene; scenes.py reads the arguments from the source and explains them."""
    return lambda function: function


def check(what, got, right):
    """One thing seen. `right` is a value, or a function that says whether it is right."""
    good = right(got) if callable(right) else got == right
    print(f"    {'right' if good else 'WRONG'}: {what}: {got!r}" + ("" if good or callable(right) else f", not {right!r}"))
    if not good:
        failures.append(what)


def raises(what, exception, words, call):
    """`call` raises `exception`, whose message contains `words`."""
    try:
        call()
    except exception as error:
        check(what, str(error), lambda text: words in text)
    else:
        check(what, "nothing raised", f"{exception.__name__}: {words}")


def said(*words):
    """Under the shim: what it wrote has a line that contains all `words`."""
    if SHIM:
        with open(os.environ["FRAMEWORKS_LOG"]) as log:
            lines = log.read().splitlines()
        check(f"the shim says {words}", lines, lambda them: any(all(word in line for word in words) for line in them))


def referee(function, gpu, everyone):
    ask = getattr(ctypes.CDLL("libcuda.so.1"), function, None)
    if not ask:
        return None
    ask.restype = ctypes.c_uint64
    return ask(gpu.index, 0 if everyone else -1)


def live_bytes(gpu, everyone=False):
    """What the simulated driver itself counts of this process's allocations on a GPU; None on a real one."""
    return referee("simcuda_live_bytes", gpu, everyone)


def within_cap(gpu):
    """The referee has counted no more than this process may hold on a GPU, its context included."""
    live = live_bytes(gpu)
    if live is not None:
        check(f"bytes on GPU {gpu.index}", live + referee("simcuda_context_bytes", gpu, False), lambda it: it <= gpu.bytes)


def fill(allocate, exception, limit=4096):
    """Allocates until `exception`, at most `limit` times: the pieces and the error (None if none came)."""
    pieces = []
    try:
        while len(pieces) < limit:
            pieces.append(allocate())
    except exception as error:
        # Its traceback holds the frames, and they the pieces.
        return pieces, error.with_traceback(None)
    return pieces, None


def uuid(text):
    """A UUID however it is written, as nvidia-smi -L writes it."""
    digits = re.sub("^GPU-", "", str(text))
    return "GPU-" + digits.lower()


def python(code, **env):
    """What a new interpreter prints, in this environment with these variables (None: unset)."""
    whole = {**os.environ, **env}
    whole = {name: value for name, value in whole.items() if value is not None}
    done = subprocess.run([sys.executable, "-c", code], env=whole, capture_output=True, text=True, timeout=120)
    if done.returncode:
        print(done.stderr)
    return done.stdout.strip()


def main(functions):
    """Runs the scene that the command line names; the exit status tells whether all was right."""
    functions[sys.argv[1]]()
    sys.exit(1 if failures else 0)
