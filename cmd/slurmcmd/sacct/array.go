package sacct

import (
	"fmt"
	"strconv"

	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// groupTasks makes one line of an array's tasks that wait, 7_[1-4,9%2], at the place of the
// first of them. A single one keeps its own name.
func groupTasks(list []jobs.Row) []jobs.Row {
	waiting := map[int64][]uint32{}
	for _, r := range list {
		if task, ok := waitingTask(r); ok {
			waiting[r.Int(column.ArrayJob)] = append(waiting[r.Int(column.ArrayJob)], task)
		}
	}
	out, shown := list[:0], map[int64]bool{}
	for _, r := range list {
		array := r.Int(column.ArrayJob)
		if _, ok := waitingTask(r); !ok || len(waiting[array]) < 2 {
			out = append(out, r)
			continue
		}
		if shown[array] {
			continue
		}
		shown[array] = true
		limit := ""
		if n := r.Int(column.ArrayLimit); n > 0 {
			limit = "%" + strconv.FormatInt(n, 10)
		}
		out = append(out, r.Named(fmt.Sprintf("%d_[%s%s]", array, slurmfmt.FormatArrayIndices(waiting[array]), limit)))
	}
	return out
}

// waitingTask is the index of a task of an array that waits.
func waitingTask(r jobs.Row) (index uint32, ok bool) {
	if r.Int(column.ArrayJob) == 0 || r.Base() != job.Pending {
		return 0, false
	}
	n, err := strconv.ParseUint(r.Text(column.ArrayTask), 10, 32)
	return uint32(n), err == nil
}
