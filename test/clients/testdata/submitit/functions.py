# Functions as jobs by submitit: one, an array, several tasks on two nodes, a failure, a
# cancellation, and a job that checkpoints itself and is requeued when it is preempted.
import os
import time

import submitit
from submitit.helpers import Checkpointable


def add(a, b):
    return a + b


def fail():
    raise ValueError("no such luck")


def wait_long():
    open("waiting-began", "w").close()
    time.sleep(300)


def describe_task():
    e = submitit.JobEnvironment()
    return (e.global_rank, e.num_tasks, e.node, e.num_nodes, e.local_rank, len(e.hostnames), os.environ.get("CUDA_VISIBLE_DEVICES"))


class Training(Checkpointable):
    """Counts its lives: it ends in the second one."""

    def __init__(self):
        self.lives = 0

    def __call__(self):
        self.lives += 1
        if self.lives == 1:
            open("training-began", "w").close()
            time.sleep(300)
        return self.lives, os.environ.get("SLURM_RESTART_COUNT")


def await_true(what, condition):
    end = time.monotonic() + 200
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.1)


def state_of(job):
    job.watcher.update()
    return job.watcher.get_state(job.job_id, mode="cache")


executor = submitit.AutoExecutor(folder="log/%j")
print("executor:", executor.cluster)
executor.update_parameters(name="one", timeout_min=5, slurm_partition="local", cpus_per_task=1, mem_gb=0.5)
one = executor.submit(add, 2, 3)
waiting = executor.submit(wait_long)
await_true("the job runs", lambda: os.path.exists("waiting-began") and state_of(waiting) == "RUNNING")
waiting.cancel()

executor.update_parameters(name="array", slurm_array_parallelism=3)
array = executor.map_array(add, range(6), range(10, 16))

gang = submitit.SlurmExecutor(folder="log/gang")
gang.update_parameters(time=5, partition="local", nodes=2, ntasks_per_node=2, gpus_per_node=2, job_name="gang")
ranks = gang.submit(describe_task)

executor.update_parameters(name="failure")
failure = executor.submit(fail)
executor.update_parameters(name="training")
training = executor.submit(Training())

print("result:", one.result())
print("results of the array:", [j.result() for j in array])
print("numbers of the array:", [j.job_id.split("_")[1] for j in array])
for r in ranks.results():
    print("task %d of %d, node %d of %d, %d there, %d hosts, GPUs %s" % r)
e = failure.exception()
print("failure:", type(e).__name__, "ValueError: no such luck" in str(e))
await_true("the failed job has ended", lambda: state_of(failure) != "RUNNING")
print("its state:", state_of(failure))
await_true("the job is cancelled", lambda: waiting.done(force_check=True))
print("cancelled:", state_of(waiting) == "CANCELLED by %d" % os.getuid())

await_true("the training runs", lambda: os.path.exists("training-began"))
training._interrupt()
lives, restarts = training.result()
print("lives of the training: %d, SLURM_RESTART_COUNT %s" % (lives, restarts))
