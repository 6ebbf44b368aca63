#!/usr/bin/env bash
# Installs client programs of Slurm at the versions of test/clients/versions, from their registries,
# for test/clients: each in a folder of its own in the cache, and only when its versions changed.
#
#   scripts/clients/install.sh CLIENT…      (no name: all)
#
# Prints the folder that holds them, for COX_CLIENTS. Python clients come from PyPI and need Python
# 3.11 or later with venv. Nextflow comes from Maven Central and needs a Java runtime and Maven, which
# root gets from Debian. torch is Debian's own.
#
# Exit 3: a client cannot be had by this user.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
versions=$here/../../test/clients/versions
cache=${COX_CACHE:-$HOME/.cache/coxswain}/clients
say() { echo "clients: $*" >&2; }

# debian PACKAGE…: installs Debian's packages.
debian() {
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || { say "missing: $*"; exit 3; }
	apt-get update -qq >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2 || exit 3
}

# python NAME FILE: a virtual environment with the packages of FILE and nothing else.
python() {
	python3 -c 'import ensurepip' 2>/dev/null || debian python3 python3-venv
	python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { say "$1 needs Python 3.11"; exit 3; }
	python3 -m venv "$cache/$1"
	"$cache/$1/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$2" >&2 || exit 3
}

# maven NAME FILE: the jars of a pom.xml with all that they need, in NAME/lib.
maven() {
	command -v java >/dev/null || debian default-jre-headless
	command -v mvn >/dev/null || debian maven
	mvn -B -q -f "$2" dependency:copy-dependencies -DoutputDirectory="$cache/$1/lib" >&2 || exit 3
}

[ $# -gt 0 ] || set -- $(cd "$versions" && ls | sed 's/\..*//')
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
for client; do
	file=$(echo "$versions/$client".*)
	[ -e "$file" ] || { say "there is no $versions/$client.txt"; exit 2; }
	# A virtual environment is bound to its folder and its Python.
	mark=$({ cat "$file"; python3 --version; echo "$cache"; } 2>/dev/null | sha256sum)
	[ "$(cat "$cache/$client/.installed" 2>/dev/null)" != "$mark" ] || continue
	say "$client is installed into $cache/$client"
	rm -rf "${cache:?}/$client"
	case $file in
	*.debian) mapfile -t packages <"$file" && debian "${packages[@]}" && mkdir -p "$cache/$client" ;;
	*.txt) python "$client" "$file" ;;
	*.xml) maven "$client" "$file" ;;
	esac
	echo "$mark" >"$cache/$client/.installed"
done
echo "$cache"
