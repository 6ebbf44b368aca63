package slurmtest

import (
	"maps"
	"os"
	"os/user"
	"slices"
	"strings"
	"testing"
)

// all reports whether every header is to be compared, not a sample.
func all() bool { return os.Getenv("COX_SLURM_ALL") != "" }

// sample takes n headers, the same ones each time: all that sbatch is recorded to
// refuse, and of the others evenly. COX_SLURM_ALL=1 takes every header.
func sample(headers []header, n int) []header {
	if all() {
		return headers
	}
	var refused, accepted []header
	for _, h := range headers {
		if h.Accepted {
			accepted = append(accepted, h)
		} else {
			refused = append(refused, h)
		}
	}
	rest := n - len(refused)
	for i := range rest {
		refused = append(refused, accepted[i*len(accepted)/rest])
	}
	return refused
}

// differ lists where sbatch answers otherwise than Coxswain does on purpose.
var differ = []struct {
	real, ours verdict
	why        string
}{
	{
		verdict{"unknown option", "container-image"},
		verdict{},
		"the options of pyxis are known here even where a site lacks the plugin",
	},
	{
		verdict{},
		verdict{"unwanted argument", "get-user-env"},
		"22.05 takes the argument still, newer versions do not; here it is a warning unless all is strict",
	},
	{
		verdict{},
		verdict{"value", "gpus-per-node"},
		"22.05 takes --gres=gpu and --gpus-per-node together, newer versions do not; here it is a warning unless all is strict",
	},
	{
		verdict{},
		verdict{"value", "priority"},
		"22.05 reads a word as 0, which holds the job for ever",
	},
	{
		verdict{"value", "nodes"},
		verdict{"stray word", "2"},
		"of --nodes= 2 sbatch blames the empty value, here the word behind the blank is blamed",
	},
	{
		verdict{"value", "cpus-per-task"},
		verdict{"stray word", "6"},
		"of --cpus-per-task= 6 sbatch blames the empty value, here the word behind the blank is blamed",
	},
	{
		verdict{"value", "partition"},
		verdict{},
		"a placeholder: whether a partition exists is not known to the reader",
	},
	{
		verdict{"value", "clusters"},
		verdict{},
		"whether a cluster exists is not known to the reader, and the lab has no database to ask",
	},
	{
		verdict{"does not fit", ""},
		verdict{},
		"with --exclusive a job gets all GPUs of the lab's nodes, 8 of every type, and --cpus-per-gpu wants CPUs for each",
	},
}

// listed returns the number of the difference in the table, or -1.
func listed(real verdict, ours []verdict) int {
	for i, d := range differ {
		if d.real == real && (d.ours == verdict{} && len(ours) == 0 || slices.Contains(ours, d.ours)) {
			return i
		}
	}
	return -1
}

// reserve makes the reservations that the headers name, for as long as the test runs.
func (l *lab) reserve(t *testing.T, headers []header) {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		for _, name := range h.values("reservation") {
			l.run(t, "scontrol", "create", "reservation", "ReservationName="+name, "StartTime=now", "Duration=1-0",
				"Users="+me.Username, "Nodes=node[1-16]", "Flags=OVERLAP") // there may be one by that name already
		}
	}
	t.Cleanup(func() {
		l.run(t, "scancel", "--state=PENDING", "--quiet")
		for _, h := range headers {
			for _, name := range h.values("reservation") {
				l.run(t, "scontrol", "delete", "ReservationName="+name)
			}
		}
	})
}

// sbatch --test-only takes and refuses the same public scripts, for the same reason.
func TestSbatchTakesTheSame(t *testing.T) {
	l := openLab(t)
	headers := readHeaders(t)
	l.reserve(t, headers)
	count, differences := map[string]int{}, make([]int, len(differ))
	for _, h := range sample(headers, 150) {
		text := h.script()
		real := complaint(t, l.run(t, "sbatch", "--test-only", l.write(t, text)))
		_, ours := l.parse(text, true)
		n := listed(real, ours)
		switch {
		case real == (verdict{}) && len(ours) == 0:
			count["both accept"]++
		case agree(real, ours):
			count["both refuse: "+real.kind]++
			if _, ours := l.parse(text, false); len(ours) == 0 {
				count["  … taken here with a warning, unless strict"]++
			}
		case n >= 0:
			differences[n]++
		default:
			t.Errorf("%s: sbatch: %v; here: %v\n%s", h.Source, real, ours, strings.Join(h.Lines, "\n"))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(count)) {
		t.Logf("%3d %s", count[k], k)
	}
	for i, d := range differ {
		if differences[i] > 0 {
			t.Logf("%3d differ: sbatch: %v; here: %v: %s", differences[i], d.real, d.ours, d.why)
		} else if all() {
			t.Errorf("the difference %v, %v is listed, but there is none", d.real, d.ours)
		}
	}
	if count["both accept"] < 75 || count["both refuse: unknown option"] == 0 || count["both refuse: stray word"] == 0 {
		t.Errorf("too little was compared: %v", count)
	}
}
