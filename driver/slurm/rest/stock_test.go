package rest_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

var stocked = map[string]string{
	"GET /partitions": "partitions", "GET /reservations": "reservations", "GET /licenses": "licenses", "GET /qos": "qos", "GET /associations": "associations", "GET /jobs": "jobs",
}

// What real servers say of partitions, QOS, associations, reservations and licences is the
// same in all versions.
//
// Seen to fail with: maximums of v0.0.40 not read; wall clock limits taken as seconds.
func TestRecordedStock(t *testing.T) {
	for _, v := range versions {
		t.Run(v, func(t *testing.T) {
			inv, err := record(t, v, stocked).site(t).Stock(t.Context())
			if err != nil || len(inv.Partitions) != 3 || len(inv.QOS) != 2 || len(inv.Associations) != 4 || len(inv.Reservations) != 2 || len(inv.Licenses) != 2 {
				t.Fatalf("%+v, %v", inv, err)
			}
			if len(inv.Unknown) != 1 || inv.Enforced != nil {
				t.Errorf("not told: %q, enforced %q", inv.Unknown, inv.Enforced)
			}
			main := fleet.Partition{Name: "main", Default: v == "v0.0.38", State: "UP", Nodes: "n[1-4]", Priority: 1}
			short := fleet.Partition{
				Name: "short", State: "UP", Nodes: "n[1-2]", MaxTime: 1800, DefaultTime: 600, MinNodes: 1, MaxNodes: 1, Accounts: []string{"physics", "root"},
				AllowQOS: []string{"normal", "capped"}, Priority: 5,
			}
			parked := fleet.Partition{Name: "parked", State: "DOWN", Nodes: "n4", MinNodes: 1, DenyAccounts: []string{"physics"}, Priority: 1}
			for i, want := range []fleet.Partition{main, short, parked} {
				same(t, inv.Partitions[i], want)
			}
			same(t, inv.QOS[1], fleet.QOS{
				Name: "capped", Priority: 10, Flags: []string{"PartitionTimeLimit"}, MaxTime: 5400, MaxPerJob: "node=2", MaxPerUser: "cpu=8,gres/gpu=2",
				MaxJobsPerUser: 1, MaxSubmitPerUser: 5, Group: "gres/gpu=6",
			})
			at := slices.IndexFunc(inv.Associations, func(a fleet.Association) bool { return a.User == "nobody" })
			same(t, inv.Associations[at], fleet.Association{Account: "physics", User: "nobody", Default: true, QOS: []string{"capped", "normal"}, Shares: 1, MaxTime: 7200, MaxJobs: 3})
			at = slices.IndexFunc(inv.Associations, func(a fleet.Association) bool { return a.Account == "physics" && a.User == "" })
			same(t, inv.Associations[at], fleet.Association{Account: "physics", Parent: "root", QOS: []string{"capped", "normal"}, Shares: 1, MaxTime: 7200, Group: "cpu=100,gres/gpu=4"})
			r := inv.Reservations[1]
			if r.Name != "upkeep" || r.Nodes != "n4" || !slices.Equal(r.Accounts, []string{"root"}) || r.Users != nil || !slices.Contains(r.Flags, "MAINT") || r.End.Sub(r.Start) != time.Hour {
				t.Errorf("%+v", r)
			}
			same(t, inv.Licenses, []fleet.License{{Name: "fluent", Total: 2}, {Name: "matlab", Total: 4, Used: 1}})
		})
	}
}

func same(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// What everybody's jobs hold; an array that waits is one of them.
func TestRecordedEveryone(t *testing.T) {
	for _, v := range versions {
		t.Run(v, func(t *testing.T) {
			all, err := record(t, v, stocked).site(t).Everyone(t.Context())
			if err != nil || len(all) != 4 {
				t.Fatalf("%+v, %v", all, err)
			}
			for i := range all { // which of them run is not the same in all recordings
				all[i].Running, all[i].Nodes = false, nil
			}
			slices.SortFunc(all, func(a, b site.Held) int { return 10*(b.GPUs-a.GPUs) + a.CPUs - b.CPUs })
			same(t, all, []site.Held{
				{User: "root", Partition: "main", Comment: "cox:x:1:1.1 y", CPUs: 2, GPUs: 4},
				{User: "root", Partition: "main", CPUs: 2, GPUs: 2},
				{User: "root", Partition: "main", CPUs: 3, GPUs: 1},
				{User: "root", Partition: "short", CPUs: 3},
			})
		})
	}
}
