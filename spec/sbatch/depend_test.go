package sbatch

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/job"
)

func clause(kind job.DependencyKind, delay time.Duration, ids ...job.ID) job.DependencyClause {
	c := job.DependencyClause{Kind: kind, Delay: delay}
	for _, id := range ids {
		c.Jobs = append(c.Jobs, job.JobRef{Job: id})
	}
	return c
}

func TestDependencies(t *testing.T) {
	three := uint32(3)
	for text, want := range map[string]job.Dependency{
		"":                      {},
		"0":                     {},
		"singleton":             {Clauses: []job.DependencyClause{{Kind: job.Singleton}}},
		"afterok:7":             {Clauses: []job.DependencyClause{clause(job.AfterOK, 0, 7)}},
		"AfterOK:7:8":           {Clauses: []job.DependencyClause{clause(job.AfterOK, 0, 7, 8)}},
		"7":                     {Clauses: []job.DependencyClause{clause(job.AfterAny, 0, 7)}},
		"7,8":                   {Clauses: []job.DependencyClause{clause(job.AfterAny, 0, 7), clause(job.AfterAny, 0, 8)}},
		"afterok:7,afterany:8":  {Clauses: []job.DependencyClause{clause(job.AfterOK, 0, 7), clause(job.AfterAny, 0, 8)}},
		"afternotok:7?after:8":  {Any: true, Clauses: []job.DependencyClause{clause(job.AfterNotOK, 0, 7), clause(job.After, 0, 8)}},
		"after:7+5:8:9+5":       {Clauses: []job.DependencyClause{clause(job.After, 5*time.Minute, 7), clause(job.After, 0, 8), clause(job.After, 5*time.Minute, 9)}},
		"aftercorr:7":           {Clauses: []job.DependencyClause{clause(job.AfterCorr, 0, 7)}},
		"afterburstbuffer:7":    {Clauses: []job.DependencyClause{clause(job.AfterBurst, 0, 7)}},
		"afterany:7_3":          {Clauses: []job.DependencyClause{{Kind: job.AfterAny, Jobs: []job.JobRef{{Job: 7, Task: &three}}}}},
		"afterany:7_[3,3],8":    {Clauses: []job.DependencyClause{{Kind: job.AfterAny, Jobs: []job.JobRef{{Job: 7, Task: &three}}}, clause(job.AfterAny, 0, 8)}},
		"afterany:7_*":          {Clauses: []job.DependencyClause{clause(job.AfterAny, 0, 7)}},
		"singleton,afterok:7_3": {Clauses: []job.DependencyClause{{Kind: job.Singleton}, {Kind: job.AfterOK, Jobs: []job.JobRef{{Job: 7, Task: &three}}}}},
	} {
		got, err := parseDependency(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got.Text = ""
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", text, diff)
		}
	}
}

// What a dependency says is what its String says again.
func TestDependencyReadsItsOwnString(t *testing.T) {
	kinds := []job.DependencyKind{job.After, job.AfterAny, job.AfterOK, job.AfterNotOK, job.AfterCorr, job.AfterBurst, job.Singleton}
	rapid.Check(t, func(t *rapid.T) {
		d := job.Dependency{Any: rapid.Bool().Draw(t, "any")}
		for range rapid.IntRange(2, 4).Draw(t, "clauses") {
			c := job.DependencyClause{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
			if c.Kind != job.Singleton {
				for range rapid.IntRange(1, 3).Draw(t, "jobs") {
					r := job.JobRef{Job: job.ID(rapid.IntRange(1, 99).Draw(t, "job"))}
					if rapid.Bool().Draw(t, "task of an array") {
						n := rapid.Uint32Range(0, 50).Draw(t, "task")
						r.Task = &n
					}
					c.Jobs = append(c.Jobs, r)
				}
			}
			if c.Kind == job.After {
				c.Delay = time.Duration(rapid.IntRange(0, 3).Draw(t, "minutes")) * time.Minute
			}
			d.Clauses = append(d.Clauses, c)
		}
		got, err := parseDependency(d.String())
		if err != nil {
			t.Fatalf("%s: %v", d, err)
		}
		got.Text = ""
		if diff := cmp.Diff(d, got); diff != "" {
			t.Fatalf("%s: -want +got\n%s", d, diff)
		}
	})
}

func TestKillIfNever(t *testing.T) {
	if s := mustParse(t, "-d afterok:7 --kill-on-invalid-dep=YES", Options{}); s.Depends.KillIfNever == nil || !*s.Depends.KillIfNever {
		t.Errorf("%+v", s.Depends)
	}
	if s := mustParse(t, "-d afterok:7", Options{}); s.Depends.KillIfNever != nil {
		t.Errorf("%+v", s.Depends)
	}
}

// A dependency or array of any size is refused before anything is allocated for it.
func TestHugeSets(t *testing.T) {
	for _, line := range []string{
		"--array=0-10000000", "--array=1-4294967295", "--array=0-9223372036854775807:3%2",
		"-d afterok:7_[0-3999999]", "-d afterok:" + strings.Repeat("7_[0-9000]:", 50) + "8",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := parse(t, line, Options{})
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%.40s is taken", line)
		}
		allocated := after.TotalAlloc - before.TotalAlloc
		if allocated > 4<<20 {
			t.Errorf("%.40s: %d bytes were allocated", line, allocated)
		}
	}
}

func TestArrays(t *testing.T) {
	for line, want := range map[string]string{
		"--array=0-10:3%2":     "[0 3 6 9] at most 2",
		"--array=1,3-5,4-6%1":  "[1 3 4 5 6] at most 1",
		"--array=[1-2]%7":      "[1 2] at most 7",
		"--array=[1-2%7]":      "[1 2] at most 7",
		"--array=5":            "[5] at most 0",
		"-a 0-999:250,7,7,3-4": "[0 3 4 7 250 500 750] at most 0",
	} {
		a := mustParse(t, line, Options{MaxArraySize: 1001}).Array
		if got := fmt.Sprintf("%v at most %d", a.Indices, a.MaxRunning); got != want {
			t.Errorf("%s is %s, want %s", line, got, want)
		}
	}
}

func TestDeadlines(t *testing.T) {
	now := time.Date(2026, 11, 21, 13, 29, 8, 0, time.UTC)
	for line, want := range map[string]string{
		"--deadline=now+2hours -t 60":                       "2026-11-21T15:29:08",
		"--deadline=now+60minutes -t 60":                    "2026-11-21T14:29:08",
		"--deadline=16:00 -t UNLIMITED":                     "2026-11-21T16:00:00",
		"--deadline=2026-12-24T18:00 -t 2-0":                "2026-12-24T18:00:00",
		"--deadline=1224 -t 2-0":                            "2026-12-24T00:00:00",
		"--deadline=tomorrow -t 5":                          "2026-11-22T00:00:00",
		"--deadline=noon":                                   "2026-11-22T12:00:00",
		"--deadline=now+1hour -t 120 --time-min=30":         "2026-11-21T14:29:08",
		"--deadline=now+3hours -b now+1hour -t 120":         "2026-11-21T16:29:08",
		"-t 60\nhetjob\n-n1 --deadline=now+2hours":          "2026-11-21T15:29:08",
		"--deadline=now+2hours\nhetjob\n-n1\nhetjob\n-n1":   "2026-11-21T15:29:08",
		"--deadline=12/24-18:00 -t 5":                       "2026-12-24T18:00:00",
		"--deadline=2026-12-24-18:00:30 --begin=now+1 -t 5": "2026-12-24T18:00:30",
	} {
		s := mustParse(t, line, Options{Now: now})
		if got := formatClock(s.Deadline); got != want {
			t.Errorf("%q ends by %s, want %s", line, got, want)
		}
	}
}

func TestMail(t *testing.T) {
	for lines, want := range map[string]string{
		"--mail-type=END,FAIL --mail-user=a@b":        "END FAIL to a@b",
		"--mail-type=fail,end":                        "END FAIL to ",
		"--mail-type=ALL":                             "BEGIN END FAIL REQUEUE INVALID_DEPEND STAGE_OUT to ",
		"--mail-type=TIME_LIMIT_90,all,ARRAY_TASKS":   "BEGIN END FAIL REQUEUE INVALID_DEPEND STAGE_OUT TIME_LIMIT_90 ARRAY_TASKS to ",
		"--mail-type=BEGIN\n--mail-type=END":          "BEGIN END to ",
		"--mail-type=BEGIN\n--mail-type=NONE":         "none",
		"--mail-type=NONE\n--mail-type=END":           "END to ",
		"--mail-type=NONE,END --mail-user=a":          "none",
		"--mail-type='BEGIN, END'":                    "BEGIN END to ",
		"--mail-type=BEGIN,ABORT":                     "BEGIN to ",
		"--mail-type=TIME_LIMIT,,END --mail-user=ann": "END TIME_LIMIT to ann",
	} {
		s := mustParse(t, lines, Options{Mail: true})
		got := "none"
		if s.Mail != nil {
			got = strings.Join(s.Mail.Types, " ") + " to " + s.Mail.To
		}
		if got != want {
			t.Errorf("%q sends %s, want %s", lines, got, want)
		}
	}
	if s := mustParse(t, "--mail-type=BEGIN", Options{Args: []string{"--mail-type=END"}}); len(s.Mail.Types) != 2 {
		t.Errorf("the command line does not add to the script: %v", s.Mail.Types)
	}
	_, warnings, err := parse(t, "--mail-type=BEGIN,ABORT", Options{Mail: true})
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0].Message, `left out: "ABORT"`) {
		t.Errorf("%v, %v", warnings, err)
	}
}
