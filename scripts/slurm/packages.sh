#!/usr/bin/env bash
# Installs what whole clusters of this machine's Slurm need (test/testcluster/slurmlab starts them):
# Debian's packages, and those of Open MPI that jobs use there, where their commands are missing, without starting their services.
#
#   scripts/slurm/packages.sh
#
# Exit 3: they are not there and cannot be installed by this user.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lab.sh"
lab_dir ""
PATH=$PATH:/usr/sbin:/sbin
exec 9>"$LAB/lock"
flock 9
install_packages libopenmpi-dev libpmix2 -- mpirun:openmpi-bin mpicc:libopenmpi-dev
# The step's own tests, which run later in the same lane, start programs of both families of MPI.
install_packages libopenmpi-dev libpmix-dev libmpich-dev libpmi2-0-dev python3-mpi4py -- mpirun.openmpi:openmpi-bin mpicc.mpich:mpich
install_packages slurm-wlm-basic-plugins slurm-wlm-mysql-plugin slurm-wlm-jwt-plugin -- sbatch:slurm-client slurmctld:slurmctld slurmd:slurmd \
	slurmdbd:slurmdbd slurmrestd:slurmrestd munged:munge mariadbd:mariadb-server sshd:openssh-server ssh:openssh-client
# PyTorch for CPUs with torchrun and gloo, 150 MB: for the long tests alone.
[ -z "${COX_LONG:-}" ] || install_packages -- /usr/lib/python3/dist-packages/torch/bin/torch_shm_manager:python3-torch
