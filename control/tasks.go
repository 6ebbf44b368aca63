package control

import (
	"github.com/coxswain-sched/coxswain/model/job"
)

// arrayRow is an array as the row of each of its tasks has it: with indices in runs, so
// that a thousand rows do not hold a million of them.
type arrayRow struct {
	First      job.ID      `json:"first"`
	Text       string      `json:"text,omitempty"`
	Runs       [][3]uint32 `json:"runs"` // first index, last index, step
	MaxRunning uint32      `json:"max_running,omitempty"`
	Step       uint32      `json:"step,omitempty"`
	Limited    uint64      `json:"limited,omitempty"` // Seq of the record that changed MaxRunning last
}

func (a *array) tasksOf() *arrayRow {
	if a.runs == nil {
		a.runs = indexRuns(a.spec.Indices)
	}
	return &arrayRow{First: a.first, Text: a.spec.Text, Runs: a.runs, MaxRunning: a.limit, Step: a.spec.Step, Limited: a.limited}
}

func (t *arrayRow) arraySpec() *job.ArraySpec {
	s := &job.ArraySpec{Text: t.Text, MaxRunning: t.MaxRunning, Step: t.Step}
	for _, r := range t.Runs {
		for i := uint64(r[0]); i <= uint64(r[1]); i += uint64(max(r[2], 1)) {
			s.Indices = append(s.Indices, uint32(i))
		}
	}
	return s
}

// indexRuns writes ascending indices as arithmetic progressions.
func indexRuns(indices []uint32) (out [][3]uint32) {
	for i := 0; i < len(indices); {
		step, end := uint32(1), i
		if i+1 < len(indices) {
			step = indices[i+1] - indices[i]
			for end = i + 1; end+1 < len(indices) && indices[end+1]-indices[end] == step; end++ {
			}
		}
		out = append(out, [3]uint32{indices[i], indices[end], step})
		i = end + 1
	}
	return out
}
