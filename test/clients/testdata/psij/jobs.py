# Jobs by PSI/J: one that ends well, one that fails, tasks on two nodes by srun, a cancellation, and a
# job that another object attaches to.
from datetime import timedelta

from psij import Job, JobAttributes, JobExecutor, JobSpec, JobState, ResourceSpecV1
from psij.executors.batch.slurm import SlurmExecutorConfig

executor = JobExecutor.get_instance("slurm", config=SlurmExecutorConfig(queue_polling_interval=1, initial_queue_polling_delay=1))
patience = timedelta(minutes=3)


def submit(name, command, *arguments, **settings):
    attributes = JobAttributes(queue_name="local", duration=timedelta(minutes=3))
    job = Job(JobSpec(name=name, executable=command, arguments=list(arguments), attributes=attributes, stdout_path=name + ".out", **settings))
    executor.submit(job)
    return job


def output_of(job):
    with open(job.spec.stdout_path) as f:
        return sorted(f.read().split())


well = submit("well", "/bin/echo", "hello")
failing = submit("failing", "/bin/sh", "-c", "exit 3")
tasks = submit("tasks", "/bin/sh", "-c", "echo rank-$SLURM_PROCID", launcher="srun", resources=ResourceSpecV1(node_count=2, processes_per_node=2, gpu_cores_per_process=0))
waiting = submit("waiting", "/bin/sleep", "300")

status = well.wait(timeout=patience)
print("well:", status.state.name, status.exit_code, output_of(well))
status = failing.wait(timeout=patience)
print("failing:", status.state.name, status.exit_code)
status = tasks.wait(timeout=patience)
print("tasks:", status.state.name, output_of(tasks))

waiting.wait(timeout=patience, target_states=[JobState.ACTIVE])
other = Job()
executor.attach(other, waiting.native_id)
other.wait(timeout=patience, target_states=[JobState.ACTIVE])
print("attached:", other.status.state.name, "listed:", waiting.native_id in executor.list())
waiting.cancel()
print("cancelled:", waiting.wait(timeout=patience).state.name, other.wait(timeout=patience).state.name)
