package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store"
)

// The beginning of a detail: {"form":17,"spec":{…17 bytes…},…}
const (
	DetailForm = `{"form":`
	DetailSpec = `,"spec":`
)

// EncodeDetail writes the detail of a row.
func (d *RowDetail) EncodeDetail() []byte {
	rest := MustJSON(d)
	b := make([]byte, 0, len(rest)+len(d.Spec)+32)
	b = strconv.AppendInt(append(b, DetailForm...), int64(len(d.Spec)), 10)
	b = append(append(b, DetailSpec...), d.Spec...)
	rest[0] = ','
	return append(b, rest...)
}

// DecodeDetail reads the detail of a row and refuses one that this package does not write.
func (d *RowDetail) DecodeDetail(row *store.JobRow) error {
	spec, rest, err := d.SplitDetail(row.Detail)
	if err != nil {
		return fmt.Errorf("row of job %d: %w", row.ID, err)
	}
	if err := json.Unmarshal(rest, d); err != nil {
		return fmt.Errorf("row of job %d: %w", row.ID, err)
	}
	d.Spec = spec
	if err := d.checkDetail(row); err != nil {
		return fault.New(fault.Internal, "row of job %d: %w", row.ID, err)
	}
	return nil
}

// checkDetail reports what no row of ours has.
func (d *RowDetail) checkDetail(row *store.JobRow) error {
	switch {
	case row.ID == 0 || row.ID > uint64(LastJob):
		return errors.New("such a number is never given")
	case d.Own == nil || d.Seq == 0:
		return errors.New("it is not complete")
	case row.Final != d.State.Final():
		return fmt.Errorf("it is %s, and final: %v", d.State, row.Final)
	case d.State != job.Pending && d.Last == nil:
		return fmt.Errorf("it is %s and has no attempt", d.State)
	case d.Failed < 0:
		return fmt.Errorf("%d attempts failed", d.Failed)
	case d.Retried < 0:
		return fmt.Errorf("it was retried %d times", d.Retried)
	}
	if d.Last != nil {
		for _, x := range d.Last.Added {
			if x == nil || len(x.Claims) == 0 || !d.State.Holds() {
				return errors.New("nothing, or something that is not held, was added to it")
			}
		}
	}
	return d.Array.checkRuns()
}

func (t *arrayRow) checkRuns() error {
	if t == nil {
		return nil
	}
	n, next := uint64(0), uint64(0)
	for _, r := range t.Runs {
		if uint64(r[0]) < next || r[1] < r[0] || r[2] == 0 {
			return fmt.Errorf("the run %d of array %d follows %d", r, t.First, next)
		}
		next = uint64(r[1]) + 1
		if n += uint64(r[1]-r[0])/uint64(r[2]) + 1; n > MaxTasks {
			return fmt.Errorf("array %d has more than %d tasks", t.First, MaxTasks)
		}
	}
	return nil
}

// SplitDetail splits a detail into the shared specification and the rest.
func (d *RowDetail) SplitDetail(b []byte) (spec, rest []byte, err error) {
	if after, ok := bytes.CutPrefix(b, []byte(DetailForm)); ok {
		digits, after, _ := bytes.Cut(after, []byte(DetailSpec))
		if n, err := strconv.Atoi(string(digits)); err == nil && n > 0 && n < len(after) && after[n] == ',' {
			rest = append(make([]byte, 0, len(after)-n), after[n:]...)
			rest[0] = '{'
			return after[:n], rest, nil
		}
	}
	return nil, nil, fault.New(fault.Internal, "the detail has another form than this version writes")
}
