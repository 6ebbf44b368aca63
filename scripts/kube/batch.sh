#!/usr/bin/env bash
# Builds a scheduler of gangs for the tests that start it beside Kubernetes (test/testcluster/kubelab),
# from its module in test/, and prints the folder with its programs and manifests.
#
#   scripts/kube/batch.sh volcano    scheduler, controller, crds.yaml
#   scripts/kube/batch.sh kueue      kueue, crds.yaml, webhooks.yaml
#   scripts/kube/batch.sh coscheduling    scheduler, crds.yaml
#
# COX_VOLCANO, COX_KUEUE and COX_COSCHEDULING name a folder that has these already; it is used as it is. What is
# built is kept in ${COX_CACHE:-~/.cache/coxswain}/batch, in a folder named by what it was
# built from: nothing is built twice. The first time takes minutes of a processor, and a
# network or a filled module cache. Exit 3: its modules cannot be had here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
go=${GO:-go}
say() { echo "$1: ${*:2}" >&2; }
case ${1:-} in
volcano)
	given=${COX_VOLCANO:-}
	parts=("scheduler volcano.sh/volcano/cmd/scheduler" "controller volcano.sh/volcano/cmd/controller-manager")
	of=volcano.sh/volcano
	crds=(config/crd/volcano/bases config/crd/jobflow/bases)
	;;
kueue)
	given=${COX_KUEUE:-}
	parts=("kueue sigs.k8s.io/kueue/cmd/kueue")
	of=sigs.k8s.io/kueue
	crds=(config/components/crd/bases)
	;;
coscheduling)
	given=${COX_COSCHEDULING:-}
	parts=("scheduler sigs.k8s.io/scheduler-plugins/cmd/scheduler")
	of=sigs.k8s.io/scheduler-plugins
	crds=(config/crd/bases)
	;;
*)
	echo "usage: batch.sh volcano|kueue|coscheduling" >&2
	exit 2
	;;
esac
[ -z "$given" ] || { echo "$given" && exit 0; }
module=$here/../../test/$1
cache=${COX_CACHE:-${HOME:?}/.cache/coxswain}/batch
mkdir -p "$cache"
sum=$(cd "$module" && cat go.mod go.sum "$here/batch.sh" | cat - <($go env GOVERSION) | sha256sum | cut -c1-16)
to=$cache/$1-$sum
there() { [ -d "$to" ] && touch "$to" && echo "$to" && exit 0; }
there || exec 9>"$cache/lock"
flock 9
there || rm -rf "$to.part" && mkdir -p "$to.part"

export CGO_ENABLED=0
cd "$module"
for p in "${parts[@]}"; do
	$go list -deps "${p#* }" 2>"$cache/download.log" >/dev/null || {
		say "$1" "its modules cannot be had: $(tail -n 1 "$cache/download.log")"
		exit 3
	}
done
say "$1" "building it, this once"
for p in "${parts[@]}"; do
	$go build -trimpath -ldflags "-s -w" -o "$to.part/${p% *}" "${p#* }"
done
at=$($go list -m -f '{{.Dir}}' "$of")
for d in "${crds[@]}"; do
	for f in "$at/$d"/*.yaml; do
		printf -- '---\n'
		cat "$f"
	done
done >"$to.part/crds.yaml"
[ "$1" != kueue ] || cp "$at/config/components/webhook/manifests.yaml" "$to.part/webhooks.yaml"
chmod u+w "$to.part"/*
mv "$to.part" "$to"
# What other sources made and nobody used for three days.
find "$cache" -mindepth 1 -maxdepth 1 -type d -name "$1-*" ! -name "$1-$sum" -mtime +2 -exec rm -rf {} +
echo "$to"
