"""Triton and torch.compile: kernels compiled at run time; Triton's own driver module is linked against libcuda.so.1."""
import torch
import triton
import triton.language

from check import check, main, raises, scene, view, within_cap


@triton.jit
def increment(source, target, count, block: triton.language.constexpr):
    index = triton.language.program_id(0) * block + triton.language.arange(0, block)
    triton.language.store(target + index, triton.language.load(source + index, mask=index < count) + 1, mask=index < count)


@scene()
def kernel():
    """A Triton kernel is compiled and launched on the last GPU of the view"""
    last = len(view) - 1
    torch.cuda.set_device(last)
    source = torch.ones(1024, device="cuda")
    target = torch.empty_like(source)
    increment[(4,)](source, target, 1024, block=256)
    torch.cuda.synchronize()
    check("device", (target.device.index, triton.runtime.driver.active.get_current_device()), (last, last))
    within_cap(view[last])


@scene()
def outside():
    """Triton's driver module answers for a device beyond the view with `invalid device ordinal`"""
    utils = triton.runtime.driver.active.utils
    check("properties of 0", utils.get_device_properties(0)["warpSize"], 32)
    raises("properties of 9", RuntimeError, "invalid device ordinal", lambda: utils.get_device_properties(9))


@scene()
def compiled_function():
    """`torch.compile` of a function, run on the GPU"""
    function = torch.compile(lambda it: (it * 2 + 1).relu().sum())
    check("result", function(torch.ones(1024, device="cuda")).shape, torch.Size([]))
    within_cap(view[0])


if __name__ == "__main__":
    main(globals())
