#!/usr/bin/env bash
# Builds Kubernetes for the tests that start it (test/testcluster/kubelab) from the modules in
# test/kube, and prints the folder with its programs: kube (etcd, apiserver,
# controller-manager, scheduler, kubelet, kubectl), coredns, kwok.
#
#   scripts/kube/build.sh
#
# What is built is kept in ${COX_CACHE:-~/.cache/coxswain}/kube, in a folder named by
# what it was built from: nothing is built twice. The first time takes ten minutes of a
# processor, and a network or a filled module cache.
# Exit 3: its modules cannot be had here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
module=$here/../../test/kube
go=${GO:-go}
cache=${COX_CACHE:-${HOME:?}/.cache/coxswain}/kube
mkdir -p "$cache"

sum=$(cd "$module" && cat go.mod go.sum ./*.go coredns/*.go kwok/go.mod kwok/go.sum "$here/build.sh" | cat - <($go env GOVERSION) | sha256sum | cut -c1-16)
to=$cache/$sum
there() { [ -d "$to" ] && touch "$to" && echo "$to" && exit 0; }
there || exec 9>"$cache/lock"
flock 9
there || rm -rf "$to.part" && mkdir -p "$to.part"

say() { echo "kubernetes lab: $*" >&2; }
version=$(sed -n 's/^\tk8s.io\/kubernetes //p' "$module/go.mod")
flags="-s -w"
for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	IFS=. read -r major minor _ <<<"${version#v}"
	flags+=" -X $p.gitVersion=$version -X $p.gitMajor=$major -X $p.gitMinor=$minor -X $p.gitTreeState=clean -X $p.gitCommit=lab -X $p.buildDate=2026-01-01T00:00:00Z"
done
export CGO_ENABLED=0
parts=(". kube ." ". coredns ./coredns" "kwok kwok sigs.k8s.io/kwok/cmd/kwok") # module, program, package
for p in "${parts[@]}"; do
	read -r m _ package <<<"$p"
	(cd "$module/$m" && $go list -deps "$package") 2>"$cache/download.log" >/dev/null || {
		say "its modules cannot be had: $(tail -n 1 "$cache/download.log")"
		exit 3
	}
done
say "building Kubernetes $version: ten minutes of a processor, this once"
for p in "${parts[@]}"; do
	read -r m name package <<<"$p"
	(cd "$module/$m" && $go build -trimpath -ldflags "$flags" -o "$to.part/$name" "$package")
done
# What kwok needs to be told of how nodes and pods live, of its own module.
stages=$(cd "$module/kwok" && $go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize/stage
for f in node/fast/node-initialize node/heartbeat-with-lease/node-heartbeat-with-lease pod/fast/pod-ready pod/fast/pod-complete pod/fast/pod-delete; do
	echo "---"
	cat "$stages/$f.yaml"
done >"$to.part/kwok-stages.yaml"
mv "$to.part" "$to"
# What other sources made and nobody used for three days.
find "$cache" -mindepth 1 -maxdepth 1 -type d ! -name "$sum" -mtime +2 -exec rm -rf {} +
echo "$to"
