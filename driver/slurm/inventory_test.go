package slurm_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// aStock is a cluster with every kind of rule.
func aStock() *fleet.Inventory {
	return &fleet.Inventory{
		Enforced: []string{"associations", "limits", "qos"},
		Partitions: []fleet.Partition{
			{Name: "main", Default: true, State: "UP", MaxTime: 86400, Nodes: "n[1-2]"},
			{Name: "short", State: "UP", MaxTime: 1800, MaxNodes: 1, Accounts: []string{"physics"}, AllowQOS: []string{"normal"}},
			{Name: "long", State: "UP", DenyAccounts: []string{"physics"}},
		},
		QOS: []fleet.QOS{{Name: "normal"}, {Name: "capped", MaxTime: 3600}, {Name: "boss", Flags: []string{"PartitionTimeLimit"}}},
		Associations: []fleet.Association{
			{Account: "root"},
			{Account: "physics", Parent: "root"},
			{Account: "optics", Parent: "physics"},
			{Account: "art", Parent: "root"},
			{Account: "optics", User: "ann", Default: true, QOS: []string{"normal", "capped"}, MaxTime: 7200},
			{Account: "art", User: "bob", Default: true, QOS: []string{"boss"}},
			{Account: "physics", User: "bob", QOS: []string{"normal"}},
		},
		Reservations: []fleet.Reservation{{Name: "course", State: "ACTIVE", Nodes: "n2", Start: time.Now().Add(-time.Hour), End: time.Now().Add(time.Hour)}},
		Licenses:     []fleet.License{{Name: "matlab", Total: 4, Used: 4}},
	}
}

// filled opens an engine that knows the stock of a stage.
func filled(t *testing.T, s *stage, set func(*slurm.Config)) *slurm.Engine {
	t.Helper()
	e, _ := stageWith(t, s, set)
	for deadline := time.Now().Add(time.Minute); e.Inventory() == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no stock was taken")
		}
	}
	return e
}

// draft is a specification with all that a job needs.
func draft(s *job.Spec) *engine.JobDraft {
	out := *s
	out.WorkDir, out.Program = "/w", job.Program{Kind: job.Direct, Args: []string{"prog"}}
	if out.Owner.User != "root" {
		out.Owner.UID = 1000
	}
	if len(out.Groups) == 0 {
		out.Groups = make([]job.TaskGroup, 1)
	}
	return &engine.JobDraft{Spec: &out}
}

// TestAdmit: what no rule of the cluster's ever takes is refused with the rule and what
// would mend it; what may run, now or later, is not.
//
// Seen to fail with: subaccounts not under AllowAccounts; licences in use counted as gone;
// QOS that lift a partition's limit not looked for; the first of several partitions decides.
func TestAdmit(t *testing.T) {
	e := filled(t, &stage{stock: aStock()}, func(c *slurm.Config) { c.Identity = slurm.Identity{Mode: slurm.AsOwner, Root: true} })
	type spec = job.Spec
	of := func(user string, s spec) *spec { s.Owner.User = user; return &s }
	two := []job.TaskGroup{{Nodes: job.Range{Min: 2}}}
	for _, c := range []struct {
		name string
		s    *spec
		want string // in the error, and | what is in the remedy; empty: it is taken
	}{
		{"nothing asked", of("ann", spec{}), ""},
		{"full licences", of("ann", spec{Licenses: "matlab:4"}), ""},
		{"more licences than there are", of("ann", spec{Licenses: "x,matlab:5"}), "licence matlab: there are 4, the job asks for 5|matlab:4"},
		{"one licence or the other", of("ann", spec{Licenses: "matlab:5|x"}), ""},
		{"a licence of ours", of("ann", spec{Licenses: "fluent:9"}), ""},
		{"a licence of the cluster's", of("ann", spec{Licenses: "matlab,fluent", LicensesThere: []string{"matlab"}}), ""},
		{"a licence of nobody's", of("ann", spec{Licenses: "matlb", LicensesThere: []string{"matlb"}}), "there is no licence matlb: neither|--licenses: matlab"},
		{"a licence of another server", of("ann", spec{Licenses: "x@db:2", LicensesThere: []string{"x@db"}}), ""},
		{"no such partition", of("ann", spec{Partitions: []string{"main", "shrt"}}), "there is no partition shrt|long, main, short"},
		{"no such QOS", of("ann", spec{QOS: "hgh"}), "there is no QOS hgh|boss, capped, normal"},
		{"no such reservation", of("ann", spec{Reservation: "cource"}), "there is no reservation cource|course"},
		{"a reservation", of("ann", spec{Reservation: "course"}), ""},
		{"no such account", of("ann", spec{Account: "physik"}), "user ann has no association with account physik|optics"},
		{"another's account", of("ann", spec{Account: "art"}), "user ann has no association with account art|optics"},
		{"nobody's user", of("eve", spec{}), "user eve has no association with any account|sacctmgr add user eve"},
		{"root", of("root", spec{Account: "physik"}), ""},
		{"a QOS of others", of("ann", spec{QOS: "boss"}), "user ann may not use QOS boss in account optics|normal, capped"},
		{"longer than the QOS", of("ann", spec{QOS: "capped", TimeLimit: 61 * time.Minute}), "QOS capped: at most 01:00:00 (MaxWall), the job asks for 01:01:00|--time=01:00:00"},
		{"longer than the account", of("ann", spec{QOS: "normal", TimeLimit: 3 * time.Hour}), "account optics: at most 02:00:00 for user ann|--time=02:00:00"},
		{"the default QOS may be any", of("ann", spec{TimeLimit: 3 * time.Hour}), ""},
		{"longer than the default partition", of("bob", spec{Account: "physics", QOS: "normal", TimeLimit: 25 * time.Hour}), "partition main: at most 1-00:00:00 (MaxTime), the job asks for 1-01:00:00|or --partition: long"},
		{"a QOS that lifts the limit", of("bob", spec{QOS: "boss", TimeLimit: 25 * time.Hour}), ""},
		{"a default QOS that may lift it", of("bob", spec{TimeLimit: 25 * time.Hour}), ""},
		{"another partition takes it", of("bob", spec{Account: "physics", QOS: "normal", TimeLimit: time.Hour, Partitions: []string{"short", "main"}}), ""},
		{"a shorter time would do", of("bob", spec{Account: "physics", QOS: "normal", TimeLimit: 25 * time.Hour, TimeMin: time.Hour}), ""},
		{"too many nodes", of("bob", spec{Account: "physics", QOS: "normal", Partitions: []string{"short"}, Groups: two}), "partition short: at most 1 nodes a job (MaxNodes), the job asks for 2|--nodes=1"},
		{"a subaccount of one that is allowed", of("ann", spec{Account: "optics", Partitions: []string{"short"}}), ""},
		{"an account that is not allowed", of("bob", spec{Account: "art", Partitions: []string{"short"}}), "partition short: not for account art (AllowAccounts)|physics"},
		{"a denied account", of("bob", spec{Account: "physics", Partitions: []string{"long"}}), "partition long: not for account physics (DenyAccounts)|another"},
		{"a QOS that is not allowed", of("ann", spec{QOS: "capped", Partitions: []string{"short"}}), "partition short: not with QOS capped (AllowQos)|normal"},
	} {
		err := e.Admit(t.Context(), draft(c.s))
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		text, mend, _ := strings.Cut(c.want, "|")
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), text) || !strings.Contains(fault.Remedy(err), mend) {
			t.Errorf("%s: %v (%s)", c.name, err, fault.Remedy(err))
		}
	}
}

// TestAdmitWhatIsNotCertain: nothing is refused that the inventory does not say for certain.
//
// Seen to fail with: rules about accounts used though none are enforced; an old inventory
// believed.
func TestAdmitWhatIsNotCertain(t *testing.T) {
	ann := job.Owner{User: "ann"}
	bad := []*job.Spec{{Owner: ann, Account: "physik"}, {Owner: ann, QOS: "hgh"}, {Owner: job.Owner{User: "eve"}}}
	loose := aStock()
	loose.Enforced = []string{"none"}
	e := filled(t, &stage{stock: loose}, func(c *slurm.Config) { c.Identity = slurm.Identity{Mode: slurm.AsOwner, Root: true} })
	for _, s := range bad {
		if err := e.Admit(t.Context(), draft(s)); err != nil {
			t.Errorf("nothing is enforced: %v", err)
		}
	}
	unread := aStock()
	unread.Associations, unread.Reservations, unread.Unknown = nil, nil, []string{"associations: no answer", "reservations: no answer"}
	e = filled(t, &stage{stock: unread}, func(c *slurm.Config) { c.Identity = slurm.Identity{Mode: slurm.AsOwner, Root: true} })
	for _, s := range []*job.Spec{{Owner: ann, Account: "physik"}, {Owner: ann, Reservation: "x"}} {
		if err := e.Admit(t.Context(), draft(s)); err != nil {
			t.Errorf("it was not told: %v", err)
		}
	}
	e = filled(t, &stage{stock: aStock()}, func(*slurm.Config) {}) // whose the jobs are in Slurm is not known
	if err := e.Admit(t.Context(), draft(&job.Spec{Owner: job.Owner{User: "eve"}})); err != nil {
		t.Error(err)
	}
	if err := e.Admit(t.Context(), draft(&job.Spec{Account: "physik"})); err == nil {
		t.Error("an account that nobody has is taken")
	}
	e = filled(t, &stage{stock: aStock()}, func(c *slurm.Config) { c.Stock = time.Hour; c.Options = []string{"--partition=short"} })
	if err := e.Admit(t.Context(), draft(&job.Spec{Account: "physics", QOS: "normal", TimeLimit: time.Hour})); err == nil || !strings.Contains(err.Error(), "partition short") {
		t.Errorf("the pool's own partition: %v", err)
	}
	gone := &stage{stock: aStock()}
	e = filled(t, gone, func(c *slurm.Config) { c.Stock = time.Nanosecond })
	gone.with(func() { gone.stock = nil })
	awaits(t, "an inventory that is too old", func() bool { return e.Admit(t.Context(), draft(&job.Spec{Partitions: []string{"shrt"}})) == nil })
}

// TestInventory: nodes with what ours and others hold, the reservation that has them now,
// and jobs by user and partition.
//
// Seen to fail with: our jobs on two nodes counted whole on each; a reservation of tomorrow
// shown.
func TestInventory(t *testing.T) {
	s := &stage{
		stock: aStock(),
		nodes: []site.Node{
			{Name: "n1", State: "mixed", CPUs: 8, UsedCPUs: 6, GRES: "gpu:h100:4", Taken: "gpu:h100:3(IDX:0-2)", Available: true, Parts: []string{"main", "short"}},
			{Name: "n2", State: "idle+drain", Reason: "fan is loud", CPUs: 8, UsedCPUs: 1, GRES: "gpu:h100:4", Taken: "gpu:h100:1(IDX:0)", Drained: true},
		},
	}
	s.stock.Reservations = append(s.stock.Reservations, fleet.Reservation{Name: "upkeep", Nodes: "n1", Start: time.Now().Add(time.Hour), End: time.Now().Add(2 * time.Hour)})
	e, root := stageWith(t, s, func(c *slurm.Config) { c.Stock = time.Millisecond })
	begin(t, e, root)
	tag := ""
	for deadline := time.Now().Add(time.Minute); tag == ""; time.Sleep(time.Millisecond) {
		if s.with(func() {
			if len(s.jobs) > 0 {
				tag = s.jobs[0].Comment[:strings.Index(s.jobs[0].Comment, ":7:")+1] // cox:WORD:
			}
		}); time.Now().After(deadline) {
			t.Fatal("nothing was handed over")
		}
	}
	s.with(func() {
		s.everyone = []site.Held{
			{User: "ann", Partition: "main", Comment: tag + "1:1.1 mine", Running: true, Nodes: []string{"n1", "n2"}, CPUs: 3, GPUs: 2},
			{User: "bob", Partition: "main", Comment: "cox:other:1:1.1", Running: true, Nodes: []string{"n1"}, CPUs: 4, GPUs: 2},
			{User: "bob", Partition: "main"},
			{User: "bob", Partition: "main"},
		}
	})
	if _, err := e.Nodes(t.Context()); err != nil {
		t.Fatal(err)
	}
	var inv *fleet.Inventory
	for deadline := time.Now().Add(time.Minute); inv == nil || len(inv.Use) < 2 || len(inv.Nodes) < 2; time.Sleep(time.Millisecond) {
		if inv = e.Inventory(); time.Now().After(deadline) {
			t.Fatalf("%+v", inv)
		}
	}
	want := []fleet.NodeStock{
		{Name: "n1", Level: fleet.Up, State: "mixed", Partitions: []string{"main", "short"}, CPUs: 8, CPUsOurs: 2, CPUsOthers: 4, GPUs: 4, GPUsOurs: 1, GPUsOthers: 2},
		{Name: "n2", Level: fleet.Draining, State: "idle+drain", Why: "fan is loud", Reservation: "course", CPUs: 8, CPUsOurs: 1, GPUs: 4, GPUsOurs: 1},
	}
	same(t, inv.Nodes, want)
	same(t, inv.Use, []fleet.Use{
		{User: "bob", Partition: "main", Running: 1, Waiting: 2, Nodes: 1, CPUs: 4, GPUs: 2},
		{User: "ann", Partition: "main", Ours: true, Running: 1, Nodes: 2, CPUs: 3, GPUs: 2},
	})
}

func same(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
