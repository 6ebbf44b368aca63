#!/usr/bin/env bash
# Runs every suite of make test, in lanes beside each other. Prints how each suite ended, what a
# failed one said, and a report at the end.
set -uo pipefail
cd "$(dirname "$0")/.."
export COX_REPORT=${COX_REPORT:?make test sets it}
rm -rf "$COX_REPORT"
mkdir -p "$COX_REPORT"
began=$SECONDS
lanes=()
trap 'for l in "${lanes[@]}"; do pkill -P "$l"; kill "$l"; done 2>/dev/null' EXIT
trap 'exit 130' INT TERM

# lane SUITE…: one suite after the other, all of them whatever becomes of the ones before.
lane() {
	for suite in "$@"; do
		local from=$SECONDS state=ok TIMEFORMAT='%U %S'
		{ time $calm make --no-print-directory "$suite" >"$COX_REPORT/$suite.log" 2>&1; } 2>"$COX_REPORT/$suite.cpu" || state=FAILED
		printf '%-15s %-6s %4d s, %4.0f s of processors\n' "$suite" "$state" $((SECONDS - from)) \
			"$(awk 'END { print $1 + $2 }' "$COX_REPORT/$suite.cpu")" | tee -a "$COX_REPORT/suites"
		[ "$state" = ok ] || sed "s/^/$suite: /" "$COX_REPORT/$suite.log"
	done
}

# Three lanes, since two processors are busy with three: more of them finish no sooner, and what
# waits for clusters, processes and limits runs into its bounds.
for suites in "kube unit cross" "slurm clients-main console proofs-run"; do
	# shellcheck disable=SC2086 # several suites
	calm='' lane $suites &
	lanes+=($!)
done
# What only computes takes what they leave.
calm='nice -n 5' lane lint race proofs-computed arm64 &
lanes+=($!)
wait "${lanes[@]}"
lanes=()
python3 scripts/testreport.py "$COX_REPORT"
printf 'in all %d s\n' $((SECONDS - began))
! grep -q FAILED "$COX_REPORT/suites"
