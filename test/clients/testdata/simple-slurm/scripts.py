# Scripts by simple_slurm: an array, a job after it, one that fails, the queue as it sees it, a
# cancellation, and srun.
import datetime
import subprocess
import time

from simple_slurm import Slurm


def await_true(what, condition):
    end = time.monotonic() + 200
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.1)


def state_of(job):
    return subprocess.check_output(["sacct", "-X", "-n", "-P", "-o", "State", "-j", str(job)], text=True).split()


array = Slurm(
    array=range(3, 6), cpus_per_task=1, gres=["gpu:1"], job_name="array", time=datetime.timedelta(minutes=5),
    output=f"{Slurm.JOB_ARRAY_MASTER_ID}_{Slurm.JOB_ARRAY_ID}.out",
)
array.add_cmd("echo setup")
first = array.sbatch("echo task", Slurm.SLURM_ARRAY_TASK_ID)
after = Slurm(dependency=dict(afterok=first), job_name="after", output="after.out", wait=True)
after.sbatch("cat %d_*.out | sort | uniq -c" % first)
print("after the array:", open("after.out").read().split())

failing = Slurm(job_name="failing", output="failing.out").sbatch("exit 3")
await_true("the job fails", lambda: state_of(failing) == ["FAILED"])
print("failing:", state_of(failing))

waiting = Slurm(job_name="waiting", output="waiting.out")
job = waiting.sbatch("sleep 300")


def listed():
    waiting.squeue.update_squeue()
    return [(str(number) == str(job), j["NAME"], j["ST"]) for number, j in waiting.squeue.jobs.items()]


await_true("the job runs", lambda: [j[2] for j in listed()] == ["R"])
print("queue:", listed())
waiting.scancel.cancel_job(job)
await_true("the job is cancelled", lambda: state_of(job)[0] == "CANCELLED" and not listed())
print("queue:", listed())
print("srun ends with", Slurm(ntasks=2, job_name="two").srun("echo from srun"))
