# Ranks that meet as many public programs do: by env://, with SLURM_* where HOW is slurm. One sum over
# all ranks, five steps of training; rank 0 says what all are. FAIL is a rank that fails before.
import os
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

if os.environ.get("HOW") == "slurm":
    os.environ["RANK"] = os.environ["SLURM_PROCID"]
    os.environ["WORLD_SIZE"] = os.environ["SLURM_NTASKS"]
    os.environ["LOCAL_RANK"] = os.environ["SLURM_LOCALID"]
dist.init_process_group("gloo", init_method="env://")
if os.environ.get("FAIL") == os.environ["RANK"]:
    os._exit(7)
total = torch.tensor([float(dist.get_rank())])
dist.all_reduce(total)
model = DistributedDataParallel(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).sum().backward()
    optimizer.step()
mine = "%s.%s gpus %s" % (os.environ["SLURM_NODEID"], os.environ["LOCAL_RANK"], os.environ.get("CUDA_VISIBLE_DEVICES"))
said = [None] * dist.get_world_size()
dist.all_gather_object(said, mine)
if dist.get_rank() == 0:
    print(sys.argv[1:], "sum", total.item(), "of", dist.get_world_size(), said, flush=True)
dist.barrier()
dist.destroy_process_group()
