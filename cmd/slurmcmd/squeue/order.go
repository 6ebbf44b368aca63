package squeue

import (
	"bytes"
	"cmp"

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

// order reads --sort: letters of -o with a sign each, most significant first.
func (q *query) order(want *jobs.Want) (compareFunc, error) {
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
	for _, key := range face.Split(spec) {
		down := key[0] == '-'
		if key[0] == '-' || key[0] == '+' {
			key = key[1:]
		}
		if len(key) != 1 {
			return nil, face.Textf("Invalid sort specification: %s", spec)
		}
		f := byLetter(key[0], want)
		if f == nil {
			return nil, face.Textf("Invalid sort specification: %s", spec)
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
	number := func(c jobs.Col) compareFunc {
		want.Add(c)
		return func(a, b jobs.Row) int { return cmp.Compare(a.Int(c), b.Int(c)) }
	}
	text := func(c jobs.Col) compareFunc {
		want.Add(c)
		return func(a, b jobs.Row) int { return bytes.Compare(a.Bytes(c), b.Bytes(c)) }
	}
	value := func(f func(jobs.Row) int64, cols ...jobs.Col) compareFunc {
		want.Add(cols...)
		return func(a, b jobs.Row) int { return cmp.Compare(f(a), f(b)) }
	}
	switch letter {
	case 't', 'T':
		return value(func(r jobs.Row) int64 { return int64(r.Base()) }, jobs.State)
	case 'p', 'Q':
		return number(jobs.Priority)
	case 'i', 'A', 'F', 'K':
		return number(jobs.ID)
	case 'P':
		return text(jobs.Partition)
	case 'M':
		return value(jobs.Row.Elapsed, jobs.State, jobs.Started, jobs.Ended)
	case 'L':
		return value(func(r jobs.Row) int64 { return r.Int(jobs.TimeLimit) - r.Elapsed() }, jobs.State, jobs.Started, jobs.Ended, jobs.TimeLimit)
	case 'S':
		return value(func(r jobs.Row) int64 {
			if n := r.Start(); n > 0 {
				return n
			}
			return 1 << 62 // not known: last
		}, jobs.State, jobs.Started, jobs.Ended, jobs.StartsBy)
	case 'e':
		return value(jobs.Row.End, jobs.State, jobs.Started, jobs.Ended, jobs.StartsBy, jobs.TimeLimit)
	case 'V':
		return number(jobs.Submitted)
	case 'l':
		return number(jobs.TimeLimit)
	case 'D':
		return number(jobs.NodesMin)
	case 'C':
		return number(jobs.CPUs)
	case 'm':
		return number(jobs.Memory)
	case 'U', 'G':
		return number(jobs.UID)
	case 'y':
		return number(jobs.Nice)
	}
	cols := map[byte]jobs.Col{
		'u': jobs.User, 'j': jobs.JobName, 'a': jobs.Account, 'q': jobs.QOS, 'N': jobs.NodeList, 'R': jobs.NodeList, 'r': jobs.Reason,
		'k': jobs.Comment, 'f': jobs.Features, 'E': jobs.Dependency, 'o': jobs.Command, 'v': jobs.Reservation, 'W': jobs.Licenses,
		'B': jobs.BatchHost, 'b': jobs.GRES, 'Z': jobs.WorkDir, 'n': jobs.ReqNodes, 'x': jobs.ExcNodes,
	}
	if c, ok := cols[letter]; ok {
		return text(c)
	}
	return nil
}
