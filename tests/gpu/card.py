"""One line about the first GPU for run.sh: what it is, and the bandwidth that its memory could have."""

import json

import torch

card = torch.cuda.get_device_properties(0)
nccl = ".".join(map(str, torch.cuda.nccl.version()))
line = {"part": "card", "name": card.name, "torch": torch.__version__, "nccl": nccl}
if hasattr(card, "memory_bus_width"):  # bits; a clock in kHz moves two of each
    line["memory_gb_per_s"] = round(2 * card.memory_clock_rate * 1e3 * card.memory_bus_width / 8 / 1e9)
print(json.dumps(line))
