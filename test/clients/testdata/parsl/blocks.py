# Apps by parsl in blocks, which are jobs of two nodes each started by srun: results, a shell app, a
# failure, blocks that come with work and go without. Then jobs of the provider itself: one that
# ends well, one that fails, one that is cancelled.
import os
import subprocess
import time

import parsl
from parsl import bash_app, python_app
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.launchers import SrunLauncher
from parsl.providers import SlurmProvider


@python_app
def square(i):
    import os

    return i * i, os.environ["SLURM_JOB_NUM_NODES"], len(os.environ["CUDA_VISIBLE_DEVICES"].split(","))


@bash_app
def greet(stdout="greeting.txt"):
    return "echo hello from a node of $SLURM_JOB_PARTITION"


@python_app
def fail():
    raise RuntimeError("no such luck")


def await_true(what, condition):
    end = time.monotonic() + 200
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.1)


def provider(**settings):
    return SlurmProvider(partition="local", exclusive=False, gpus_per_node=1, **settings)


def run_apps():
    blocks = provider(nodes_per_block=2, init_blocks=1, max_blocks=1, walltime="00:05:00", launcher=SrunLauncher())
    executor = HighThroughputExecutor(label="htex", max_workers_per_node=2, provider=blocks)
    config = Config(run_dir="runinfo", executors=[executor], max_idletime=2, strategy_period=0.5)
    with parsl.load(config):
        results = [f.result(timeout=200) for f in [square(i) for i in range(12)]]
        print("sum:", sum(r[0] for r in results), "nodes of a block, GPUs of a task:", {r[1:] for r in results})
        print("shell app:", greet().result(timeout=200), open("greeting.txt").read().strip())
        print("failure:", fail().exception(timeout=200))
        print("blocks:", [s.state.name for s in executor.status().values()])
        await_true("the idle block is gone", lambda: not subprocess.check_output(["squeue", "-h"]))
        print("idle blocks left: 0")


def run_jobs():
    p = provider(nodes_per_block=1, walltime="00:01:00")
    p.script_dir = os.path.abspath("scripts")
    os.makedirs(p.script_dir, exist_ok=True)
    done = p.submit("echo done", 1, job_name="done")
    failed = p.submit("exit 3", 1, job_name="failed")
    cancelled = p.submit("sleep 300", 1, job_name="cancelled")

    states = {}

    def ended_or_runs():
        # parsl forgets the state of an ended job at the next look: its first word counts.
        for name, status in zip(("done", "failed", "cancelled"), p.status([done, failed, cancelled])):
            if not states.get(name) or not states[name].terminal:
                states[name] = status
        return states["done"].terminal and states["failed"].terminal and states["cancelled"].state.name == "RUNNING"

    await_true("two jobs end and one runs", ended_or_runs)
    print("jobs:", {name: s.state.name for name, s in states.items()})
    print("cancel:", p.cancel([cancelled]))
    print("output:", "done" in open(p.resources[done]["job_stdout_path"]).read().splitlines())


if __name__ == "__main__":
    run_apps()
    run_jobs()
