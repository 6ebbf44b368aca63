package jobs

import (
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/model/job"
)

// WithPast are the rows with one more for each attempt before a job's last one, behind the job's row,
// newest first. It needs column.Past. A row of an attempt has its own times, state, exit code and
// nodes, and everything else of the job's.
func (r *Rows) WithPast() (*Rows, error) {
	var b []byte
	for i := range r.Len() {
		b = r.appendRow(b, i, nil)
		past := strings.Split(r.Row(i).Text(column.Past), ";")
		for k := len(past) - 1; k >= 0; k-- {
			if own := pastCells(past[k]); own != nil {
				b = r.appendRow(b, i, own)
			}
		}
	}
	t, err := fastclient.NewTable(b, max(len(r.want.order), 1))
	if err != nil {
		return nil, err
	}
	out := *r
	out.table = t
	return &out, nil
}

// PastRequeued is the flag in a row of WithPast whose attempt was ended so that the job waits again.
const PastRequeued = "PAST_REQUEUED"

// pastCells are the cells of one attempt of column.Past; nil: there is none.
func pastCells(text string) map[column.Column]string {
	f := strings.SplitN(text, " ", 7)
	if len(f) < 7 {
		return nil
	}
	host, _, _ := strings.Cut(f[6], ",")
	if strings.Contains(host, "[") {
		host = ""
	}
	state, flags := f[3], ""
	if state == "REQUEUED" { // which is no base state
		state, flags = job.BootFail.String(), PastRequeued // no job ends so here
	}
	return map[column.Column]string{
		column.Attempt: f[0], column.Started: f[1], column.Ended: f[2], column.State: state, column.ExitStatus: f[4], column.ExitSignal: f[5],
		column.NodeList: f[6], column.BatchHost: host, column.Flags: flags, column.CancelledBy: "", column.Reason: "", column.Message: "",
		column.Steps: "", column.Used: "",
		column.SuspendedAt: "0", column.ResumedAt: "0", column.SuspendedFor: "0",
	}
}

// appendRow writes a row with some cells changed.
func (r *Rows) appendRow(b []byte, i int, own map[column.Column]string) []byte {
	row := r.Row(i)
	for k, c := range r.want.order {
		if k > 0 {
			b = append(b, '\t')
		}
		text, has := own[c]
		if !has {
			text = string(row.Raw(c))
		}
		if started, err := strconv.ParseInt(own[column.Started], 10, 64); err == nil && c == column.Eligible && row.Int(c) > started {
			text = own[column.Started] // the job has waited again since
		}
		b = api.AppendTSV(b, text)
	}
	return append(b, '\n')
}
