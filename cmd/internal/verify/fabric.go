package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fabricBody is body where the ranks measure what lies between them (package agent/fabric): each says
// where it listens, and when all have done so, or after two minutes, all are told of all. A node
// without cox takes no part, and says so.
const fabricBody = `d=$(mktemp -d 2>/dev/null) || d=$(mktemp -d "$PWD/.cox-verify.XXXXXX") || exit 1
echo 0 >"$d/met"
mkfifo "$d/in" "$d/out" || exit 1
srun sh -c '
for b in "$(command -v cox 2>/dev/null)" "$COX_VERIFY_BINARY"; do
	[ -n "$b" ] && [ -x "$b" ] && "$b" fabric-rank check >/dev/null 2>&1 && exec "$b" fabric-rank
done
start=$(date +%s.%N)
echo "cox-verify here $SLURM_PROCID|-|-"
read seen others
echo cox-verify "rank=$SLURM_PROCID" "of=$SLURM_NTASKS" "node=${SLURMD_NODENAME:-$(hostname)}" "job=$SLURM_JOB_ID" "start=$start" "end=$(date +%s.%N)" \
	"seen=$((seen))" "devices=${CUDA_VISIBLE_DEVICES:-${ROCR_VISIBLE_DEVICES:-}}" "place=${SLURM_TOPOLOGY_ADDR:-}" \
	"given=${NVIDIA_VISIBLE_DEVICES:-}"
echo cox-verify trouble "rank=$SLURM_PROCID" "text=\"its node has no cox\""
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
all=
while read -r line; do
	case $line in
	*"cox-verify here "*)
		met=$((met+1))
		all="$all ${line#*cox-verify here }"
		echo "$met$all" >"$d/new"
		mv "$d/new" "$d/met"
		[ $met -lt "$SLURM_NTASKS" ] || echo "$met$all" >&3
		;;
	*) echo "$line" ;;
	esac
done <"$d/out"
exec 3>&-
wait $ranks
rc=$?
rm -rf "$d"
`

// Link is how fast a rank got data from the one before it, while all ranks did so.
type Link struct {
	Rank  int     `json:"rank"`
	From  int     `json:"from"`
	Rate  float64 `json:"gb_per_s"`       // 10⁹ bytes a second
	Where string  `json:"over,omitempty"` // the interface that received it
}

// Reduce is the all-reduces of one size.
type Reduce struct {
	Bytes int     `json:"bytes"`
	Ranks int     `json:"ranks"` // that measured it
	Rate  float64 `json:"bus_gb_per_s"`
	// Slowest is the rank of which the rate is: the smallest of all.
	Slowest int `json:"slowest_rank"`
}

// Trouble is what a rank could not do.
type Trouble struct {
	Rank int    `json:"rank"`
	Text string `json:"text"`
}

// Fabric is what the ranks have measured.
type Fabric struct {
	Links    []Link    `json:"links"`
	Reduces  []Reduce  `json:"all_reduces"`
	Troubles []Trouble `json:"troubles,omitempty"`
	NCCL     []NCCL    `json:"nccl,omitempty"` // by host; none: nothing of it was in the output
}

// ReadFabric reads what ranks have printed of it.
func ReadFabric(output string) *Fabric {
	f := &Fabric{Links: []Link{}, Reduces: []Reduce{}, NCCL: ReadNCCL(output)}
	reduces := map[int]*Reduce{}
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if _, rest, ok := strings.Cut(line, "cox-verify trouble "); ok {
			head, quoted, _ := strings.Cut(rest, "text=")
			if text, err := strconv.Unquote(quoted); err == nil {
				f.Troubles = append(f.Troubles, Trouble{fieldsOf(head).number("rank"), text})
			}
			continue
		}
		if _, rest, ok := strings.Cut(line, "cox-verify link "); ok {
			has := fieldsOf(rest)
			if rate := rateOf(has.number("bytes"), has.number("ns")); rate > 0 && has.number("rank") >= 0 {
				f.Links = append(f.Links, Link{has.number("rank"), has.number("from"), rate, has["over"]})
			}
			continue
		}
		_, rest, ok := strings.Cut(line, "cox-verify ring ")
		if !ok {
			continue
		}
		has := fieldsOf(rest)
		bytes, n := has.number("bytes"), has.number("of")
		rate := rateOf(bytes, has.number("ns"))
		if rate == 0 || n < 2 || has.number("rank") < 0 {
			continue
		}
		rate *= 2 * float64(n-1) / float64(n)
		r := reduces[bytes]
		if r == nil {
			r = &Reduce{Bytes: bytes, Rate: rate, Slowest: has.number("rank")}
			reduces[bytes] = r
		}
		if r.Ranks++; rate < r.Rate {
			r.Rate, r.Slowest = rate, has.number("rank")
		}
	}
	for _, r := range reduces {
		f.Reduces = append(f.Reduces, *r)
	}
	slices.SortFunc(f.Links, func(a, b Link) int { return a.Rank - b.Rank })
	slices.SortFunc(f.Reduces, func(a, b Reduce) int { return a.Bytes - b.Bytes })
	slices.SortFunc(f.Troubles, func(a, b Trouble) int { return a.Rank - b.Rank })
	return f
}

// fields are NAME=VALUE of a line.
type fields map[string]string

func fieldsOf(text string) fields {
	has := fields{}
	for field := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(field, "=")
		has[key] = value
	}
	return has
}

func (f fields) number(key string) int {
	n, err := strconv.Atoi(f[key])
	if err != nil {
		return -1
	}
	return n
}

// rateOf is a rate in 10⁹ bytes a second; 0: it was not measured.
func rateOf(bytes, ns int) float64 {
	if bytes <= 0 || ns <= 0 {
		return 0
	}
	return float64(bytes) / float64(time.Duration(ns).Nanoseconds())
}

// slowPart is the part of the median of the links below which one is slow. With two links there is
// nothing to compare.
const slowPart = 0.25

// JudgeFabric says of the network between the ranks whether it was as it should be. held are the nodes
// of the job in the order of ranks, as far as they are known: ranks that said nothing are named by them.
func JudgeFabric(o *Order, ranks []Rank, f *Fabric, held []string) []Check {
	if o.Nodes < 2 {
		return []Check{{What: "fabric", OK: true, Text: "one rank: nothing lies between"}}
	}
	nodeOf := func(rank int) string {
		for i := range ranks {
			if ranks[i].Rank == rank {
				return ranks[i].Node
			}
		}
		if rank >= 0 && rank < len(held) {
			return held[rank]
		}
		return "a node that is not known"
	}
	out := []Check{checkJoined(o, ranks, nodeOf), checkReduce(o, f, nodeOf), checkLinks(o, f, nodeOf)}
	if c := checkNCCL(o, ranks, f.NCCL); c.What != "" {
		out = append(out, c)
	}
	return out
}

// checkJoined: every rank has said that it is there.
func checkJoined(o *Order, ranks []Rank, nodeOf func(int) string) Check {
	var missing []string
	for rank := range o.Nodes {
		if !slices.ContainsFunc(ranks, func(r Rank) bool { return r.Rank == rank }) {
			missing = append(missing, fmt.Sprintf("rank %d on %s", rank, nodeOf(rank)))
		}
	}
	if len(missing) > 0 {
		return Check{What: "joined", Text: "never joined: " + strings.Join(missing, ", "), Mend: "look at that node: cox logs of the job, and the log of its slurmd, kubelet or supervisor"}
	}
	return Check{What: "joined", OK: true, Text: "every rank said where it is"}
}

// checkReduce: all ranks measured all-reduces, with the right sum.
func checkReduce(o *Order, f *Fabric, nodeOf func(int) string) Check {
	c := Check{What: "all-reduce"}
	if len(f.Troubles) > 0 {
		var texts []string
		for _, t := range f.Troubles {
			texts = append(texts, fmt.Sprintf("rank %d on %s: %s", t.Rank, nodeOf(t.Rank), t.Text))
		}
		c.Text = strings.Join(texts, "; ")
		c.Mend = "do firewalls let the nodes connect to each other on any port?"
		if len(f.Links) == o.Nodes {
			c.Mend = "all were connected before: look at these nodes' load, and at the errors and MTU of their interfaces (ip -s link)"
		}
		if slices.ContainsFunc(f.Troubles, func(t Trouble) bool { return strings.Contains(t.Text, "has no cox") }) {
			c.Mend = "install cox on the nodes, or call cox from a directory that they share"
		}
		return c
	}
	var texts []string
	for _, r := range f.Reduces {
		if r.Ranks != o.Nodes {
			c.Text = fmt.Sprintf("%d of %d ranks ended that of %d MB", r.Ranks, o.Nodes, r.Bytes>>20)
			c.Mend = "cox logs of the job has what the ranks said"
			return c
		}
		texts = append(texts, fmt.Sprintf("%d MB %s", r.Bytes>>20, rateText(r.Rate)))
	}
	if len(texts) == 0 {
		c.Text, c.Mend = "no rank measured one", "cox logs of the job has what the ranks said"
		return c
	}
	c.OK, c.Text = true, "bus bandwidth over TCP, of the slowest rank: "+strings.Join(texts, ", ")
	return c
}

// checkLinks: no rank gets its data much slower than the others.
func checkLinks(o *Order, f *Fabric, nodeOf func(int) string) Check {
	c := Check{What: "links"}
	if len(f.Links) != o.Nodes {
		c.Text, c.Mend = fmt.Sprintf("%d of %d were measured", len(f.Links), o.Nodes), "cox logs of the job has what the ranks said"
		return c
	}
	links := slices.SortedFunc(slices.Values(f.Links), func(a, b Link) int { return cmp.Compare(a.Rate, b.Rate) })
	slowest, median := links[0], links[len(links)/2].Rate
	text := func(l Link) string {
		s := fmt.Sprintf("rank %d on %s gets %s from rank %d on %s", l.Rank, nodeOf(l.Rank), rateText(l.Rate), l.From, nodeOf(l.From))
		if l.Where != "" {
			s += " over " + l.Where
		}
		return s
	}
	if len(links) > 2 && slowest.Rate < slowPart*median {
		var slow []string
		for _, l := range links {
			if l.Rate < slowPart*median {
				slow = append(slow, text(l))
			}
		}
		c.Text = fmt.Sprintf("slow: %s; half of the ranks get %s or more", strings.Join(slow, "; "), rateText(median))
		c.Mend = "once more, to see whether it stays; then the speed of that node's interface, its cable and its switch port"
		return c
	}
	c.OK, c.Text = true, "the slowest: "+text(slowest)
	return c
}

// rateText is "1.25 GB/s".
func rateText(rate float64) string {
	if rate < 0.095 {
		return fmt.Sprintf("%.1f MB/s", rate*1000)
	}
	return fmt.Sprintf("%.2f GB/s", rate)
}
