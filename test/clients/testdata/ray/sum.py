import os
import sys
import time

import ray

ray.init(log_to_driver=False, logging_level="ERROR")


@ray.remote(num_cpus=1)
def place(i):
    return i, os.environ["SLURM_JOB_ID"], os.environ["SLURMD_NODENAME"]


nodes = [n for n in ray.nodes() if n["Alive"]]
found = []
for n in nodes:  # one task on each node
    where = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(n["NodeID"], soft=False)
    found.append(place.options(scheduling_strategy=where).remote(len(found)))
found = ray.get(found, timeout=200)
same = {job for _, job, _ in found} == {os.environ["SLURM_JOB_ID"]}
print("nodes", len(nodes), "GPUs", ray.cluster_resources().get("GPU"), "tasks on", len({node for _, _, node in found}), "nodes, all of this job:", same)
open("met-" + os.environ["SLURM_JOB_ID"], "w").close()
while len([f for f in os.listdir() if f.startswith("met-")]) < 2:  # until the other job is there
    time.sleep(0.1)
sys.exit(5 if os.environ.get("CODE") == "5" else 0)
