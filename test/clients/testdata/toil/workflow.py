# A workflow by toil: three jobs, and one that fails at its first try.
import os

from toil.common import Toil
from toil.job import Job


def square(job, i):
    return i * i, "SLURM_JOB_ID" in os.environ


def fail_once(job, mark):
    if not os.path.exists(mark):
        open(mark, "w").close()
        raise RuntimeError("no such luck")
    return "second try"


def root(job, mark):
    size = dict(memory="200M", cores=1, disk="10M")
    return [job.addChildJobFn(square, i, **size).rv() for i in range(3)] + [job.addChildJobFn(fail_once, mark, **size).rv()]


if __name__ == "__main__":
    options = Job.Runner.getDefaultArgumentParser().parse_args()
    with Toil(options) as toil:
        print("results:", toil.start(Job.wrapJobFn(root, os.path.abspath("failed-once"), memory="200M", cores=1, disk="10M")))
