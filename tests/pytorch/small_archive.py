"""Archives of torch.export.save without what nothing reads."""
import copy
import io
import json
import zipfile

import torch

BATCH = torch.export.Dim("batch", min=2, max=4096)


def exported(model, args, kwargs, is_dynamic):
    """`model` takes either positional or keyword arguments."""
    shapes = {name: {0: BATCH} for name in kwargs} or tuple({0: BATCH} for _ in args)
    return torch.export.export(copy.deepcopy(model), args, kwargs, dynamic_shapes=shapes if is_dynamic else None)


def save_small(program, path):
    """The archive, the program's metadata cut down to the innermost module's path, the example inputs empty."""
    memory = io.BytesIO()
    torch.export.save(program, memory)
    source = zipfile.ZipFile(memory)
    writer = torch._C.PyTorchFileWriter(str(path))
    for entry in source.namelist():
        name = entry.split("/", 1)[1]
        if name in ("byteorder", "version") or name.startswith(".data/"):
            continue
        content = b"" if name.startswith("data/sample_inputs/") else source.read(entry)
        if name.startswith("models/"):
            content = small_program(content)
        writer.write_record(name, content, len(content))
    writer.write_end_of_file()


def small_program(content):
    program = json.loads(content)
    pending = [program["graph_module"]["graph"]]
    while pending:
        for node in pending.pop()["nodes"]:
            stack = node["metadata"].get("nn_module_stack", "")
            node["metadata"] = {"nn_module_stack": stack.rsplit(";", 1)[-1]} if stack else {}
            pending += [entry["arg"]["as_graph"]["graph"] for entry in node["inputs"] if "as_graph" in entry["arg"]]
    return json.dumps(program, separators=(",", ":")).encode()
