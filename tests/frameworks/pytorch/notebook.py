"""A notebook: jupyter_client drives an ipykernel, as Jupyter does."""
import jupyter_client.manager

from check import check, main, scene, view


class Notebook:
    def __init__(self):
        self.manager, self.client = jupyter_client.manager.start_new_kernel(kernel_name="python3")

    def __call__(self, cell):
        """What a cell prints, or the error that it shows."""
        shown = []

        def listen(message):
            content = message["content"]
            shown.append(content.get("text") or content.get("ename", "") + ": " + content.get("evalue", "") if
                         message["msg_type"] in ("stream", "error") else "")
        self.client.execute_interactive(cell, output_hook=listen, timeout=120)
        return "".join(shown).strip()

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


FILL = """
pieces = []
while True:
    pieces.append(torch.empty(32 << 20, dtype=torch.uint8, device="cuda"))
"""


@scene()
def cells():
    """`%env CUDA_VISIBLE_DEVICES` in a cell before the first use counts; the view and the caps hold in the kernel"""
    notebook = Notebook()
    try:
        notebook('import os; os.environ["CUDA_VISIBLE_DEVICES"] = "1"')
        check("count", notebook("import torch; print(torch.cuda.device_count())"), "1")
        check("total", notebook("print(torch.cuda.mem_get_info()[1])"), str(view[1].bytes))
        notebook('os.environ["CUDA_VISIBLE_DEVICES"] = "0"')
        check("afterwards it does not", notebook("print(torch.cuda.get_device_properties(0).uuid)"), view[1].uuid[4:])
    finally:
        notebook.close()


@scene(way="shim")
def out_of_memory():
    """A cell that runs out of memory shows PyTorch's error; after `del` the notebook goes on, and a restarted kernel
    has its whole cap"""
    notebook = Notebook()
    try:
        notebook("import torch")
        check("the cell", notebook(FILL), lambda it: it.startswith("OutOfMemoryError: CUDA out of memory"))
        notebook("pieces.clear(); torch.cuda.empty_cache()")
        check("the next", notebook("print(torch.empty(512 << 20, dtype=torch.uint8, device='cuda').is_cuda)"), "True")
        notebook(FILL)
        notebook.manager.restart_kernel(now=True)
        notebook.client.wait_for_ready(timeout=60)
        check("after the restart", notebook("import torch; print(torch.cuda.mem_get_info()[0] > 900 << 20)"), "True")
    finally:
        notebook.close()


if __name__ == "__main__":
    main(globals())
