package printer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// QueueRow is a job as a list shows it.
type QueueRow struct {
	Name, JobName, User, Account, Partition, QOS string
	State                                        string
	Flags                                        []string
	Reason, ReasonText                           string
	Priority                                     int64
	Submitted, Started, Ended, StartsBy          time.Time
	Limit                                        time.Duration // 0: none
	Nodes                                        int           // held, or asked for
	NodeList                                     string
	Pool                                         string // empty: not known
	GPUs, CPUs                                   float64
}

// queueColumns are the columns that a list of jobs is made of.
var queueColumns = []column.Column{
	column.Name, column.JobName, column.User, column.Account, column.Partition, column.QOS, column.State, column.Flags,
	column.Reason, column.ReasonText, column.Priority, column.Submitted, column.Started, column.Ended, column.StartsBy,
	column.TimeLimit, column.NodesMin, column.NodeList, column.GPUs, column.CPUs, column.Pool,
}

// QueueColumns names the columns that QueueRowFrom reads, in its order.
func QueueColumns() []string { return column.Names(queueColumns) }

// QueueRowFrom reads a line of a list asked for with QueueColumns. A field that
// is no number counts as not known.
func QueueRowFrom(fields []string) (QueueRow, error) {
	if len(fields) != len(queueColumns) {
		return QueueRow{}, fmt.Errorf("a list of jobs has %d columns, %d were asked for", len(fields), len(queueColumns))
	}
	f := fields
	r := QueueRow{
		Name: f[0], JobName: f[1], User: f[2], Account: f[3], Partition: f[4], QOS: f[5], State: f[6],
		Reason: f[8], ReasonText: f[9], Priority: int64(parseNumber(f[10])),
		Submitted: parseUnix(f[11]), Started: parseUnix(f[12]), Ended: parseUnix(f[13]), StartsBy: parseUnix(f[14]),
		Limit: Seconds(parseNumber(f[15])), Nodes: int(parseNumber(f[16])), NodeList: f[17], GPUs: parseNumber(f[18]), CPUs: parseNumber(f[19]), Pool: f[20],
	}
	if f[7] != "" {
		r.Flags = strings.Split(f[7], ",")
	}
	return r, nil
}

func parseNumber(s string) float64 {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0
	}
	return n
}

func parseUnix(s string) time.Time {
	n := parseNumber(s)
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(int64(n), 0)
}

// QueueRowOf makes the row of a whole job.
func QueueRowOf(j *api.Job) QueueRow {
	r := QueueRow{
		Name: j.Name, State: j.State, Flags: j.Flags, Priority: j.Priority,
		Submitted: j.Submitted, Started: j.Started, Ended: j.Ended, StartsBy: j.StartsBy, Pool: j.Pool,
	}
	if j.Why != nil {
		r.Reason, r.ReasonText = string(j.Why.Code), j.Why.String()
	}
	if s := j.Spec; s != nil {
		r.JobName, r.User, r.Account, r.QOS, r.Limit = s.Name, s.Owner.User, s.Account, s.QOS, s.TimeLimit
		r.Pool = cmp.Or(r.Pool, s.Pool)
		r.Partition = strings.Join(s.Partitions, ",")
		var gpus int
		r.Nodes, gpus, r.CPUs = sumRequests(s)
		r.GPUs = float64(gpus)
	}
	if len(j.Claims) > 0 {
		nodes, gpus, cpus, _ := sumClaims(j.Claims)
		r.Nodes, r.NodeList, r.GPUs, r.CPUs = len(nodes), Hosts(nodes), float64(gpus), cpus
	}
	return r
}

// Jobs is how many jobs the row stands for: waiting tasks of an array stand in one.
func (r *QueueRow) Jobs() int {
	_, set, several := strings.Cut(r.Name, "_[")
	if !several {
		return 1
	}
	a, err := slurmfmt.ParseArray(strings.TrimSuffix(set, "]"), math.MaxUint32)
	if err != nil {
		return 1
	}
	n := 0
	for _, s := range a.Ranges {
		n += int((s.Hi-s.Lo)/s.Step) + 1
	}
	return n
}

// sumClaims sums claims; the nodes are in rank order.
func sumClaims(claims []api.Claim) (nodes []string, gpus int, cpus float64, memory int64) {
	seen := make(map[string]bool, len(claims))
	for _, c := range claims {
		if !seen[c.Node] {
			seen[c.Node] = true
			nodes = append(nodes, c.Node)
		}
		gpus += len(c.Devices) + c.Unnamed
		cpus += c.CPUs
		memory += c.Memory
	}
	return nodes, gpus, cpus, memory
}

// StateTone is the tone of a job's state. Unknown words are plain.
func StateTone(state string) Tone {
	switch state {
	case "RUNNING", "COMPLETED":
		return Good
	case "PENDING", "SUSPENDED", "PREEMPTED", "CANCELLED":
		return Warn
	case "FAILED", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY", "LOST":
		return Bad
	}
	return Plain
}

// Queue is the table of live jobs; wide adds what is asked for less often.
func Queue(p Page, rows []QueueRow, wide bool) *Table {
	t := &Table{Columns: []Column{
		{Title: "JOB"},
		{Title: "NAME", Least: 8},
		{Title: "USER", Least: 6},
		{Title: "STATE"},
		{Title: "TIME", Right: true},
		{Title: "LIMIT", Right: true, Spare: 1},
		{Title: "NODES", Right: true, Spare: 2},
		{Title: "GPUS", Right: true},
	}}
	several := ofPools(rows)
	if several {
		t.Columns = append(t.Columns, Column{Title: "POOL"})
	}
	if wide {
		t.Columns = append(t.Columns, Column{Title: "CPUS", Right: true}, Column{Title: "PARTITION"}, Column{Title: "ACCOUNT"},
			Column{Title: "QOS"}, Column{Title: "PRIORITY", Right: true}, Column{Title: "SUBMITTED"}, Column{Title: "STARTS BY"})
	}
	t.Columns = append(t.Columns, Column{Title: "WHERE OR WHY", Least: 12, Want: 30})
	t.Rows = make([][]Cell, 0, len(rows))
	for i := range rows {
		t.Rows = append(t.Rows, queueCells(p, &rows[i], wide, several))
	}
	return t
}

// ofPools reports whether jobs are of more than one pool, as far as is known.
func ofPools(rows []QueueRow) bool {
	one := ""
	for i := range rows {
		if name := rows[i].Pool; name != "" && one != "" && name != one {
			return true
		}
		one = cmp.Or(one, rows[i].Pool)
	}
	return false
}

func queueCells(p Page, r *QueueRow, wide, several bool) []Cell {
	cells := make([]Cell, 0, 16)
	cells = append(cells,
		Cell{Text: r.Name, Tone: Accent}, textCell(r.JobName), textCell(r.User), Cell{Text: stateWord(r), Tone: StateTone(r.State)},
		textCell(Elapsed(r.timeSpent(p.Now))), textCell(limitText(r.Limit)), textCell(strconv.Itoa(r.Nodes)), textCell(amountText(r.GPUs)))
	if several {
		cells = append(cells, textCell(r.Pool))
	}
	if wide {
		cells = append(cells, textCell(Number(r.CPUs)), textCell(r.Partition), textCell(r.Account), textCell(r.QOS),
			textCell(strconv.FormatInt(r.Priority, 10)), textCell(p.Time(r.Submitted)), textCell(p.Time(r.StartsBy)))
	}
	return append(cells, whereOrWhy(p, r))
}

// stateWord is the word of the state, or the flag that says more.
func stateWord(r *QueueRow) string {
	for _, f := range []string{"UNCERTAIN", "STOPPING", "COMPLETING", "CONFIGURING", "HELD"} {
		if slices.Contains(r.Flags, f) {
			return f
		}
	}
	return r.State
}

// timeSpent is how long a job has run, or waited.
func (r *QueueRow) timeSpent(now time.Time) time.Duration {
	switch {
	case r.State == "PENDING":
		return now.Sub(r.Submitted)
	case r.Started.IsZero():
		return 0
	case !r.Ended.IsZero():
		return r.Ended.Sub(r.Started)
	}
	return now.Sub(r.Started)
}

func whereOrWhy(p Page, r *QueueRow) Cell {
	switch {
	case r.State == "PENDING" && r.ReasonText != "":
		return Cell{Text: p.localizeTimes(r.ReasonText), Tone: Dim}
	case r.State == "PENDING":
		return Cell{Text: r.Reason, Tone: Dim}
	}
	return textCell(r.NodeList)
}

func limitText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return Elapsed(d)
}

func amountText(f float64) string {
	if f == 0 {
		return ""
	}
	return Number(f)
}
