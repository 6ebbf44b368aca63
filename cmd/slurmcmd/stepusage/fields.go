// Package stepusage writes what a step of a job used as Slurm's sacct and sstat do: one table of
// fields for both. A quantity that nobody measured is empty; Slurm's fields of what Coxswain does
// not measure (pages, virtual memory, energy, CPU frequency) are not in the table.
package stepusage

import (
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// Units says how sizes are written.
type Units struct {
	Raw  bool // --noconvert: bytes
	Unit byte // --units: K, M, G, T or P; 0: the largest that keeps a size whole
}

// Field is a column. Text appends nothing where the value is not known.
type Field struct {
	Name  string
	Width int
	Text  func(b []byte, s *api.Step, u Units) []byte
}

// AppendSize appends a size in bytes.
func (u Units) AppendSize(b []byte, n int64) []byte {
	const units = "KMGTP"
	switch {
	case u.Raw:
		return strconv.AppendInt(b, n, 10)
	case u.Unit != 0:
		f := float64(n)
		for range strings.IndexByte(units, u.Unit) + 1 {
			f /= 1024
		}
		return append(strconv.AppendFloat(b, f, 'f', 2, 64), u.Unit)
	}
	unit := -1
	for n >= 1024 && n%1024 == 0 && unit+1 < len(units) {
		n, unit = n/1024, unit+1
	}
	if b = strconv.AppendInt(b, n, 10); unit >= 0 {
		b = append(b, units[unit])
	}
	return b
}

// AppendCPUTime appends a time as Slurm writes CPU time: MM:SS.mmm below an hour if there are
// parts of a second, else [D-]HH:MM:SS.
func AppendCPUTime(b []byte, d time.Duration) []byte {
	s, ms := int64(d/time.Second), int64(d/time.Millisecond)%1000
	days, hours, minutes, seconds := s/86400, s/3600%24, s/60%60, s%60
	switch {
	case days > 0:
		b = append(strconv.AppendInt(b, days, 10), '-')
		b = append(twoDigits(b, hours), ':')
	case hours > 0:
		b = append(twoDigits(b, hours), ':')
	case ms > 0:
		b = append(twoDigits(b, minutes), ':')
		b = append(twoDigits(b, seconds), '.')
		return append(b, byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10))
	default:
		b = append(b, "00:"...)
	}
	b = append(twoDigits(b, minutes), ':')
	return twoDigits(b, seconds)
}

// appendWholeTime is AppendCPUTime of whole seconds.
func appendWholeTime(b []byte, d time.Duration) []byte {
	return AppendCPUTime(b, d.Truncate(time.Second))
}

func twoDigits(b []byte, n int64) []byte { return append(b, byte('0'+n/10), byte('0'+n%10)) }

// sumOf is what all tasks of a step used; zero: nothing is known.
func sumOf(s *api.Step) rusage.Use {
	if s.Used == nil {
		return rusage.Use{}
	}
	return s.Used.Sum
}

// tasksOf is the number of tasks that a sum is of.
func tasksOf(s *api.Step) int64 {
	if s.Used == nil {
		return 1
	}
	return int64(max(s.Used.Tasks, 1))
}

// measure is one quantity of a step in the forms that fields have of it.
type measure struct {
	known   rusage.Quantity
	total   func(rusage.Use) int64
	extreme func(*rusage.Step) *rusage.Extreme
	write   func(b []byte, n int64, u Units) []byte
}

func writeSize(b []byte, n int64, u Units) []byte { return u.AppendSize(b, n) }

func writeTime(b []byte, n int64, _ Units) []byte { return appendWholeTime(b, time.Duration(n)) }

var (
	memory  = measure{rusage.Memory, func(u rusage.Use) int64 { return u.Memory }, func(s *rusage.Step) *rusage.Extreme { return s.MaxMemory }, writeSize}
	read    = measure{rusage.IO, func(u rusage.Use) int64 { return u.Read }, func(s *rusage.Step) *rusage.Extreme { return s.MaxRead }, writeSize}
	written = measure{rusage.IO, func(u rusage.Use) int64 { return u.Written }, func(s *rusage.Step) *rusage.Extreme { return s.MaxWritten }, writeSize}
	cpuTime = measure{rusage.CPU, func(u rusage.Use) int64 { return int64(u.CPUTime()) }, func(s *rusage.Step) *rusage.Extreme { return s.MinCPU }, writeTime}
)

func (m measure) appendTotal(b []byte, s *api.Step, u Units) []byte {
	if sum := sumOf(s); sum.Has(m.known) {
		b = m.write(b, m.total(sum), u)
	}
	return b
}

func (m measure) appendAverage(b []byte, s *api.Step, u Units) []byte {
	if sum := sumOf(s); sum.Has(m.known) {
		b = m.write(b, m.total(sum)/tasksOf(s), u)
	}
	return b
}

// appendExtreme appends the largest value, or that of the least CPU time.
func (m measure) appendExtreme(b []byte, s *api.Step, u Units) []byte {
	if x := m.extremeOf(s); x != nil {
		return m.write(b, x.Value, u)
	}
	if sumOf(s).Has(m.known) && m.total(sumOf(s)) == 0 {
		return m.write(b, 0, u)
	}
	return b
}

func (m measure) extremeOf(s *api.Step) *rusage.Extreme {
	if s.Used == nil {
		return nil
	}
	return m.extreme(s.Used)
}

func (m measure) appendNode(b []byte, s *api.Step, _ Units) []byte {
	if x := m.extremeOf(s); x != nil {
		b = append(b, x.Node...)
	}
	return b
}

func (m measure) appendTask(b []byte, s *api.Step, _ Units) []byte {
	if x := m.extremeOf(s); x != nil {
		b = strconv.AppendInt(b, int64(x.Task), 10)
	}
	return b
}

// part is one entry of a list of trackable resources.
type part struct {
	name string
	text func(b []byte, s *api.Step, u Units) []byte
}

// listOf joins the entries of which something is known: "cpu=00:00:01,mem=812K".
func listOf(parts ...part) func([]byte, *api.Step, Units) []byte {
	return func(b []byte, s *api.Step, u Units) []byte {
		first := true
		for _, p := range parts {
			value := p.text(nil, s, u)
			if len(value) == 0 {
				continue
			}
			if !first {
				b = append(b, ',')
			}
			first = false
			b = append(append(append(b, p.name...), '='), value...)
		}
		return b
	}
}

// Fields are the fields that sacct and sstat share.
var Fields = []Field{
	{"AveCPU", 10, cpuTime.appendAverage},
	{"AveDiskRead", 14, read.appendAverage},
	{"AveDiskWrite", 14, written.appendAverage},
	{"AveRSS", 10, memory.appendAverage},
	{"MaxDiskRead", 12, read.appendExtreme},
	{"MaxDiskReadNode", 15, read.appendNode},
	{"MaxDiskReadTask", 15, read.appendTask},
	{"MaxDiskWrite", 12, written.appendExtreme},
	{"MaxDiskWriteNode", 16, written.appendNode},
	{"MaxDiskWriteTask", 16, written.appendTask},
	{"MaxRSS", 10, memory.appendExtreme},
	{"MaxRSSNode", 10, memory.appendNode},
	{"MaxRSSTask", 10, memory.appendTask},
	{"MinCPU", 10, cpuTime.appendExtreme},
	{"MinCPUNode", 10, cpuTime.appendNode},
	{"MinCPUTask", 10, cpuTime.appendTask},
	{"TRESUsageInAve", 14, listOf(part{"cpu", cpuTime.appendAverage}, part{"fs/disk", read.appendAverage}, part{"mem", memory.appendAverage})},
	{"TRESUsageInMax", 14, listOf(part{"fs/disk", read.appendExtreme}, part{"mem", memory.appendExtreme})},
	{"TRESUsageInMaxNode", 18, listOf(part{"fs/disk", read.appendNode}, part{"mem", memory.appendNode})},
	{"TRESUsageInMaxTask", 18, listOf(part{"fs/disk", read.appendTask}, part{"mem", memory.appendTask})},
	{"TRESUsageInMin", 14, listOf(part{"cpu", cpuTime.appendExtreme})},
	{"TRESUsageInMinNode", 18, listOf(part{"cpu", cpuTime.appendNode})},
	{"TRESUsageInMinTask", 18, listOf(part{"cpu", cpuTime.appendTask})},
	{"TRESUsageInTot", 14, listOf(part{"cpu", cpuTime.appendTotal}, part{"fs/disk", read.appendTotal}, part{"mem", memory.appendTotal})},
	{"TRESUsageOutAve", 15, listOf(part{"fs/disk", written.appendAverage})},
	{"TRESUsageOutMax", 15, listOf(part{"fs/disk", written.appendExtreme})},
	{"TRESUsageOutMaxNode", 19, listOf(part{"fs/disk", written.appendNode})},
	{"TRESUsageOutMaxTask", 19, listOf(part{"fs/disk", written.appendTask})},
	{"TRESUsageOutTot", 15, listOf(part{"fs/disk", written.appendTotal})},
}
