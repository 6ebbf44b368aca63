package state

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/job"
)

func drawSpec(t *rapid.T) job.Spec {
	text := rapid.SampledFrom([]string{"", "a", "b", "ü", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF"})
	list := rapid.SliceOfN(text, 0, 2)
	when := rapid.SampledFrom([]time.Time{{}, time.Unix(5, 7).UTC(), time.Unix(9e8, 0).UTC()})
	number := rapid.SampledFrom([]int64{0, -3, 1 << 40})
	s := job.Spec{
		Name: text.Draw(t, "name"), Comment: text.Draw(t, "comment"), WorkDir: text.Draw(t, "dir"),
		Owner: job.Owner{User: rapid.SampledFrom([]string{"u", "v"}).Draw(t, "user")},
		Begin: when.Draw(t, "begin"), Deadline: when.Draw(t, "deadline"), Held: rapid.Bool().Draw(t, "held"),
		Nice: number.Draw(t, "nice"), Priority: number.Draw(t, "priority"),
		Groups:  []job.TaskGroup{{Tasks: job.Count{Want: rapid.IntRange(1, 2).Draw(t, "tasks")}}},
		Program: job.Program{ScriptHash: text.Draw(t, "script"), ScriptName: text.Draw(t, "file"), Args: list.Draw(t, "args")},
		Env:     job.Environment{Hash: text.Draw(t, "env"), Export: text.Draw(t, "export"), Set: list.Draw(t, "set")},
		Output:  job.Output{Stdout: text.Draw(t, "out"), Stderr: text.Draw(t, "err"), Stdin: text.Draw(t, "in")},
		Source: job.Source{
			File: text.Draw(t, "source"), Host: text.Draw(t, "host"), Submit: text.Draw(t, "submit"),
			Lines: [2]int{rapid.IntRange(0, 300).Draw(t, "line"), 2},
		},
	}
	if rapid.Bool().Draw(t, "given") {
		s.Source.Given = rapid.MapOfN(rapid.SampledFrom([]string{"x", "y"}), text, 0, 2).Draw(t, "options")
	}
	if rapid.Bool().Draw(t, "depends") {
		s.Depends = job.Dependency{Text: text.Draw(t, "text"), Clauses: []job.DependencyClause{{Kind: job.AfterOK, Jobs: []job.JobRef{{Job: 7}}}}}
	}
	if rapid.Bool().Draw(t, "mail") {
		s.Mail = &job.Mail{Types: list.Draw(t, "types")}
	}
	if rapid.Bool().Draw(t, "notify") {
		s.Notify = &job.Notify{Webhook: text.Draw(t, "webhook"), On: list.Draw(t, "events")}
	}
	if rapid.Bool().Draw(t, "part") {
		s.Part = &job.Part{Controller: text.Draw(t, "controller"), Revision: 1, Index: rapid.Uint32Range(0, 2).Draw(t, "index")}
	}
	if rapid.Bool().Draw(t, "provenance") {
		s.Provenance = &job.Provenance{Image: text.Draw(t, "image")}
	}
	return s
}

// TestSpecificationsComeBackWhole: from memory, and from the journal.
func TestSpecificationsComeBackWhole(t *testing.T) {
	same := []cmp.Option{cmpopts.EquateEmpty()}
	rapid.Check(t, func(t *rapid.T) {
		s := New()
		var want []job.Spec
		for i := range 4 {
			spec := drawSpec(t)
			want = append(want, spec)
			f, o := s.Specs.UseSpec(&spec)
			a := &AcceptedSubmission{First: job.ID(i + 1), Shared: f, OwnDelta: o, Delta: PackDelta(&o, &f.Def)}
			r := NewRecord(time.Unix(9, 0), KindSubmitted, a.First, job.Actor{}, a)
			r.Seq = uint64(i + 1)
			if err := s.Apply(r, a); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(spec, *ViewOf(s.Jobs[a.First]).Job.Spec, same...); d != "" {
				t.Fatal("in memory:", d)
			}
			again := New()
			r.Seq = 1
			if err := again.Apply(r, nil); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(spec, *ViewOf(again.Jobs[a.First]).Job.Spec, same...); d != "" {
				t.Fatal("from the journal:", d)
			}
			row := s.Jobs[a.First].ProjectRow()
			v, err := ViewOfRow(&row)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(spec, *v.Job.Spec, same...); d != "" {
				t.Fatal("from the projection:", d)
			}
		}
		for i, spec := range want {
			if d := cmp.Diff(spec, *ViewOf(s.Jobs[job.ID(i+1)]).Job.Spec, same...); d != "" {
				t.Fatal("after others:", d)
			}
		}
		if len(s.Specs.m) > 4 {
			t.Fatalf("%d kinds of jobs that differ in owner and tasks", len(s.Specs.m))
		}
		for _, e := range s.Order {
			s.removeJob(e)
		}
		if len(s.Specs.m) != 0 {
			t.Fatalf("%d forms are left without a job", len(s.Specs.m))
		}
	})
}

// TestRowsOfAnArrayShareItsIndices: else n rows would have n times n of them.
// Seen to fail with: rowReader keeping no array (row 2 had indices of its own).
func TestRowsOfAnArrayShareItsIndices(t *testing.T) {
	s := New()
	spec := job.Spec{Name: "a", Groups: []job.TaskGroup{{Nodes: job.Range{Min: 1, Max: 1}}}, Array: &job.ArraySpec{Text: "0-1999"}}
	for i := range uint32(2000) {
		spec.Array.Indices = append(spec.Array.Indices, i)
	}
	f, o := s.Specs.UseSpec(&spec)
	a := &AcceptedSubmission{First: 1, Shared: f, OwnDelta: o, Delta: PackDelta(&o, &f.Def)}
	r := NewRecord(time.Unix(9, 0), KindSubmitted, a.First, job.Actor{}, a)
	r.Seq = 1
	if err := s.Apply(r, a); err != nil {
		t.Fatal(err)
	}
	var read RowReader
	var first *uint32
	for id := range job.ID(2000) {
		row := s.Jobs[id+1].ProjectRow()
		v, err := read.View(&row)
		if err != nil || v.Job.Array.Index != uint32(id) || len(v.Job.Spec.Array.Indices) != 2000 {
			t.Fatalf("%+v, %v", v.Job, err)
		}
		if at := &v.Job.Spec.Array.Indices[0]; first == nil {
			first = at
		} else if at != first {
			t.Fatalf("row %d has indices of its own", id+1)
		}
	}
}

func TestRunsOfIndices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var in []uint32
		for n := uint32(0); len(in) < 12; n += rapid.Uint32Range(1, 3).Draw(t, "step") {
			in = append(in, n)
		}
		in = in[:rapid.IntRange(1, len(in)).Draw(t, "length")]
		got := (&arrayRow{Runs: indexRuns(in)}).arraySpec().Indices
		if fmt.Sprint(got) != fmt.Sprint(in) {
			t.Fatalf("%v came back as %v", in, got)
		}
	})
}

// TestEveryFieldOfASpecificationIsKept: a field that is added to job.Spec is in the
// form or in the own part.
func TestEveryFieldOfASpecificationIsKept(t *testing.T) {
	var spec job.Spec
	if err := json.Unmarshal([]byte(`{"name":"n","comment":"c","account":"a","qos":"q","image":"i","reservation":"r","licenses":"l","kill_on_bad_exit":true}`), &spec); err != nil {
		t.Fatal(err)
	}
	bare, o := SplitSpec(spec)
	o.applyTo(&bare)
	if d := cmp.Diff(spec, bare); d != "" {
		t.Error(d)
	}
}
