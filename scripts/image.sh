#!/usr/bin/env bash
# Writes the project's two container images as archives, without a registry or a daemon:
# the agent's (cox-pod, cox-slurm and cox-pmix, which pods of jobs are given) and the server's (cox).
#
#   scripts/image.sh [-a ARCH] [-o FOLDER] [-t TAG]
#
#   -a  amd64 or arm64; left out: that of this machine
#   -o  where they go; left out: bin
#   -t  behind the colon of their names, coxswain.sh/agent and coxswain.sh/cox; left out: latest
#
# It prints the two files. The same sources, Go and options make the same bytes. A node gets
# them by `ctr -n k8s.io images import FILE`, `k3s ctr images import FILE`, `docker load -i FILE`
# or `kind load image-archive FILE`; a registry by `skopeo copy docker-archive:FILE docker://…`.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
arch=$($go env GOHOSTARCH) out=bin tag=latest
while getopts a:o:t: o; do
	case $o in
	a) arch=$OPTARG ;;
	o) out=$OPTARG ;;
	t) tag=$OPTARG ;;
	*) echo "usage: scripts/image.sh [-a ARCH] [-o FOLDER] [-t TAG]" >&2; exit 2 ;;
	esac
done
shift $((OPTIND - 1))
if [ $# -gt 0 ] || [[ ! $arch =~ ^(amd64|arm64)$ ]] || [[ ! $tag =~ ^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$ ]]; then
	echo "usage: scripts/image.sh [-a amd64|arm64] [-o FOLDER] [-t TAG]" >&2
	exit 2
fi
mkdir -p "$out"
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
CGO_ENABLED=0 GOOS=linux GOARCH=$arch $go build -trimpath -buildvcs=false -ldflags='-s -w' -o "$made/" ./cmd/cox ./cmd/cox-pod ./cmd/cox-slurm ./cmd/cox-pmix
$go run ./internal/image/make "$made" "$arch" "$out" "coxswain.sh/agent:$tag" "coxswain.sh/cox:$tag"
echo "$out/coxswain-agent-$arch.tar"
echo "$out/coxswain-$arch.tar"
