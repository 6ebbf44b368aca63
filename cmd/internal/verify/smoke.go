// Package verify is the gang by which a pool is tried: a small batch job whose ranks meet,
// say where they are and what they see, and end.
//
// The model. Script makes the job. Each rank says that it is there, waits until all have said
// so, and prints a line. Read reads these lines, and Judge says of each thing that a gang needs
// whether it was so. A rank that was started after another had ended would never meet it: that
// all have met proves that all lived at one time.
//
// With Order.Fabric the ranks measure the network between them (agent/fabric), and a command may show
// which way NCCL takes. Without, nothing is measured; devices are never put to work.
package verify

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Order says what gang is asked for.
type Order struct {
	Nodes     int
	GPUs      int    // of each node
	Dir       string // where it runs and its output is; empty: where the job is submitted from
	Partition string
	Account   string // that it is charged to; empty: the site's rules say it
	Fabric    bool   // the ranks measure what lies between them
	Binary    string // with Fabric: cox, where nodes may have it beside that of their PATH
	NCCL      string // with Fabric: a command that uses NCCL, which all ranks run after that; empty: none
}

// Name is the job's.
const Name = "cox-verify"

// Minutes is the job's time limit.
const Minutes = 10

// Script is the job.
func Script(o *Order) []byte {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("#!/bin/sh\n#SBATCH --job-name=%s --nodes=%d --ntasks-per-node=1 --time=%d --no-requeue --output=%[1]s-%%j.out", Name, o.Nodes, Minutes)
	if o.GPUs > 0 {
		line("#SBATCH --gpus-per-node=%d", o.GPUs)
	}
	if o.Partition != "" {
		line("#SBATCH --partition=%s", o.Partition)
	}
	if o.Account != "" {
		line("#SBATCH --account=%s", o.Account)
	}
	if o.Dir != "" {
		line("#SBATCH --chdir=%s", o.Dir)
	}
	if !o.Fabric {
		b.WriteString(body + "exit $rc\n")
		return []byte(b.String())
	}
	line("COX_VERIFY_BINARY=%s\nexport COX_VERIFY_BINARY", quoteShell(o.Binary))
	b.WriteString(fabricBody)
	if o.NCCL != "" {
		line("[ $rc = 0 ] || exit $rc\nNCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH,ENV\nexport NCCL_DEBUG NCCL_DEBUG_SUBSYS\nsrun sh -c %s </dev/null\nrc=$?", quoteShell(o.NCCL))
	}
	b.WriteString("exit $rc\n")
	return []byte(b.String())
}

// body has the ranks meet: each says that it is there and waits for a line, which the script
// sends to all by srun when all have said so, or after two minutes. So nothing has to be shared
// between nodes. What waits for those two minutes ends with the directory.
const body = `d=$(mktemp -d 2>/dev/null) || d=$(mktemp -d "$PWD/.cox-verify.XXXXXX") || exit 1
echo 0 >"$d/met"
mkfifo "$d/in" "$d/out" || exit 1
srun sh -c '
start=$(date +%s.%N)
echo cox-verify here
read seen
echo cox-verify "rank=$SLURM_PROCID" "of=$SLURM_NTASKS" "node=${SLURMD_NODENAME:-$(hostname)}" "job=$SLURM_JOB_ID" "start=$start" "end=$(date +%s.%N)" \
	"seen=$((seen))" "devices=${CUDA_VISIBLE_DEVICES:-${ROCR_VISIBLE_DEVICES:-}}" "place=${SLURM_TOPOLOGY_ADDR:-}" \
	"given=${NVIDIA_VISIBLE_DEVICES:-}"
' <"$d/in" >"$d/out" &
ranks=$!
exec 3>"$d/in"
(
	tries=0
	while [ $tries -lt 1200 ] && [ -d "$d" ]; do
		tries=$((tries+1))
		sleep 0.1
	done
	[ ! -d "$d" ] || cat "$d/met" >&3
) </dev/null >/dev/null 2>&1 &
met=0
while read -r line; do
	case $line in
	*"cox-verify here"*)
		met=$((met+1))
		echo $met >"$d/met"
		[ $met -lt "$SLURM_NTASKS" ] || echo $met >&3
		;;
	*) echo "$line" ;;
	esac
done <"$d/out"
exec 3>&-
wait $ranks
rc=$?
rm -rf "$d"
`

// quoteShell is a text as one word of a shell.
func quoteShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// Rank is what one rank has said.
type Rank struct {
	Rank    int       `json:"rank"`
	Of      int       `json:"of"`
	Node    string    `json:"node"`
	Job     string    `json:"job"` // its number where it ran
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	Seen    int       `json:"seen"`            // ranks that it met, itself too
	Devices []string  `json:"devices"`         // as its programs see them
	Given   []string  `json:"given,omitempty"` // by a plugin to its container, by their names; none: it is in no container, or nothing says so
	Place   string    `json:"place,omitempty"` // leaf, from the top down
	Ports   []string  `json:"ports,omitempty"` // of InfiniBand, with their state: "mlx5_0:1:ACTIVE"
}

// Read reads what ranks have printed, in their order. Other lines are left out.
func Read(output string) []Rank {
	var out []Rank
	for line := range strings.Lines(output) {
		_, rest, ok := strings.Cut(line, "cox-verify rank=")
		if !ok {
			continue
		}
		has := map[string]string{}
		for field := range strings.FieldsSeq("rank=" + rest) {
			key, value, _ := strings.Cut(field, "=")
			has[key] = value
		}
		r := Rank{Node: has["node"], Job: has["job"], Started: parseUnixTime(has["start"]), Ended: parseUnixTime(has["end"]), Devices: []string{}}
		var err error
		for into, key := range map[*int]string{&r.Rank: "rank", &r.Of: "of", &r.Seen: "seen"} {
			if *into, err = strconv.Atoi(has[key]); err != nil {
				break
			}
		}
		if err != nil || r.Node == "" {
			continue // a line that was cut off
		}
		if d := has["devices"]; d != "" && d != "NoDevFiles" {
			r.Devices = strings.Split(d, ",")
		}
		if g := has["given"]; g != "" && g != "all" && g != "none" && g != "void" { // these are an image's own words
			r.Given = strings.Split(g, ",")
		}
		if p := has["ib"]; p != "" {
			r.Ports = strings.Split(p, ",")
		}
		if at := strings.LastIndexByte(has["place"], '.'); at > 0 && has["place"][at+1:] == r.Node { // spine.leaf1.node
			r.Place = strings.ReplaceAll(has["place"][:at], ".", "/")
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Rank) int { return a.Rank - b.Rank })
	return out
}

// parseUnixTime is a time in seconds with a fraction; a date without fractions prints "N" for it.
func parseUnixTime(text string) time.Time {
	whole, part, _ := strings.Cut(text, ".")
	s, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}
	}
	n, err := strconv.ParseInt(part, 10, 64)
	if err != nil || len(part) != 9 {
		n = 0
	}
	return time.Unix(s, n)
}
