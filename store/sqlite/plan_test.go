package sqlite

import (
	"database/sql/driver"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/store"
)

// TestPlans: the queries that people wait for walk an index and sort nothing that
// they need not.
func TestPlans(t *testing.T) {
	s, _ := opened(t)
	plan := func(query string, args ...driver.Value) string {
		t.Helper()
		var steps []string
		if err := s.write.queryRows(func(row []driver.Value) error {
			steps = append(steps, row[3].(string))
			return nil
		}, "EXPLAIN QUERY PLAN "+query, args...); err != nil {
			t.Fatal(query, err)
		}
		return strings.Join(steps, "; ")
	}
	at := time.Unix(1, 0)
	for _, tt := range []struct {
		q    store.Query
		want string
		sort bool
	}{
		{store.Query{}, "SEARCH job USING INTEGER PRIMARY KEY", false},
		{store.Query{IDs: []uint64{1, 2}}, "SEARCH job USING INTEGER PRIMARY KEY (rowid=?)", true},
		{store.Query{Users: []string{"a"}, Final: true}, "SEARCH job USING COVERING INDEX job_user (user=? AND id<?)", false},
		{store.Query{Users: []string{"a"}, Final: true, From: at, To: at}, "SEARCH job USING COVERING INDEX job_user (user=? AND id<?)", false},
		{store.Query{Users: []string{"a"}}, "SEARCH job USING COVERING INDEX job_live (id<?)", true}, // of at most so many as are wanted
		{store.Query{Accounts: []string{"a"}, Final: true}, "SEARCH job USING COVERING INDEX job_account (account=? AND id<?)", false},
		{store.Query{States: []string{"a"}, Final: true}, "SEARCH job USING COVERING INDEX job_state (state=? AND id<?)", false},
		{store.Query{Array: 1}, "SEARCH job USING COVERING INDEX job_array (array=? AND id<?)", false},
		{store.Query{From: at, Final: true}, "SEARCH job USING COVERING INDEX job_ended (ended>?)", true},
	} {
		query, bind := historyQuery(&tt.q)
		got := plan(query, bind(100, 10)...)
		if !strings.Contains(got, tt.want) || strings.Contains(got, "TEMP B-TREE FOR ORDER BY") && !tt.sort {
			t.Errorf("%+v: %s", tt.q, got)
		}
	}
	where, args := recordWhere(&store.RecordQuery{Job: 7, OnlyActors: true})
	for query, want := range map[string]string{
		"SELECT data FROM journal WHERE " + where + " ORDER BY seq LIMIT 5":                                    "SEARCH journal USING INDEX journal_job (job=? AND seq>?)",
		"SELECT data FROM audit WHERE " + where + " ORDER BY seq LIMIT 5":                                      "SEARCH audit USING INDEX audit_job (job=? AND seq>?)",
		"SELECT id FROM job WHERE ended < ? AND final = 1 AND 1 <> ? LIMIT 5":                                  "SEARCH job USING COVERING INDEX job_ended (ended<?)",
		"SELECT seq FROM audit WHERE at < ? AND 1 <> ? LIMIT 5":                                                "SEARCH audit USING COVERING INDEX audit_at (at<?)",
		"SELECT id, hash FROM small WHERE put < ? AND 1 <> ? ORDER BY put LIMIT 5":                             "SEARCH small USING INDEX small_put (put<?)",
		"SELECT detail FROM job INDEXED BY job_live WHERE final = 0 AND id > ? AND 1 <> ? ORDER BY id LIMIT 5": "SEARCH job USING INDEX job_live (id>?)",
	} {
		if got := plan(query, append([]driver.Value{int64(0)}, args...)...); !strings.HasPrefix(got, want) || strings.Contains(got, "TEMP") {
			t.Errorf("%s: %s", query, got)
		}
	}
}
