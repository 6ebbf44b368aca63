package squeue

import (
	"bytes"
	"cmp"

	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
)

// The orders that squeue has for itself.
const (
	orderJobs  = "P,t,-p"
	orderStart = "S"
	orderSteps = "P,i"
)

// compareFunc orders two jobs.
type compareFunc func(a, b jobs.Row) int

// sortOrder reads --sort: letters of -o with a sign each, most significant first.
func (q *query) sortOrder(want *jobs.Want) (compareFunc, error) {
	spec := q.sort
	switch {
	case spec != "":
	case q.steps:
		spec = orderSteps
	case q.start:
		spec = orderStart
	default:
		spec = orderJobs
	}
	var list []compareFunc
	for _, key := range slurmcmd.Split(spec) {
		down := key[0] == '-'
		if key[0] == '-' || key[0] == '+' {
			key = key[1:]
		}
		if len(key) != 1 {
			return nil, slurmcmd.Textf("Invalid sort specification: %s", spec)
		}
		f := byLetter(key[0], want)
		if f == nil {
			return nil, slurmcmd.Textf("Invalid sort specification: %s", spec)
		}
		if down {
			up := f
			f = func(a, b jobs.Row) int { return up(b, a) }
		}
		list = append(list, f)
	}
	return func(a, b jobs.Row) int {
		for _, f := range list {
			if n := f(a, b); n != 0 {
				return n
			}
		}
		return 0
	}, nil
}

// byLetter orders by the field of a letter of -o.
func byLetter(letter byte, want *jobs.Want) compareFunc {
	number := func(c column.Column) compareFunc {
		want.Add(c)
		return func(a, b jobs.Row) int { return cmp.Compare(a.Int(c), b.Int(c)) }
	}
	text := func(c column.Column) compareFunc {
		want.Add(c)
		return func(a, b jobs.Row) int { return bytes.Compare(a.Bytes(c), b.Bytes(c)) }
	}
	value := func(f func(jobs.Row) int64, cols ...column.Column) compareFunc {
		want.Add(cols...)
		return func(a, b jobs.Row) int { return cmp.Compare(f(a), f(b)) }
	}
	switch letter {
	case 't', 'T':
		return value(func(r jobs.Row) int64 { return int64(r.Base()) }, column.State)
	case 'p', 'Q':
		return number(column.Priority)
	case 'i', 'A', 'F', 'K':
		return number(column.ID)
	case 'P':
		return text(column.Partition)
	case 'M':
		return value(jobs.Row.Elapsed, column.State, column.Started, column.Ended)
	case 'L':
		return value(func(r jobs.Row) int64 { return r.Int(column.TimeLimit) - r.Elapsed() }, column.State, column.Started, column.Ended, column.TimeLimit)
	case 'S':
		return value(func(r jobs.Row) int64 {
			if n := r.Start(); n > 0 {
				return n
			}
			return 1 << 62 // not known: last
		}, column.State, column.Started, column.Ended, column.StartsBy)
	case 'e':
		return value(jobs.Row.End, column.State, column.Started, column.Ended, column.StartsBy, column.TimeLimit)
	case 'V':
		return number(column.Submitted)
	case 'l':
		return number(column.TimeLimit)
	case 'D':
		return number(column.NodesMin)
	case 'C':
		return number(column.CPUs)
	case 'm':
		return number(column.Memory)
	case 'U', 'G':
		return number(column.UID)
	case 'y':
		return number(column.Nice)
	}
	cols := map[byte]column.Column{
		'u': column.User, 'j': column.JobName, 'a': column.Account, 'q': column.QOS, 'N': column.NodeList, 'R': column.NodeList, 'r': column.Reason,
		'k': column.Comment, 'f': column.Features, 'E': column.Dependency, 'o': column.Command, 'v': column.Reservation, 'W': column.Licenses,
		'B': column.BatchHost, 'b': column.GRES, 'Z': column.WorkDir, 'n': column.ReqNodes, 'x': column.ExcNodes,
	}
	if c, ok := cols[letter]; ok {
		return text(c)
	}
	return nil
}
