package query

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/model/rusage"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
	"github.com/coxswain-sched/coxswain/store"
)

// HistoryInBrief is History for who reads very many jobs. Of a job that has ended, the view has only
// the number, state, attempt, times, pool, claims (without whether they are whole nodes), past attempts,
// the cause of the end, Report.Used without nodes and steps, and a specification without what only a
// job itself has, but for its part of a controller's work. It is valid during the call only.
func (rd *Reader) HistoryInBrief(ctx context.Context, q store.Query, f func(*state.View) bool) error {
	b := briefReader{specs: map[string]*job.Spec{}}
	err := rd.of.Store.History(ctx, q, func(row store.JobRow) error {
		v, err := b.view(&row)
		if err != nil {
			return err
		}
		if !f(v) {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// briefReader makes views of rows in the same memory, one after another. It looks only for what
// HistoryInBrief promises, which takes a tenth of the time that it takes to read a row whole.
type briefReader struct {
	specs map[string]*job.Spec // by their text; not written to

	slow state.RowReader // reads what is not like most rows
	last state.View      // of slow

	v      state.View
	spec   job.Spec
	used   rusage.Record
	claims []fleet.Claim
	nodes  []string
	names  map[string]string // texts that rows repeat
}

// briefSpecs bounds the specifications and names that are kept.
const briefSpecs = 4096

// view makes the view of a row. It is valid until the next call.
func (b *briefReader) view(row *store.JobRow) (*state.View, error) {
	if row.Final && b.readRow(row) {
		return &b.v, nil
	}
	var err error
	b.last, err = b.slow.View(row)
	return &b.last, err
}

// readRow fills in the view; false: the row has something that it does not know.
func (b *briefReader) readRow(row *store.JobRow) bool {
	text, rest, ok := splitRow(row.Detail)
	if !ok {
		return false
	}
	shared := b.specOf(text)
	if shared == nil {
		return false
	}
	b.v, b.spec, b.claims, b.nodes = state.View{}, *shared, b.claims[:0], b.nodes[:0]
	v := &b.v
	v.Job.ID, v.Job.Spec = job.ID(row.ID), &b.spec
	var last []byte
	ok = eachField(rest, func(key, value []byte) bool {
		switch string(key) {
		case "own":
			return b.readOwn(value)
		case "state":
			return v.Job.State.UnmarshalText(textOf(value)) == nil
		case "attempt":
			v.Job.Attempt = uint32(numberOf(value))
		case "sent":
			v.Job.Submitted = timeOf(value)
		case "eligible":
			v.Eligible = timeOf(value)
		case "past":
			return json.Unmarshal(value, &v.Past) == nil
		case "last":
			last = value
		}
		return true
	})
	if !ok || !v.Job.State.Final() {
		return false
	}
	return last == nil || b.readAttempt(last)
}

// readOwn reads what only this job has.
func (b *briefReader) readOwn(own []byte) bool {
	return eachField(own, func(key, value []byte) bool {
		if string(key) != "part" {
			return true
		}
		b.spec.Part = new(job.Part)
		return json.Unmarshal(value, b.spec.Part) == nil
	})
}

// readAttempt reads the last attempt.
func (b *briefReader) readAttempt(last []byte) bool {
	v := &b.v
	var since int64
	var asleep [2]int64
	ok := eachField(last, func(key, value []byte) bool {
		switch string(key) {
		case "pool":
			v.Pool = b.nameOf(value)
		case "claims":
			return eachEntry(value, b.readClaim)
		case "report":
			return b.readReport(value)
		case "started":
			v.Job.Started = timeOf(value)
		case "ended":
			v.Job.Ended = timeOf(value)
		case "limit":
			if n := numberOf(value); n > 0 {
				b.spec.TimeLimit = time.Duration(n)
			}
		case "held_from":
			since = numberOf(value)
		case "held_for":
			v.SuspendedFor = time.Duration(numberOf(value))
		case "held_last":
			return json.Unmarshal(value, &asleep) == nil
		case "added":
			return false
		}
		return true
	})
	if !ok {
		return false
	}
	v.SuspendedAt, v.ResumedAt = state.FromNanos(asleep[0]), state.FromNanos(asleep[1])
	if since > 0 {
		v.SuspendedAt, v.ResumedAt = state.FromNanos(since), time.Time{}
	}
	if v.Claims = b.claims; state.IsDelegated(v.Claims) {
		v.Claims = nil
		if len(b.nodes) > 0 {
			v.Claims = aggregate.Seen(b.claims, b.nodes)
		}
	}
	return true
}

// readClaim reads what is held on a node.
func (b *briefReader) readClaim(claim []byte) bool {
	if len(b.claims) < cap(b.claims) {
		b.claims = b.claims[:len(b.claims)+1]
	} else {
		b.claims = append(b.claims, fleet.Claim{})
	}
	c := &b.claims[len(b.claims)-1]
	*c = fleet.Claim{Devices: c.Devices[:0]}
	return eachField(claim, func(key, value []byte) bool {
		switch string(key) {
		case "node":
			c.Node = b.nameOf(value)
		case "group":
			c.Group = int(numberOf(value))
		case "tasks":
			c.Tasks = int(numberOf(value))
		case "take":
			return eachField(value, func(key, value []byte) bool {
				switch string(key) {
				case "cpu":
					c.Take.CPU = resource.Amount(numberOf(value))
				case "memory":
					c.Take.Memory = resource.Amount(numberOf(value))
				case "named":
					return json.Unmarshal(value, &c.Take.Named) == nil
				}
				return true
			})
		case "devices":
			return eachEntry(value, func(device []byte) bool {
				var d fleet.DeviceClaim
				ok := eachField(device, func(key, value []byte) bool {
					switch string(key) {
					case "index":
						d.Index = int(numberOf(value))
					case "share":
						d.Share = resource.Share(numberOf(value))
					case "bytes":
						d.Bytes = resource.Amount(numberOf(value))
					}
					return true
				})
				c.Devices = append(c.Devices, d)
				return ok
			})
		}
		return true
	})
}

// readReport reads how the attempt ended and what it used.
func (b *briefReader) readReport(report []byte) bool {
	return eachField(report, func(key, value []byte) bool {
		switch string(key) {
		case "cause":
			b.v.Report.Cause = engine.Cause(b.nameOf(value))
		case "nodes":
			return eachEntry(value, func(node []byte) bool {
				return eachField(node, func(key, value []byte) bool {
					if string(key) == "node" {
						b.nodes = append(b.nodes, b.nameOf(value))
					}
					return true
				})
			})
		case "used":
			b.used = rusage.Record{}
			b.v.Report.Used = &b.used
			return eachField(value, b.readUsed)
		}
		return true
	})
}

func (b *briefReader) readUsed(key, value []byte) bool {
	u := &b.used
	switch string(key) {
	case "total":
		return eachField(value, func(key, value []byte) bool {
			switch n := numberOf(value); string(key) {
			case "known":
				u.Total.Known = rusage.Quantity(n)
			case "user":
				u.Total.User = time.Duration(n)
			case "system":
				u.Total.System = time.Duration(n)
			case "memory":
				u.Total.Memory = n
			case "read":
				u.Total.Read = n
			case "written":
				u.Total.Written = n
			}
			return true
		})
	case "gpus":
		return json.Unmarshal(value, &u.GPUs) == nil
	}
	return true
}

// specOf is the specification of a text; nil: it cannot be read.
func (b *briefReader) specOf(text []byte) *job.Spec {
	if s := b.specs[string(text)]; s != nil {
		return s
	}
	s := new(job.Spec)
	if json.Unmarshal(text, s) != nil {
		return nil
	}
	if len(b.specs) >= briefSpecs {
		clear(b.specs)
	}
	b.specs[string(text)] = s
	return s
}

// nameOf is a text, of which equal ones share their memory.
func (b *briefReader) nameOf(value []byte) string {
	text := textOf(value)
	if s, ok := b.names[string(text)]; ok {
		return s
	}
	if b.names == nil || len(b.names) >= briefSpecs {
		b.names = map[string]string{}
	}
	s := string(text)
	b.names[s] = s
	return s
}

// splitRow splits a detail into the shared specification and the rest, which begins with a comma.
func splitRow(detail []byte) (spec, rest []byte, ok bool) {
	after, ok := bytes.CutPrefix(detail, []byte(state.DetailForm))
	if !ok {
		return nil, nil, false
	}
	digits, after, _ := bytes.Cut(after, []byte(state.DetailSpec))
	n, err := strconv.Atoi(string(digits))
	if err != nil || n <= 0 || n >= len(after) || after[n] != ',' {
		return nil, nil, false
	}
	return after[:n], after[n:], true
}

// eachField calls f for the fields of an object of JSON as this program writes it, without blanks; the
// first byte may be a comma instead of the brace. false: f returned false, or it is no such object.
func eachField(b []byte, f func(key, value []byte) bool) bool {
	if len(b) < 2 || b[0] != '{' && b[0] != ',' || b[len(b)-1] != '}' {
		return false
	}
	if len(b) == 2 {
		return true
	}
	for i := 1; ; i++ {
		keyEnd := valueEnd(b, i)
		if keyEnd < i+2 || b[i] != '"' || keyEnd >= len(b) || b[keyEnd] != ':' {
			return false
		}
		end := valueEnd(b, keyEnd+1)
		if end <= keyEnd+1 || end >= len(b) || !f(b[i+1:keyEnd-1], b[keyEnd+1:end]) {
			return false
		}
		if i = end; b[i] == '}' {
			return i == len(b)-1
		}
		if b[i] != ',' {
			return false
		}
	}
}

// eachEntry calls f for the entries of a list.
func eachEntry(b []byte, f func(entry []byte) bool) bool {
	if len(b) < 2 || b[0] != '[' || b[len(b)-1] != ']' {
		return string(b) == "null"
	}
	if len(b) == 2 {
		return true
	}
	for i := 1; ; i++ {
		end := valueEnd(b, i)
		if end <= i || end >= len(b) || !f(b[i:end]) {
			return false
		}
		if i = end; b[i] == ']' {
			return i == len(b)-1
		}
		if b[i] != ',' {
			return false
		}
	}
}

// valueEnd is where the value ends that begins at i; -1: it does not end.
func valueEnd(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			for i++; ; i++ {
				n := bytes.IndexByte(b[i:], '"')
				if n < 0 {
					return -1
				}
				i += n
				slashes := 0
				for b[i-1-slashes] == '\\' {
					slashes++
				}
				if slashes%2 == 0 {
					break
				}
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // of a number or a word before it
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ':':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return -1
}

// textOf is a text of JSON, nil of anything else.
func textOf(b []byte) []byte {
	if len(b) < 2 || b[0] != '"' {
		return nil
	}
	if bytes.IndexByte(b, '\\') < 0 {
		return b[1 : len(b)-1]
	}
	var s string
	if json.Unmarshal(b, &s) != nil {
		return nil
	}
	return []byte(s)
}

// numberOf is a whole number of JSON, 0 of anything else.
func numberOf(b []byte) int64 {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func timeOf(b []byte) time.Time { return state.FromNanos(numberOf(b)) }
