#!/usr/bin/env bash
# The core decides alike on amd64 and arm64, to the byte: the same test is built for
# both, the arm64 one runs under qemu's user emulation (Debian's qemu-user-static,
# installed with apt-get where it is missing), and the hashes of all worlds are
# compared. Where the emulator cannot be had it says so; with CI set that is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
dir=$(mktemp -d /tmp/cox-arm64.XXXXXX)
trap 'rm -rf "$dir"' EXIT

emulator() { command -v qemu-aarch64-static || command -v qemu-aarch64; }

if [ "$(uname -m)" != aarch64 ] && ! emulator >/dev/null; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		get=(apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=5)
		export DEBIAN_FRONTEND=noninteractive
		"${get[@]}" install --no-install-recommends -y qemu-user-static >"$dir/apt.log" 2>&1 ||
			{ "${get[@]}" update && "${get[@]}" install --no-install-recommends -y qemu-user-static; } >>"$dir/apt.log" 2>&1 ||
			tail -n 20 "$dir/apt.log" >&2
	fi
	if ! emulator >/dev/null; then
		echo "arm64: left out; qemu-user-static is not here and could not be installed" >&2
		[ -z "${CI:-}" ] || exit 1
		exit 0
	fi
fi

for arch in amd64 arm64; do
	CGO_ENABLED=0 GOOS=linux GOARCH=$arch $go test -c -o "$dir/decisions.$arch" ./test/decisions
	run=()
	case $(uname -m)/$arch in
	x86_64/amd64 | aarch64/arm64) ;;
	x86_64/arm64) run=("$(emulator)") ;;
	*)
		echo "arm64: left out; on a $(uname -m) the $arch build does not run" >&2
		exit 0
		;;
	esac
	(cd test/decisions && COX_HASHES=$dir/$arch.txt "${run[@]}" "$dir/decisions.$arch" -test.count=1 -test.v -test.run '^TestDecisionsOfAllWorlds$')
done
if ! diff "$dir/amd64.txt" "$dir/arm64.txt"; then
	echo "arm64: the core decides otherwise there, in the worlds above" >&2
	exit 1
fi
echo "arm64: the same decisions as on amd64, in $(wc -l <"$dir/amd64.txt") worlds"
