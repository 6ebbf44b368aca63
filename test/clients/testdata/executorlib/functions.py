# Functions by executorlib inside of a job: each is a step that srun starts.
import os

from executorlib import SlurmJobExecutor


def add(a, b):
    import os

    return a + b, "SLURM_STEP_ID" in os.environ


def fail():
    raise ValueError("no such luck")


if __name__ == "__main__":
    with SlurmJobExecutor(max_cores=4, resource_dict={"cores": 1}) as executor:
        futures = [executor.submit(add, i, 1) for i in range(4)]
        print("results:", [f.result(timeout=200) for f in futures])
        print("failure:", repr(executor.submit(fail).exception(timeout=200)))
