#!/usr/bin/env bash
# Installs what real kubelets need to run pods (test/testcluster/kubelab starts them): Debian's
# containerd, runc and CNI plugins, and a static busybox for the images, where they are
# missing, without starting their services.
#
#   scripts/kube/packages.sh
#
# Exit 3: they are not there and cannot be installed by this user.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../slurm/lab.sh"
say() { echo "kubernetes lab: $*" >&2; }
lab_dir "" # one lock with Slurm's: both forbid services while they install
PATH=$PATH:/usr/sbin:/sbin
exec 9>"$LAB/lock"
flock 9
install_packages -- containerd:containerd runc:runc /usr/lib/cni/ptp:containernetworking-plugins busybox:busybox-static ip:iproute2
