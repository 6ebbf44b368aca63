import os
import time

import ray

ray.init(log_to_driver=False, logging_level="ERROR")
open("stays", "w").close()
while not os.path.exists("submitted"):
    time.sleep(0.1)
other = [n["NodeID"] for n in ray.nodes() if n["NodeID"] != ray.get_runtime_context().get_node_id()][0]


@ray.remote(num_cpus=1, max_retries=0)
def die():
    os.kill(os.getppid(), 9)  # Ray on that node


die.options(scheduling_strategy=ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(other, soft=False)).remote()
time.sleep(600)
