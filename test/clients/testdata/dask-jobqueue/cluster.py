# Workers of Dask as jobs: three that compute, the number of them set lower, an adaptive cluster that
# comes with work and goes without, a task that fails.
import os
import subprocess
import time

from dask_jobqueue import SLURMCluster
from distributed import Client


def await_true(what, condition):
    end = time.monotonic() + 200
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.1)


def square(x):
    return x * x, os.environ["SLURM_JOB_ID"], os.environ["CUDA_VISIBLE_DEVICES"] != ""


def fail(x):
    raise ValueError("no such luck")


def jobs():
    return subprocess.check_output(["squeue", "-h", "-o", "%T %j"], text=True).splitlines()


def main():
    # Without a nanny a worker is one process, which starts sooner.
    cluster = SLURMCluster(
        queue="local", cores=1, processes=1, memory="500MB", walltime="00:10:00", log_directory="log", local_directory="spill",
        nanny=False, job_extra_directives=["--gpus-per-node=1"], scheduler_options={"dashboard_address": None},
    )
    with Client(cluster) as client:
        def workers():
            return len(client.scheduler_info(n_workers=-1)["workers"])

        cluster.scale(jobs=3)
        client.wait_for_workers(3, timeout=200)
        print("workers:", workers(), "jobs:", jobs())
        results = client.gather(client.map(square, range(20), pure=False))
        print("sum:", sum(r[0] for r in results), "jobs that worked:", len({r[1] for r in results}), "with a GPU:", {r[2] for r in results})
        print("failure:", repr(client.submit(fail, 1).exception(timeout=200)))
        cluster.scale(jobs=1)
        await_true("two workers end", lambda: workers() == 1 and len(jobs()) == 1)
        print("jobs after scale(1):", jobs())
        cluster.adapt(minimum_jobs=0, maximum_jobs=2, interval="500ms", wait_count=2)
        print("adaptive:", sum(r[0] for r in client.gather(client.map(square, range(4), pure=False))))
        await_true("no worker is left", lambda: workers() == 0 and not jobs())
        print("jobs without work:", jobs())
    cluster.close()


if __name__ == "__main__":
    main()
