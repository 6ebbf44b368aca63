package slurmtest

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// generator makes the same texts every time.
type generator struct{ *rand.Rand }

func newGenerator() generator { return generator{rand.New(rand.NewPCG(1, 2))} }

func (g generator) one(of ...string) string { return of[g.IntN(len(of))] }

// list makes a host list of one to four items with up to two brackets each.
func (g generator) list() string {
	var items []string
	for range 1 + g.IntN(4) {
		item := g.one("n", "gpu", "rack1-", "a-b", "7x")
		for range g.IntN(3) {
			item += "[" + g.ranges() + "]"
		}
		items = append(items, item)
	}
	return strings.Join(items, ",")
}

func (g generator) ranges() string {
	var parts []string
	for range 1 + g.IntN(3) {
		low := g.IntN(12)
		width := g.one("%d", "%02d", "%03d")
		part := fmt.Sprintf(width, low)
		if g.IntN(2) == 0 {
			part += "-" + fmt.Sprintf(width, low+g.IntN(5))
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ",")
}

// spoil makes one mistake.
func (g generator) spoil(list string) string {
	at := g.IntN(len(list) + 1)
	return list[:at] + g.one("[", "]", "-", ",", "x", "[3-1]", "[1-", "[]") + list[at:]
}

// Host lists expand to the same names in the same order and are written in the same
// short form. The lists of one question are separated by names of their own.
func TestHostlists(t *testing.T) {
	l := openLab(t)
	g := newGenerator()
	const batch = 50
	for range 4 {
		var lists []string
		for range batch {
			lists = append(lists, g.list())
		}
		const mark = "mark"
		out := l.run(t, "scontrol", "show", "hostnames", strings.Join(lists, ","+mark+",")).stdout
		answers := strings.Split(strings.TrimSpace(out), "\n"+mark+"\n")
		if len(answers) != batch {
			t.Fatalf("%d answers for %d lists", len(answers), batch)
		}
		for i, list := range lists {
			names, err := hostlist.Expand(list)
			if err != nil {
				t.Errorf("%s: %v", list, err)
				continue
			}
			if got := strings.Join(names, "\n"); got != answers[i] {
				t.Errorf("%s is %q, scontrol says %q", list, got, answers[i])
			}
			short := strings.TrimSpace(l.run(t, "scontrol", "show", "hostlist", strings.Join(names, ",")).stdout)
			if got := hostlist.CompressInOrder(names); got != short {
				t.Errorf("%q in short is %s, scontrol says %s", names, got, short)
			}
			slices.Sort(names)
			names = slices.Compact(names)
			sorted := strings.TrimSpace(l.run(t, "scontrol", "show", "hostlistsorted", strings.Join(names, ",")).stdout)
			if got := hostlist.Compress(names); got != sorted {
				t.Errorf("%q sorted is %s, scontrol says %s", names, got, sorted)
			}
		}
	}
}

// A list with a mistake that is taken nevertheless means what scontrol says. The
// other way round does not hold: of unbalanced brackets scontrol makes names with
// brackets in them, and it takes "[3-]" for 3.
func TestBadHostlists(t *testing.T) {
	l := openLab(t)
	g := newGenerator()
	count := map[string]int{}
	for range 200 {
		list := g.spoil(g.list())
		names, err := hostlist.Expand(list)
		r := l.run(t, "scontrol", "show", "hostnames", list)
		invalid := r.code != 0 || strings.Contains(r.stdout+r.stderr, "Invalid")
		switch {
		case err != nil && invalid:
			count["refused by both"]++
		case err != nil:
			count["refused here"]++
		case suffix.MatchString(list):
			count["with a suffix, newer than 22.05"]++
		case strings.HasPrefix(list, "-"):
			count["an option to scontrol"]++
		case strings.Join(names, "\n") == strings.TrimSpace(r.stdout):
			count["taken by both"]++
		default:
			t.Errorf("%s: %q; scontrol: %q", list, names, r.stdout+r.stderr)
		}
	}
	t.Log(count)
	if count["refused by both"] < 20 || count["taken by both"] < 20 {
		t.Error("too little was compared")
	}
}

// suffix matches a list with text behind an item's last bracket.
var suffix = regexp.MustCompile(`\][^],[]`)

// time makes a time limit, sometimes one with a mistake.
func (g generator) time() string {
	n := func() string { return g.one("0", "1", "5", "07", "30", "59", "60", "61", "90", "100", "365") }
	s := n()
	if g.IntN(2) == 0 {
		s += "-" + n()
	}
	for range g.IntN(3) {
		s += ":" + n()
	}
	if g.IntN(4) == 0 {
		at := g.IntN(len(s) + 1)
		s = s[:at] + g.one("-", ":", "x", " ", "+", ".") + s[at:]
	}
	return s
}

// Time limits are read as scontrol reads them for a job that is there.
func TestTimes(t *testing.T) {
	l := openLab(t)
	g := newGenerator()
	id := strings.TrimSpace(l.run(t, "sbatch", "--hold", "--parsable", l.write(t, "#!/bin/sh\ntrue\n")).stdout)
	refused, taken := 0, 0
	for range 80 {
		text := g.time()
		ours, err := slurmfmt.ParseTimeLimit(text)
		r := l.run(t, "scontrol", "update", "JobId="+id, "TimeLimit="+text)
		shown := readFields(l.run(t, "scontrol", "show", "job", id).stdout)["TimeLimit"]
		want := limit(ours, "UNLIMITED")
		if ours == 0 && !strings.ContainsAny(text, "123456789") {
			want = "00:00:00" // 0 is no limit to sbatch alone
		}
		switch {
		case text[0] == '-' || text[0] == '+': // scontrol changes the limit by so much
		case err != nil && r.code != 0:
			refused++
		case err == nil && r.code == 0 && want == shown:
			taken++
		default:
			t.Errorf("%q: %s, %v; scontrol: %s %s", text, want, err, shown, r.stderr)
		}
	}
	t.Logf("%d refused by both, %d taken by both", refused, taken)
}
