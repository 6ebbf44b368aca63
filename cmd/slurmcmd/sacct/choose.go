package sacct

import (
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// choice are the filters that the server does not know: rows are chosen by them here.
type choice struct {
	constraints, reasons     []string
	groups                   []string // numbers
	nodes, cpus              countRange
	shortestLimit, longLimit int64 // minutes, 0: not given
}

// countRange is "4" or "4-8"; zero values: any number.
type countRange struct{ low, high int64 }

func (c *choice) options() []slurmcmd.Option {
	return []slurmcmd.Option{
		slurmcmd.List("constraints", 'C', &c.constraints),
		slurmcmd.Filter("gid", 'g', c.addGroups),
		slurmcmd.Alias("group", "gid"),
		slurmcmd.Filter("nnodes", 'i', func(s string) error { return c.nodes.set("invalid node range -i", s) }),
		slurmcmd.Filter("ncpus", 'I', func(s string) error { return c.cpus.set("invalid cpu range -I", s) }),
		slurmcmd.List("reason", 'R', &c.reasons),
		slurmcmd.Filter("timelimit-min", 'k', func(s string) error { return setLimit(&c.shortestLimit, s) }),
		slurmcmd.Filter("timelimit-max", 'K', func(s string) error { return setLimit(&c.longLimit, s) }),
	}
}

func (c *choice) addGroups(s string) error {
	for _, name := range slurmcmd.SplitFilter(s) {
		id, ok := slurmcmd.GroupID(name)
		if !ok && name != "" {
			return slurmcmd.Textf("Invalid group id: %s", name)
		}
		if name != "" {
			name = strconv.FormatUint(uint64(id), 10)
		}
		c.groups = append(c.groups, name)
	}
	return nil
}

func (r *countRange) set(complaint, s string) error {
	low, high, ranged := strings.Cut(s, "-")
	var err, err2 error
	r.low, err = strconv.ParseInt(low, 10, 64)
	if r.high = r.low; ranged {
		r.high, err2 = strconv.ParseInt(high, 10, 64)
	}
	if err != nil || err2 != nil || r.low < 1 || r.high < r.low {
		return slurmcmd.Textf("%s '%s'", complaint, s)
	}
	return nil
}

// has reports whether a number is in the range.
func (r countRange) has(n int64) bool { return r.low == 0 || n >= r.low && n <= r.high }

// setLimit reads a time limit in Slurm's forms. A limit of none is refused: no job is without.
func setLimit(to *int64, s string) error {
	d, err := slurmfmt.ParseTimeLimit(s)
	if err != nil || d <= 0 {
		return &slurmcmd.PlainError{Text: "sacct: fatal: Invalid time limit specification"}
	}
	*to = int64((d + 59e9) / 60e9)
	return nil
}

// needs are the columns that the filters look at.
func (c *choice) needs() []column.Column {
	return []column.Column{column.Features, column.GID, column.NodesMin, column.CPUs, column.TimeLimit, column.Reason}
}

// takes reports whether a job passes the filters.
func (c *choice) takes(r jobs.Row) bool {
	ran := r.Base() != job.Pending && r.Int(column.Started) > 0
	limit := (r.Int(column.TimeLimit) + 59) / 60
	switch {
	case slices.ContainsFunc(c.constraints, func(f string) bool { return !strings.Contains(r.Text(column.Features), f) }),
		len(c.groups) > 0 && !slices.Contains(c.groups, r.Text(column.GID)),
		c.nodes.low > 0 && !(ran && c.nodes.has(max(r.Int(column.NodesMin), 1))),
		c.cpus.low > 0 && !(ran && c.cpus.has(r.Int(column.CPUs))),
		len(c.reasons) > 0 && !slices.ContainsFunc(c.reasons, func(word string) bool { return strings.EqualFold(word, r.ReasonWord()) }),
		c.shortestLimit > 0 && c.longLimit == 0 && limit != c.shortestLimit,
		c.shortestLimit > 0 && c.longLimit > 0 && (limit < c.shortestLimit || limit > c.longLimit):
		return false
	}
	return true
}

// reasonWords are Slurm's words for why a job waits.
func reasonWords() (out []string) {
	for _, c := range reason.Codes() {
		if w := c.Slurm(); !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	slices.Sort(out)
	return out
}
