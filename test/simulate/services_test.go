package simulate_test

import (
	"os"
	"testing"

	"github.com/coxswain-sched/coxswain/test/simulate"
)

// serviceSeeds is how many worlds with services are run; make torture runs twenty times as many.
const serviceSeeds = 100

// TestServices runs worlds in which each server has the controller of services: with everything that goes
// wrong in other worlds, and with requests of the controller that are made twice and answers and news of
// endpoints that are lost, late or doubled. COX_SIM_SERVICES says how many, COX_SIM_SEED with which to
// begin.
func TestServices(t *testing.T) {
	many := uint64(serviceSeeds)
	if os.Getenv("COX_LONG") != "" {
		many *= 20
	}
	first := number(t, "COX_SIM_SEED", 1)
	runSeeds(t, &sweep{services: true, seen: map[string]int{}, first: first, next: first, last: first + number(t, "COX_SIM_SERVICES", many)})
}

// TestServicesCrashAtEveryWrite kills the server before and after each write of the journal and of the
// projection while a service is made, kept alive, updated, scaled, undone and stopped: at every third of
// these moments, and at each with make torture.
func TestServicesCrashAtEveryWrite(t *testing.T) {
	opt := simulate.Options{Seed: 1, Calm: true, Services: true, Plan: simulate.ServicePlan}
	whole := bubble(t, opt)
	if len(whole.Broken) > 0 || whole.Writes < 40 || whole.Seen["a replica is submitted"] < 7 {
		t.Fatalf("without a crash, with %d writes and %d replicas: %v", whole.Writes, whole.Seen["a replica is submitted"], whole.Broken)
	}
	step := 3
	if os.Getenv("COX_LONG") != "" {
		step = 1
	}
	for n := 0; n < 2*whole.Writes; n += step {
		opt.CrashAt, opt.CrashAfter = n/2+1, n%2 == 1
		if r := bubble(t, opt); len(r.Broken) > 0 {
			opt.Story = true
			r = bubble(t, opt)
			t.Fatalf("killed at write %d (after it: %v): %s", opt.CrashAt, opt.CrashAfter, r.Tell())
		}
	}
	t.Logf("%d writes, %d replicas", whole.Writes, whole.Seen["a replica is submitted"])
}
