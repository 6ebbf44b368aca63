package control

import (
	"encoding/json"
	"time"

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
	fs := newSharedSpecs()
	var out []store.Record
	add := func(kind string, id job.ID, payload any) {
		at = at.Add(time.Second)
		out = append(out, newRecord(at, kind, id, job.Actor{Name: "anna", UID: 2001, From: "socket"}, payload))
	}
	submit := func(first job.ID, s *job.Spec) {
		f, o := fs.useSpec(s)
		add(kindSubmitted, first, &acceptedSubmission{first: first, shared: f, ownDelta: o})
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

	add(kindHeld, 1, held{Allocation: everyAllocation(1, 1, 1)})
	add(kindStarted, 1, started{Ref: one, Started: at})
	add(kindHold, 6, hold{Held: true, Admin: true, State: statePointer(job.Pending)})
	b := everyAllocation(2, 2, 1)
	b.Claims = []fleet.Claim{{Node: "n3", Tasks: 1, Take: resource.Vector{CPU: 500}, Devices: []fleet.DeviceClaim{{Index: 1, Share: 500}}}}
	add(kindHeld, 2, held{Allocation: b})
	add(kindStarted, 2, started{Ref: second, Started: at, Nodes: []string{"far1"}, At: 600, Used: []fair.Entry{{Account: "a", User: "u", Raw: 7, Wall: 7, TRES: map[string]float64{"gpu": 7}}}})
	add(kindUncertain, 2, uncertain{Ref: second, Uncertain: true, Message: "its supervisor is silent"})
	add(kindSuspend, 1, suspend{On: true, State: statePointer(job.Suspended)})
	add(kindSuspend, 1, suspend{State: statePointer(job.Running)})
	add(kindSuspend, 1, suspend{On: true, Parked: true, State: statePointer(job.Suspended)})
	add(kindSuspend, 1, suspend{Parked: true, State: statePointer(job.Running)})
	f, o := fs.useSpec(plainSpec("renamed"))
	add(kindUpdate, 3, update{Own: &o, Spec: []byte(f.key), Fields: []string{"name", "max_running"}, MaxRunning: &two, Queue: &queuePlace{Priority: 3, At: at.UnixNano()}, State: statePointer(job.Pending)})
	s = everySpec()
	s.TimeLimit = 20 * time.Minute
	f, o = fs.useSpec(s)
	add(kindUpdate, 1, update{Own: &o, Spec: []byte(f.key), Fields: []string{"time_limit"}, State: statePointer(job.Running)})
	add(kindTop, 4, queueMoved{Moves: []queuePlace{{Job: 4, Priority: 9, At: at.UnixNano()}, {Job: 5, Priority: 8, At: at.UnixNano()}}, State: statePointer(job.Pending)})
	add(kindCancel, 6, cancel{Message: "not needed", State: statePointer(job.Cancelled)})
	add(kindRequeue, 6, requeue{Hold: true, State: statePointer(job.Pending)})
	add(kindEnded, 1, ended{
		Ref: one, State: job.Pending, By: job.ByEngine, Flags: job.Requeued | job.LaunchFailed, Report: everyReport(one, 1), Again: at.Add(time.Minute), Failed: 1,
	})
	add(kindHeld, 1, held{Allocation: everyAllocation(3, 1, 2)})
	more := ledger.Allocation{ID: 4, Job: 1, Attempt: 2, Epoch: 1, Pool: "p", Status: ledger.Held, Adds: 3, Claims: []fleet.Claim{{Node: "n4", Tasks: 1, Take: resource.Vector{CPU: resource.OneCPU}}}}
	fourth := engine.Ref{Allocation: 4, Attempt: 2}
	add(kindAdded, 1, added{Allocation: more, First: 2, State: statePointer(job.Running)})
	add(kindJoined, 1, joined{Ref: fourth, Started: at, State: statePointer(job.Running)})
	add(kindUncertain, 1, uncertain{Ref: fourth, Uncertain: true, Message: "its supervisor is silent"})
	add(kindAsked, 1, askedBack{Ref: fourth, For: 6, Grace: time.Minute, State: statePointer(job.Running)})
	add(kindDropped, 1, dropped{Ref: fourth, Settled: true, Message: "given back for job 6", State: statePointer(job.Running), Used: []fair.Entry{{Account: "ml", User: "anna", Raw: 2}}})
	add(kindSaved, 1, saved{State: statePointer(job.Running)})
	add(kindPreempted, 1, preempted{For: 6, Mode: account.PreemptCheckpoint, Signal: 10, Grace: time.Minute, State: statePointer(job.Running)})
	add(kindExpired, 1, expired{State: job.Timeout, Grace: 30 * time.Second})
	add(kindEnded, 1, ended{Ref: third, State: job.Timeout, By: job.ByControl, Report: everyReport(third, 1)})
	add(kindRequeue, 2, requeue{State: statePointer(job.Running)})
	add(kindCancel, 2, cancel{Signal: 15, Grace: 5 * time.Second, Message: "no more", State: statePointer(job.Running)})
	add(kindNodes, 0, nodesSet{Nodes: []string{"n2", "n3"}, Drain: true, Reason: "a fan"})
	add(kindPool, 0, PoolSpec{Name: "b", Engine: "slurm", Settings: json.RawMessage(`{"ssh":"login"}`), At: at, By: job.Actor{Name: "root"}})
	add(kindPool, 0, PoolSpec{Name: "c", Engine: "slurm", At: at})
	add(kindPoolGone, 0, poolGone{"c"})
	add(kindToken, 0, Token{ID: "t1", Hash: "h", Name: "anna", UID: 2001, GID: 2001, Accounts: []string{"ml"}, Comment: "laptop", Created: at, Expires: at.Add(time.Hour)})
	add(kindRevoked, 0, revoked{"t1"})
	add(kindExpired, 5, expired{State: job.Deadline})
	add(kindUsage, 0, usage{At: 1000, Entries: []fair.Entry{{Account: "ml", User: "anna", Raw: 12.5, Wall: 3, TRES: map[string]float64{"gpu": 1.5}}, {QOS: "high", Raw: 1}}})
	add(kindLearned, 0, share.Memory{Seen: []share.Seen{{CPU: 8000, Count: 1, Milli: 500, Of: `{"kind":"gpu"}`, Weight: 3, Known: 2}}, Sum: 3, CPU: 24000, GPU: 1500, Due: 4, KnownCPU: 16000, KnownGPU: 1000})
	add(kindPolicy, 0, Policy{Revision: 1, File: "queues.yaml", Note: "first", Hash: store.Hash([]byte("x")), Text: "x", Rules: everyPolicy()})
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
		Mail: &job.Mail{Types: []string{"END"}, To: "anna@example.org"}, Image: "img", KillOnBadExit: true,
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
