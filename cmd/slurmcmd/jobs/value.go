package jobs

import (
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// maxSet is how many bytes of an array's waiting tasks are shown, as in Slurm.
const maxSet = 64

// AppendName appends the job's number as squeue's JOBID: 7, 7_3, 7_[1-4,9%2], 7+0.
func (r Row) AppendName(b []byte) []byte {
	name := r.Bytes(column.Name)
	b = append(b, name...)
	if n := len(name); n > maxSet && name[n-1] == ']' {
		b = cutSet(b, n)
	}
	if r.part >= 0 {
		b = append(b, '+')
		b = strconv.AppendInt(b, int64(r.part), 10)
	}
	return b
}

// cutSet shortens the set of an array's tasks in the last n bytes of b.
func cutSet(b []byte, n int) []byte {
	from := len(b) - n
	for i := from; i < len(b); i++ {
		if b[i] != '[' {
			continue
		}
		if len(b)-i-2 <= maxSet {
			return b
		}
		end := i + 1 + maxSet - 4
		for end > i && b[end] != ',' {
			end--
		}
		return append(b[:end], ",...]"...)
	}
	return b
}

// Number is the job's own number: the array's where waiting tasks are collapsed.
func (r Row) Number() int64 {
	if n := r.Int(column.ArrayJob); n > 0 && r.Collapsed() {
		return n
	}
	return r.Int(column.ID)
}

// Collapsed reports whether the row stands for several tasks of an array.
func (r Row) Collapsed() bool {
	for _, c := range r.Bytes(column.ArrayTask) {
		if c < '0' || c > '9' {
			return true
		}
	}
	return false
}

// Elapsed is how long the job has run, seconds.
func (r Row) Elapsed() int64 {
	from, to := r.Int(column.Started), r.Int(column.Ended)
	switch {
	case from == 0 || r.Base() == job.Pending:
		return 0
	case to == 0:
		to = r.Now
	}
	return max(to-from, 0)
}

// End is when the job ended or will have to, Unix seconds; 0: not known.
func (r Row) End() int64 {
	if s := r.Base(); s.Final() {
		return r.Int(column.Ended)
	}
	limit, start := r.Int(column.TimeLimit), r.Start()
	if limit == 0 || start == 0 {
		return 0
	}
	return start + limit
}

// Start is when the job started, or is expected to; 0: not known.
func (r Row) Start() int64 {
	if r.Base() == job.Pending {
		return r.Int(column.StartsBy)
	}
	if n := r.Int(column.Started); n > 0 {
		return n
	}
	return r.Int(column.Ended) // cancelled before it started
}

// Memory is what is asked for, bytes, and whether that is for each CPU.
func (r Row) Memory() (bytes int64, perCPU bool) {
	if n := r.Int(column.MemoryPerCPU); n > 0 {
		return n, true
	}
	return r.Int(column.Memory), false
}

// AppendTime appends a time as Slurm prints it, or none for 0.
func (r Row) AppendTime(b []byte, unix int64, none string) []byte {
	if unix == 0 {
		return append(b, none...)
	}
	return time.Unix(unix, 0).In(r.zone).AppendFormat(b, "2006-01-02T15:04:05")
}

// AppendSpan appends seconds as squeue does: 5:03, 1:05:03, 2-01:05:03.
func AppendSpan(b []byte, s int64) []byte {
	s = max(s, 0)
	d, h, m := s/86400, s/3600%24, s/60%60
	switch {
	case d > 0:
		b = append(strconv.AppendInt(b, d, 10), '-')
		b = append(twoDigits(b, h), ':')
		b = append(twoDigits(b, m), ':')
	case h > 0:
		b = append(strconv.AppendInt(b, h, 10), ':')
		b = append(twoDigits(b, m), ':')
	default:
		b = append(strconv.AppendInt(b, m, 10), ':')
	}
	return twoDigits(b, s%60)
}

// AppendLongSpan appends seconds as scontrol and sacct do: 00:05:03, 2-01:05:03.
func AppendLongSpan(b []byte, s int64) []byte {
	s = max(s, 0)
	if d := s / 86400; d > 0 {
		b = append(strconv.AppendInt(b, d, 10), '-')
	}
	b = append(twoDigits(b, s/3600%24), ':')
	b = append(twoDigits(b, s/60%60), ':')
	return twoDigits(b, s%60)
}

func twoDigits(b []byte, n int64) []byte { return append(b, byte('0'+n/10), byte('0'+n%10)) }

// AppendMemory appends bytes as Slurm does: 0, 100M, 4G.
func AppendMemory(b []byte, n int64) []byte {
	if n == 0 {
		return append(b, '0')
	}
	return append(b, slurmfmt.FormatMemory(n)...)
}

// orNull appends a cell, or what Slurm prints where there is nothing.
func orNull(b, cell []byte) []byte {
	if len(cell) == 0 {
		return append(b, "(null)"...)
	}
	return append(b, cell...)
}

func orNA(b, cell []byte) []byte {
	if len(cell) == 0 {
		return append(b, "N/A"...)
	}
	return append(b, cell...)
}
