package job_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/job"
)

var update = flag.Bool("update", false, "rewrite docs/reference/states.md")

var causes = []job.Cause{job.ByScheduler, job.ByUser, job.ByEngine, job.ByControl}

// TestEveryPairOfStates walks every pair of states and every cause: a job moves if
// and only if the table says so, an error says what was refused, and a job that was
// refused is as it was. Seen to fail with Set that forgets the cause.
func TestEveryPairOfStates(t *testing.T) {
	table := map[[2]job.State][]job.Cause{}
	for _, x := range job.Transitions() {
		pair := [2]job.State{x.From, x.To}
		if table[pair] != nil {
			t.Errorf("%s to %s stands in the table twice", x.From, x.To)
		}
		if len(x.By) == 0 || x.When == "" || x.From == x.To {
			t.Errorf("%s to %s: nobody causes it, it happens never, or nothing changes", x.From, x.To)
		}
		table[pair] = x.By
	}
	for _, from := range job.States() {
		for _, to := range job.States() {
			for _, by := range causes {
				j := job.Job{ID: 7, State: from}
				err := j.Set(to, by)
				if slices.Contains(table[[2]job.State{from, to}], by) {
					if err != nil || j.State != to {
						t.Errorf("%s to %s by %s: %v, now %s", from, to, by, err, j.State)
					}
					continue
				}
				var refused *job.TransitionError
				if !errors.As(err, &refused) || *refused != (job.TransitionError{From: from, To: to, By: by}) || j.State != from {
					t.Errorf("%s to %s by %s: %v, now %s; want it refused", from, to, by, err, j.State)
				}
			}
		}
	}
}

// TestShapeOfTheMachine states what must hold of the table as a whole.
func TestShapeOfTheMachine(t *testing.T) {
	to, from := map[job.State][]job.State{}, map[job.State][]job.State{}
	for _, x := range job.Transitions() {
		to[x.From] = append(to[x.From], x.To)
		from[x.To] = append(from[x.To], x.From)
		if x.From.Final() && (x.To != job.Pending || !slices.Equal(x.By, []job.Cause{job.ByUser})) {
			t.Errorf("%s to %s: a final state is left by its owner's requeue alone", x.From, x.To)
		}
		if x.To.Holds() && !x.From.Holds() && !slices.Equal(x.By, []job.Cause{job.ByScheduler}) {
			t.Errorf("%s to %s: only the scheduler grants resources", x.From, x.To)
		}
	}
	for _, s := range job.States() {
		if s.Final() == s.Holds() && s != job.Pending {
			t.Errorf("%s is both final and holds resources, or neither", s)
		}
		if s != job.Pending && len(from[s]) == 0 {
			t.Errorf("%s cannot be reached", s)
		}
		if !s.Final() && !reaches(to, s, job.State.Final) {
			t.Errorf("a job in %s cannot end", s)
		}
	}
	if len(to[job.Lost]) != 0 {
		t.Errorf("a job that is lost may run elsewhere and must not run again: %v", to[job.Lost])
	}
}

// reaches reports whether transitions lead from a state to one that is wanted.
func reaches(to map[job.State][]job.State, s job.State, want func(job.State) bool) bool {
	seen, todo := map[job.State]bool{}, []job.State{s}
	for len(todo) > 0 {
		s, todo = todo[0], todo[1:]
		if want(s) {
			return true
		}
		if !seen[s] {
			seen[s] = true
			todo = append(todo, to[s]...)
		}
	}
	return false
}

func TestNamesOfStates(t *testing.T) {
	long, short := map[string]bool{}, map[string]bool{}
	for _, s := range job.States() {
		if long[s.String()] || short[s.Short()] || s.String() != strings.ToUpper(s.String()) {
			t.Errorf("%d is called %s and %s, as another is", s, s, s.Short())
		}
		long[s.String()], short[s.Short()] = true, true
		b, err := json.Marshal(s)
		var back job.State
		if err != nil || json.Unmarshal(b, &back) != nil || back != s {
			t.Errorf("%s is written as %s (%v) and read as %s", s, b, err, back)
		}
	}
	// Slurm's own numbering, which other tools know (scontrol, job_state_codes).
	for n, s := range []job.State{
		job.Pending, job.Running, job.Suspended, job.Completed, job.Cancelled, job.Failed, job.Timeout,
		job.NodeFail, job.Preempted, job.BootFail, job.Deadline, job.OutOfMemory,
	} {
		if int(s) != n {
			t.Errorf("%s has number %d, in Slurm it is %d", s, s, n)
		}
	}
	bad := job.State(200)
	if _, err := json.Marshal(bad); err == nil || bad.Short() != "?" || bad.String() != "State(200)" {
		t.Errorf("a state that does not exist is called %s, %s", bad, bad.Short())
	}
	var s job.State
	if err := s.UnmarshalText([]byte("RUNING")); err == nil {
		t.Error("RUNING was read as a state")
	}
}

func TestFlagsAreDistinct(t *testing.T) {
	all := job.Flags(0)
	for _, f := range []job.Flags{
		job.Configuring, job.Completing, job.Requeued, job.Held, job.LaunchFailed, job.Stopping, job.Uncertain,
	} {
		if f == 0 || all&f != 0 || f&(f-1) != 0 {
			t.Errorf("flag %b is not one bit of its own", f)
		}
		all |= f
	}
}

// TestDocStates keeps docs/reference/states.md what the table says.
func TestDocStates(t *testing.T) {
	const file = "../../docs/reference/states.md"
	want := document()
	if *update {
		if err := os.WriteFile(file, want, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/reference/states.md is not what the table of transitions says; go test ./model/job -run Doc -update writes it anew")
	}
}

func document() []byte {
	var b bytes.Buffer
	fmt.Fprint(&b, "# States of a job\n\n")
	fmt.Fprint(&b, "<!-- Written by go test ./model/job -run Doc -update from the table in model/job/state.go. Do not edit. -->\n\n")
	fmt.Fprint(&b, "A job is in exactly one of these states. The names and short codes are those that `squeue` and `sacct` show;\n")
	fmt.Fprint(&b, "LOST is Coxswain's own. Flags beside the state say what else is true of a job: it is held, its gang is starting,\n")
	fmt.Fprint(&b, "part of its work cannot be proved running or gone.\n\n")
	fmt.Fprint(&b, "| state | short | holds resources | final |\n|---|---|---|---|\n")
	mark := map[bool]string{true: "yes", false: ""}
	for _, s := range job.States() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", s, s.Short(), mark[s.Holds()], mark[s.Final()])
	}
	fmt.Fprint(&b, "\n## Transitions\n\nNothing else is possible: a change that is not in this table is refused, whoever asks for it.\n\n")
	fmt.Fprint(&b, "| from | to | by | when |\n|---|---|---|---|\n")
	for _, x := range job.Transitions() {
		by := make([]string, len(x.By))
		for i, c := range x.By {
			by[i] = string(c)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", x.From, x.To, strings.Join(by, ", "), x.When)
	}
	fmt.Fprint(&b, "\n`scheduler` is a decision of the core, `user` the owner or an administrator, `engine` a report of what happened\n")
	fmt.Fprint(&b, "on the nodes, `control` the control loop itself (time limits, deadlines, proofs that cannot be had).\n\n")
	fmt.Fprint(&b, "## Picture\n\n```mermaid\nstateDiagram-v2\n    [*] --> PENDING\n")
	for _, x := range job.Transitions() {
		if !x.From.Final() {
			fmt.Fprintf(&b, "    %s --> %s\n", x.From, x.To)
		}
	}
	fmt.Fprint(&b, "```\n\nEvery final state but LOST leads back to PENDING when its owner runs the job again.\n")
	return b.Bytes()
}
