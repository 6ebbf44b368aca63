package control

import (
	"encoding/json"
	"time"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/account/fair"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/ledger"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/share"
	"github.com/coxswain-sched/coxswain/store"
)

// everyDay is when the records of Every begin.
var everyDay = time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)

// Every is a journal with a record of every kind, and in them almost every field.
func Every() []store.Record {
	at := everyDay
	fs := state.NewSharedSpecs()
	var out []store.Record
	add := func(kind string, id job.ID, payload any) {
		at = at.Add(time.Second)
		out = append(out, state.NewRecord(at, kind, id, job.Actor{Name: "anna", UID: 2001, From: "socket"}, payload))
	}
	submit := func(first job.ID, s *job.Spec) {
		f, o := fs.UseSpec(s)
		add(state.KindSubmitted, first, &state.AcceptedSubmission{First: first, Shared: f, OwnDelta: o})
	}
	task, two := uint32(2), uint32(2)
	one := engine.Ref{Allocation: 1, Attempt: 1}
	second := engine.Ref{Allocation: 2, Attempt: 1}
	third := engine.Ref{Allocation: 3, Attempt: 2}

	submit(1, everySpec())
	s := plainSpec("sweep")
	s.Array = &job.ArraySpec{Text: "0-4:2%1", Indices: []uint32{0, 2, 4}, MaxRunning: 1, Step: 2}
	submit(2, s)
	s = plainSpec("later")
	s.Begin, s.Deadline, s.Nice, s.TimeLimit = everyDay.AddDate(50, 0, 0), everyDay.AddDate(51, 0, 0), 5, time.Hour
	s.Depends = job.Dependency{Text: "afterok:1,after:2_2+5", Clauses: []job.DependencyClause{
		{Kind: job.AfterOK, Jobs: []job.JobRef{{Job: 1}}},
		{Kind: job.After, Jobs: []job.JobRef{{Job: 2, Task: &task}}, Delay: 5 * time.Minute},
	}}
	submit(5, s)
	s = plainSpec("alone")
	s.Depends = job.Dependency{Clauses: []job.DependencyClause{{Kind: job.Singleton}}}
	submit(6, s)

	add(state.KindHeld, 1, state.Held{Allocation: everyAllocation(1, 1, 1)})
	add(state.KindStarted, 1, state.Started{Ref: one, Started: at})
	add(state.KindHold, 6, state.Hold{Held: true, Admin: true, State: state.StatePointer(job.Pending)})
	b := everyAllocation(2, 2, 1)
	b.Claims = []fleet.Claim{{Node: "n3", Tasks: 1, Take: resource.Vector{CPU: 500}, Devices: []fleet.DeviceClaim{{Index: 1, Share: 500}}}}
	add(state.KindHeld, 2, state.Held{Allocation: b})
	add(state.KindStarted, 2, state.Started{Ref: second, Started: at, Nodes: []string{"far1"}, At: 600, Used: []fair.Entry{{Account: "a", User: "u", Raw: 7, Wall: 7, TRES: map[string]float64{"gpu": 7}}}})
	add(state.KindUncertain, 2, state.Uncertain{Ref: second, Uncertain: true, Message: "its supervisor is silent"})
	add(state.KindSuspend, 1, state.Suspend{On: true, State: state.StatePointer(job.Suspended)})
	add(state.KindSuspend, 1, state.Suspend{State: state.StatePointer(job.Running)})
	add(state.KindSuspend, 1, state.Suspend{On: true, Parked: true, State: state.StatePointer(job.Suspended)})
	add(state.KindSuspend, 1, state.Suspend{Parked: true, State: state.StatePointer(job.Running)})
	f, o := fs.UseSpec(plainSpec("renamed"))
	add(state.KindUpdate, 3, state.Update{Own: &o, Spec: []byte(f.Key), Fields: []string{"name", "max_running"}, MaxRunning: &two, Queue: &state.QueuePlace{Priority: 3, At: at.UnixNano()}, State: state.StatePointer(job.Pending)})
	s = everySpec()
	s.TimeLimit = 20 * time.Minute
	f, o = fs.UseSpec(s)
	add(state.KindUpdate, 1, state.Update{Own: &o, Spec: []byte(f.Key), Fields: []string{"time_limit"}, State: state.StatePointer(job.Running)})
	moved := plainSpec("renamed")
	moved.Pool, moved.Chosen = "q", &job.Choice{Rule: "moved", Why: "moved from p", Among: []string{"p", "q"}, Filled: []string{"qos"}}
	f, o = fs.UseSpec(moved)
	add(state.KindPoolMove, 3, state.PoolMove{From: "p", To: "q", Own: &o, Spec: []byte(f.Key), Why: "moved from p", State: state.StatePointer(job.Pending)})
	add(state.KindTop, 4, state.QueueMoved{Moves: []state.QueuePlace{{Job: 4, Priority: 9, At: at.UnixNano()}, {Job: 5, Priority: 8, At: at.UnixNano()}}, State: state.StatePointer(job.Pending)})
	add(state.KindCancel, 6, state.Cancel{Message: "not needed", State: state.StatePointer(job.Cancelled)})
	add(state.KindRequeue, 6, state.Requeue{Hold: true, State: state.StatePointer(job.Pending)})
	add(state.KindEnded, 1, state.Ended{
		Ref: one, State: job.Pending, By: job.ByEngine, Flags: job.Requeued | job.LaunchFailed, Report: everyReport(one, 1), Again: at.Add(time.Minute), Failed: 1,
	})
	add(state.KindHeld, 1, state.Held{Allocation: everyAllocation(3, 1, 2)})
	more := ledger.Allocation{ID: 4, Job: 1, Attempt: 2, Epoch: 1, Pool: "p", Status: ledger.Held, Adds: 3, Claims: []fleet.Claim{{Node: "n4", Tasks: 1, Take: resource.Vector{CPU: resource.OneCPU}}}}
	fourth := engine.Ref{Allocation: 4, Attempt: 2}
	add(state.KindAdded, 1, state.Added{Allocation: more, First: 2, State: state.StatePointer(job.Running)})
	add(state.KindJoined, 1, state.Joined{Ref: fourth, Started: at, State: state.StatePointer(job.Running)})
	add(state.KindUncertain, 1, state.Uncertain{Ref: fourth, Uncertain: true, Message: "its supervisor is silent"})
	add(state.KindAsked, 1, state.AskedBack{Ref: fourth, For: 6, Grace: time.Minute, State: state.StatePointer(job.Running)})
	add(state.KindDropped, 1, state.Dropped{Ref: fourth, Settled: true, Message: "given back for job 6", State: state.StatePointer(job.Running), Used: []fair.Entry{{Account: "ml", User: "anna", Raw: 2}}})
	add(state.KindSaved, 1, state.Saved{State: state.StatePointer(job.Running)})
	add(state.KindPreempted, 1, state.Preempted{For: 6, Mode: account.PreemptCheckpoint, Signal: 10, Grace: time.Minute, State: state.StatePointer(job.Running)})
	add(state.KindExpired, 1, state.Expired{State: job.Timeout, Grace: 30 * time.Second})
	add(state.KindEnded, 1, state.Ended{Ref: third, State: job.Timeout, By: job.ByControl, Report: everyReport(third, 1)})
	add(state.KindRequeue, 2, state.Requeue{State: state.StatePointer(job.Running)})
	add(state.KindCancel, 2, state.Cancel{Signal: 15, Grace: 5 * time.Second, Message: "no more", State: state.StatePointer(job.Running)})
	add(state.KindNodes, 0, state.NodesSet{Nodes: []string{"n2", "n3"}, Drain: true, Reason: "a fan"})
	add(state.KindPool, 0, state.PoolSpec{Name: "b", Engine: "slurm", Settings: json.RawMessage(`{"ssh":"login"}`), At: at, By: job.Actor{Name: "root"}})
	add(state.KindPool, 0, state.PoolSpec{Name: "c", Engine: "slurm", At: at})
	add(state.KindPoolGone, 0, state.PoolGone{Name: "c"})
	add(state.KindToken, 0, state.Token{ID: "t1", Hash: "h", Name: "anna", UID: 2001, GID: 2001, Accounts: []string{"ml"}, Comment: "laptop", Created: at, Expires: at.Add(time.Hour)})
	add(state.KindRevoked, 0, state.Revoked{ID: "t1"})
	add(state.KindExpired, 5, state.Expired{State: job.Deadline})
	add(state.KindUsage, 0, state.Usage{At: 1000, Entries: []fair.Entry{{Account: "ml", User: "anna", Raw: 12.5, Wall: 3, TRES: map[string]float64{"gpu": 1.5}}, {QOS: "high", Raw: 1}}})
	add(state.KindLearned, 0, share.Memory{Seen: []share.Seen{{CPU: 8000, Count: 1, Milli: 500, Of: `{"kind":"gpu"}`, Weight: 3, Known: 2}}, Sum: 3, CPU: 24000, GPU: 1500, Due: 4, KnownCPU: 16000, KnownGPU: 1000})
	add(state.KindPolicy, 0, state.Policy{Revision: 1, File: "queues.yaml", Note: "first", Hash: store.Hash([]byte("x")), Text: "x", Rules: everyPolicy()})
	add(state.KindController, 0, state.Controller{Name: "service/ml/chat", Owner: job.Owner{User: "anna", UID: 2001, GID: 2001}, Version: 1, Document: json.RawMessage(`{"want":2}`)})
	add(state.KindController, 0, state.Controller{Name: "service/ml/old", Version: 1, Document: json.RawMessage(`{}`)})
	add(state.KindControllerGone, 0, state.ControllerGone{Name: "service/ml/old"})
	add(state.KindOwner, 0, state.OwnersSet{Owners: []fleet.MachineOwner{{Machine: "m1", Pool: "p", Epoch: 1}, {Machine: "m2", Pool: "b", Epoch: 4}, {Machine: "m3", Pool: "b", Epoch: 1}}})
	add(state.KindOwner, 0, state.OwnersSet{Owners: []fleet.MachineOwner{{
		Machine: "m1", Pool: "p", Next: "b", Step: fleet.StepAsked, Epoch: 2, Waits: "job 1", Deadline: at.Add(time.Hour), By: "root", Reason: "more batch work", At: at,
	}}})
	add(state.KindOwner, 0, state.OwnersSet{Owners: []fleet.MachineOwner{{
		Machine: "m1", Pool: "p", Next: "b", Step: fleet.StepAsked, Back: true, Epoch: 2, Evidence: "the deadline has passed", By: "root", At: at,
	}}})
	add(state.KindOwner, 0, state.OwnersSet{Owners: []fleet.MachineOwner{{Machine: "m2", Pool: "p", Last: "b", Epoch: 5, Reason: "pool b is gone"}}, Freed: []string{"m3"}})
	device := 1
	add(state.KindHealth, 0, state.NodeHealth{Pool: "p", Node: "n1", Epoch: 1, Text: "device 1: check devices failed: gone", Fences: []fleet.HealthFence{
		{Device: &device, UUID: "GPU-1", Check: "devices", Evidence: "gone", At: at}, {Check: "disk", Evidence: "/tmp is full", At: at},
	}})
	add(state.KindHealth, 0, state.NodeHealth{Pool: "p", Node: "n1", Epoch: 2, Text: "check disk passes again", Fences: []fleet.HealthFence{{Device: &device, UUID: "GPU-1", Check: "devices", Evidence: "gone", At: at}}})
	for i := range out {
		out[i].Seq, out[i].Epoch = uint64(i+1), 1
	}
	return out
}

func plainSpec(name string) *job.Spec {
	return &job.Spec{
		Name: name, Owner: job.Owner{User: "anna", UID: 2001, GID: 2001},
		Groups: []job.TaskGroup{{
			Nodes: job.Range{Min: 1, Max: 1}, Tasks: job.Count{Want: 1}, PerNode: resource.Requirements{Devices: []resource.DeviceRequest{{Count: 1, Share: 500}}},
		}},
		Program: job.Program{Kind: job.Direct, Args: []string{"true"}},
	}
}

func everySpec() *job.Spec {
	never := false
	return &job.Spec{
		Name: "train", Owner: job.Owner{User: "anna", UID: 2001, GID: 2001}, Account: "ml", QOS: "high", Comment: "first", Partitions: []string{"p", "q"},
		Nice: 1, Priority: 7, TimeLimit: time.Hour, TimeMin: time.Minute, Requeue: true,
		Depends: job.Dependency{KillIfNever: &never},
		Groups: []job.TaskGroup{{
			Name: "main", Nodes: job.Range{Min: 2, Max: 2}, Tasks: job.Count{Min: 2, Want: 2}, TasksPerNode: 1, CPUsPerTask: 2, Overcommit: true,
			PerNode: resource.Requirements{
				Vector:  resource.Vector{Memory: resource.GiB, Disk: 1, Named: []resource.Named{{Name: "lustre", Amount: 1}}},
				Devices: []resource.DeviceRequest{{Kind: "gpu", Type: "h100", Count: 4, Memory: 1}},
			},
			PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.CPUs(2)}}, PerDevice: resource.Vector{CPU: resource.CPUs(1)},
			Total:      resource.Requirements{Devices: []resource.DeviceRequest{{Count: 8}}},
			Constraint: job.Constraint{Text: "[a|b]", Alternatives: [][]string{{"a"}, {"b", "c"}}, Same: true},
			NodeList:   []string{"n1"}, Exclude: []string{"n9"}, Contiguous: true, Distribution: "block",
		}},
		Program: job.Program{Kind: job.Batch, ScriptHash: store.Hash([]byte("s")), ScriptName: "train.sh", Args: []string{"--lr", "1"}},
		Output:  job.Output{Stdout: "o-%j", Stderr: "e-%j", Stdin: "i", Append: true},
		Env:     job.Environment{Hash: store.Hash(nil), Export: "ALL", Set: []string{"A=b"}}, WorkDir: "/home/anna",
		Signal: &job.SignalSpec{Signal: 10, Before: time.Minute, BatchOnly: true}, Licenses: "matlab:1",
		Mail: &job.Mail{Types: []string{"END"}, To: "anna@example.org"}, Notify: &job.Notify{Webhook: "https://example.org/x", On: []string{"fail"}}, Image: "img", KillOnBadExit: true,
		Source: job.Source{Form: "sbatch", File: "train.sh", Given: map[string]string{"nodes": "2"}, Lines: [2]int{2, 5}, Host: "h", Submit: "/home/anna"},
		Provenance: &job.Provenance{
			Git: &job.Git{Root: "/r", Commit: "c", Branch: "main", Remote: "r", Dirty: true}, Files: []job.FileHash{{Name: "a", SHA256: "b", Size: 3}}, Image: "sha256:1", Notes: []string{"n"},
		},
	}
}

// everyAllocation holds two whole nodes.
func everyAllocation(id ledger.ID, j job.ID, attempt uint32) ledger.Allocation {
	a := ledger.Allocation{ID: id, Job: j, Attempt: attempt, Epoch: 1, Pool: "p", Status: ledger.Held, License: "b:1"}
	for _, n := range []string{"n1", "n2"} {
		a.Claims = append(a.Claims, fleet.Claim{
			Node: n, Tasks: 1, Whole: true, Take: resource.Vector{CPU: resource.CPUs(2), Memory: resource.GiB, Disk: 1, Named: []resource.Named{{Name: "lustre", Amount: 1}}},
			Devices: []fleet.DeviceClaim{{Index: 0, Share: 1000}, {Index: 1, Share: 1000}},
		})
	}
	return a
}

func everyReport(ref engine.Ref, j job.ID) engine.Report {
	return engine.Report{
		Ref: ref, Job: j, Version: 9, Phase: engine.Ended, Started: everyDay, Ended: everyDay.Add(time.Minute), Cause: engine.NodeLost,
		Exit: job.ExitCode{Status: 1, Signal: 9}, Message: "node n2 was lost", Gone: true, Files: []string{"/home/anna/o-1"},
		Nodes: []engine.NodeReport{{Node: "n1", Phase: engine.Ended, Message: "m", PID: 7}},
		Tasks: []engine.TaskReport{{Step: 0, Rank: 1, Node: "n1", PID: 8, Started: everyDay, Ended: everyDay, Cause: engine.Exited, Log: "/l"}},
	}
}

func everyPolicy() *account.Policy {
	few := int64(3)
	return &account.Policy{
		Priority: account.Weights{Age: 1000, MaxAge: account.Duration(time.Hour)},
		Accounts: []account.Account{
			{Name: "lab"},
			{Name: "ml", Parent: "lab", Shares: 2, Users: []account.User{{Name: "anna", Default: true}}, Limits: account.Limits{Group: account.TRES{"gpu": 8000}, Jobs: &few}},
		},
		QOS: []account.QOS{{Name: "high", Priority: 10, Flags: []string{"deny_on_limit"}}},
	}
}
