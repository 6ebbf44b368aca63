package control_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/store/sqlite"
)

// TestADamagedRowCostsItsJob: whichever row is damaged, a control plane starts with all other
// jobs, whether the journal tells of the job again or not, and says which one is lost.
func TestADamagedRowCostsItsJob(t *testing.T) {
	rows, _ := projection(t)
	for _, row := range rows {
		for _, projected := range []int{len(control.Every()), len(control.Every()) / 2} {
			t.Run(fmt.Sprint(row.ID, " ", projected), func(t *testing.T) { damageRow(t, rows, row.ID, projected) })
		}
	}
}

func damageRow(t *testing.T, rows []store.JobRow, bad uint64, projected int) {
	dir := t.TempDir()
	st, err := sqlite.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	epoch, err := st.Lead(t.Context(), "old")
	if err == nil {
		_, err = st.Append(t.Context(), epoch, control.Every())
	}
	if err == nil {
		err = control.ProjectOf(t.Context(), memory(t, control.Every()[:projected]), st, uint64(projected), true)
	}
	if _, lookup := st.Job(t.Context(), bad); err == nil && fault.KindOf(lookup) == fault.NotFound {
		t.Skip("the projection has no such job yet")
	}
	if err = errors.Join(err, st.Close()); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "journal.db"))
	if err == nil {
		_, err = db.Exec("UPDATE job SET cpus = cpus + 1 WHERE id = ?", bad)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if st, err = sqlite.Open(dir); err != nil {
		t.Fatal(err)
	}
	ctl, err := control.Open(t.Context(), control.Config{Store: st, Pools: onHand(newHand(2, 8)), Who: t.Name(), Project: -1})
	if err != nil {
		t.Fatal(errors.Join(err, st.Close()))
	}
	defer func() {
		if err := errors.Join(ctl.Close(), st.Close()); err != nil {
			t.Error(err)
		}
	}()
	there := map[job.ID]bool{}
	if _, err := ctl.History(t.Context(), store.Query{}, func(v *state.View) bool { there[v.Job.ID] = true; return true }); err != nil {
		t.Error(err)
	}
	for _, row := range rows {
		_, err := ctl.Job(t.Context(), job.ID(row.ID))
		switch {
		case row.ID != bad && (err != nil || !there[job.ID(row.ID)]):
			t.Errorf("job %d: %v, in history: %v", row.ID, err, there[job.ID(row.ID)])
		case row.ID == bad && err != nil && (!errors.Is(err, store.ErrDamaged) || fault.KindOf(err) != fault.NotFound || fault.Remedy(err) == ""):
			t.Errorf("the damaged one: %v", err)
		}
	}
	if list := ctl.Damages(); len(list) != 1 || list[0].Job != bad {
		t.Errorf("named: %v", list)
	}
}
