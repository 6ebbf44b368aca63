#!/usr/bin/env bash
# Makes a folder from which tests run podman: a podman with a store of its own, and a small image
# in it that comes from no registry.
#
#   scripts/containers/podman.sh FOLDER [IMAGE]
#
# What is missing of Debian's packages is installed (as root). The runtime is runc with one option
# of crun's taken away, so that it also works where control groups are mounted as v1 and v2 at once,
# and no limits are set that root may not set here. Real machines need none of this.
# Exit 3: it cannot be done here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../slurm/lab.sh"
say() { echo "podman lab: $*" >&2; }
dir=${1:?a folder} image=${2:-coxswain.test/busybox:1}
mkdir -p "$dir/bin"
dir=$(cd "$dir" && pwd -P)
LAB=$dir
chmod 755 "$dir" "$dir/bin"
exec 9>"${COX_CACHE:-${HOME:?}/.cache/coxswain}/podman.lock" || die 3 "there is no folder for a lock"
flock 9
install_packages uidmap slirp4netns -- podman:podman runc:runc conmon:conmon fuse-overlayfs:fuse-overlayfs busybox:busybox-static docker-registry:docker-registry

cat >"$dir/bin/runc" <<'SH'
#!/bin/sh
# runc, without the option by which crun makes no control groups.
skip=
for a in "$@"; do
	shift
	case $skip$a in
	--cgroup-manager) skip=value ;;
	value*) skip= ;;
	*) set -- "$@" "$a" ;;
	esac
done
exec "$(PATH=/usr/sbin:/usr/bin:/sbin:/bin command -v runc)" "$@"
SH
cat >"$dir/containers.conf" <<CONF
[containers]
default_ulimits = []
[engine]
cgroup_manager = "cgroupfs"
lock_type = "file"
events_logger = "none"
runtime = "runc"
runtime_supports_nocgroup = ["runc"]
[engine.runtimes]
runc = ["$dir/bin/runc"]
CONF
cat >"$dir/storage.conf" <<CONF
[storage]
driver = "overlay"
graphroot = "$dir/storage"
runroot = "$dir/run"
rootless_storage_path = "$dir/users/\$UID"
CONF
[ -e "$dir/registries.conf" ] || echo 'unqualified-search-registries = []' >"$dir/registries.conf"
mkdir -p "$dir/users"
chmod 1777 "$dir/users"
# Root's podmans share /run/libpod and the locks in /dev/shm, whatever their stores are: "system reset" of one removes
# what the containers of the others need to end. So this one has a folder and locks of its own.
cat >"$dir/bin/podman" <<SH
#!/bin/sh
[ "\$(id -u)" != 0 ] || set -- --tmpdir="$dir/libpod" "\$@"
CONTAINERS_CONF=$dir/containers.conf CONTAINERS_STORAGE_CONF=$dir/storage.conf CONTAINERS_REGISTRIES_CONF=$dir/registries.conf exec "$(PATH=/usr/bin:/bin command -v podman)" "\$@"
SH
chmod 755 "$dir/bin/podman" "$dir/bin/runc"

"$dir/bin/podman" image exists "$image" && exit 0
files=$(mktemp -d "$dir/files.XXXXXX")
trap 'rm -rf "$files"' EXIT
mkdir -p "$files"/bin "$files"/etc "$files"/srv
cp "$(command -v busybox)" "$files/bin/busybox"
for a in sh ash cat echo env id sleep true false ls pwd hostname kill grep sed wc ps touch mkdir test head; do ln -s busybox "$files/bin/$a"; done
echo "made of busybox" >"$files/etc/image"
echo "root:x:0:0:root:/root:/bin/sh" >"$files/etc/passwd"
cat >"$files/entrypoint" <<'SH'
#!/bin/sh
echo "the entry point runs"
export ENTERED=yes
exec "$@"
SH
chmod 755 "$files" "$files/entrypoint"
tar -C "$files" -c . | "$dir/bin/podman" import --quiet -c 'ENV FLAVOUR=image' -c 'ENV SHARED=image' -c 'WORKDIR /srv' -c 'ENTRYPOINT ["/entrypoint"]' - "$image" >/dev/null
