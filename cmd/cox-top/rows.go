package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/printer"
)

// row is a line of a list; key names it over all changes.
type row struct {
	key  string
	node *api.Node         // of the nodes
	job  *printer.QueueRow // of the jobs and of the queue
	pool *api.Pool         // of the pools
}

// sorting is one way to order a list.
type sorting struct {
	name string
	by   func(now time.Time, a, b row) int
}

// sorts are the ways to order each list; the first is the one that it begins with.
var sorts = [views][]sorting{
	nodesView: {
		{"name", func(_ time.Time, a, b row) int { return compareNatural(a.key, b.key) }},
		{"free GPUs", func(_ time.Time, a, b row) int { return cmp.Compare(freeDevices(b.node), freeDevices(a.node)) }},
		{"free CPUs", func(_ time.Time, a, b row) int {
			return cmp.Compare(b.node.CPUs-b.node.CPUsUsed, a.node.CPUs-a.node.CPUsUsed)
		}},
		{"state", func(_ time.Time, a, b row) int { return cmp.Compare(a.node.State, b.node.State) }},
	},
	jobsView: {
		{"started", func(_ time.Time, a, b row) int { return b.job.Started.Compare(a.job.Started) }},
		{"GPUs", byGPUs},
		{"time left", func(now time.Time, a, b row) int { return cmp.Compare(timeLeft(a.job, now), timeLeft(b.job, now)) }},
		{"user", byUser},
	},
	queueView: {
		{"priority", func(_ time.Time, a, b row) int {
			return cmp.Or(cmp.Compare(heldRank(a.job), heldRank(b.job)), cmp.Compare(b.job.Priority, a.job.Priority))
		}},
		{"waited", func(_ time.Time, a, b row) int { return a.job.Submitted.Compare(b.job.Submitted) }},
		{"GPUs", byGPUs},
		{"user", byUser},
	},
	poolsView: {
		{"name", func(_ time.Time, a, b row) int { return compareNatural(a.key, b.key) }},
		{"free GPUs", func(_ time.Time, a, b row) int {
			return cmp.Compare(b.pool.Devices-b.pool.DevicesUsed, a.pool.Devices-a.pool.DevicesUsed)
		}},
		{"state", func(_ time.Time, a, b row) int { return cmp.Compare(a.pool.State, b.pool.State) }},
	},
}

// heldRank is 1 for a job that waits for somebody to release it: it stands in no line.
func heldRank(r *printer.QueueRow) int {
	if slices.Contains(r.Flags, "HELD") {
		return 1
	}
	return 0
}

func byGPUs(_ time.Time, a, b row) int { return cmp.Compare(b.job.GPUs, a.job.GPUs) }

func byUser(_ time.Time, a, b row) int { return cmp.Compare(a.job.User, b.job.User) }

func freeDevices(n *api.Node) int { return len(n.Devices) - printer.Busy(n.Devices) }

// timeLeft is how long a job may still run; one without a limit comes last.
func timeLeft(r *printer.QueueRow, now time.Time) time.Duration {
	if r.Limit == 0 {
		return 1<<63 - 1
	}
	return r.Limit - now.Sub(r.Started)
}

// compareNatural orders v2 before v10.
func compareNatural(a, b string) int {
	pa, na := splitNumber(a)
	pb, nb := splitNumber(b)
	return cmp.Or(cmp.Compare(pa, pb), cmp.Compare(na, nb), cmp.Compare(a, b))
}

func splitNumber(s string) (prefix string, n int) {
	at := len(s)
	for at > 0 && s[at-1] >= '0' && s[at-1] <= '9' {
		at--
	}
	n, err := strconv.Atoi(s[at:])
	if err != nil {
		return s, 0
	}
	return s[:at], n
}

// viewRows are the rows of the present view, filtered and sorted. They are made anew
// after a look and after a key, not for every screen.
func (m *model) viewRows() []row {
	if m.made == nil {
		m.made = m.makeRows()
	}
	return m.made
}

func (m *model) makeRows() []row {
	l := m.currentList()
	rows := m.allRows()
	if want := newMatcher(l.filter); !want.isEmpty() {
		rows = slices.DeleteFunc(rows, func(r row) bool { return !want.matches(r.filterText()) })
	}
	by, now := sorts[m.view][l.sort].by, m.now()
	slices.SortStableFunc(rows, func(a, b row) int {
		if l.down {
			a, b = b, a
		}
		return by(now, a, b)
	})
	return rows
}

// allRows are the rows of the present view, as the server gave them.
func (m *model) allRows() []row {
	rows := []row{}
	switch m.view {
	case nodesView:
		for i := range m.seen.nodes {
			rows = append(rows, row{key: m.seen.nodes[i].Name, node: &m.seen.nodes[i]})
		}
	case poolsView:
		for i := range m.seen.pools {
			rows = append(rows, row{key: m.seen.pools[i].Name, pool: &m.seen.pools[i]})
		}
	default:
		for i := range m.seen.jobs {
			if j := &m.seen.jobs[i]; (j.State == "PENDING") == (m.view == queueView) {
				rows = append(rows, row{key: j.Name, job: j})
			}
		}
	}
	return rows
}

// filterText is what a filter looks at.
func (r *row) filterText() string {
	if n := r.node; n != nil {
		return strings.Join([]string{n.Name, n.State, n.Pool, n.Why, printer.Types(n.Devices), strings.Join(n.Jobs, " "), strings.Join(n.Partitions, " ")}, " ")
	}
	if p := r.pool; p != nil {
		return strings.Join([]string{p.Name, p.Engine, p.Version, p.State, p.Why, p.Gang}, " ")
	}
	j := r.job
	return strings.Join([]string{j.Name, j.JobName, j.User, j.Account, j.Partition, j.QOS, j.State, j.ReasonText, j.NodeList}, " ")
}

// jobSubject names a job in a question.
func jobSubject(j *printer.QueueRow) string {
	return fmt.Sprintf("%s %s of %s", j.Name, printer.Clean(j.JobName), printer.Clean(j.User))
}

// firstJob is the job of a row, the first one of a row that stands for several.
func firstJob(name string) string {
	array, set, several := strings.Cut(name, "_[")
	if !several {
		return name
	}
	first := strings.IndexAny(set, "-,%:]")
	if first < 0 {
		return name
	}
	return array + "_" + set[:first]
}
