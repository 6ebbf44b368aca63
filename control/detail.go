package control

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/store"
)

// The beginning of a detail: {"form":17,"spec":{…17 bytes…},…}
const (
	detailForm = `{"form":`
	detailSpec = `,"spec":`
)

func (d *detail) encode() []byte {
	rest := mustJSON(d)
	b := make([]byte, 0, len(rest)+len(d.Spec)+32)
	b = strconv.AppendInt(append(b, detailForm...), int64(len(d.Spec)), 10)
	b = append(append(b, detailSpec...), d.Spec...)
	rest[0] = ','
	return append(b, rest...)
}

func (d *detail) decode(row *store.JobRow) error {
	spec, rest, err := d.cut(row.Detail)
	if err != nil {
		return fmt.Errorf("row of job %d: %w", row.ID, err)
	}
	if err := json.Unmarshal(rest, d); err != nil {
		return fmt.Errorf("row of job %d: %w", row.ID, err)
	}
	d.Spec = spec
	if d.Own == nil || d.Seq == 0 {
		return fault.New(fault.Internal, "the row of job %d is not complete", row.ID)
	}
	return nil
}

// cut takes the form out of a detail.
func (d *detail) cut(b []byte) (spec, rest []byte, err error) {
	if after, ok := bytes.CutPrefix(b, []byte(detailForm)); ok {
		digits, after, _ := bytes.Cut(after, []byte(detailSpec))
		if n, err := strconv.Atoi(string(digits)); err == nil && n > 0 && n < len(after) && after[n] == ',' {
			rest = append(make([]byte, 0, len(after)-n), after[n:]...)
			rest[0] = '{'
			return after[:n], rest, nil
		}
	}
	return nil, nil, fault.New(fault.Internal, "the detail has another form than this version writes")
}
