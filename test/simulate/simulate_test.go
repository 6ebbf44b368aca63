package simulate_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/coxswain-sched/coxswain/test/simulate"
)

// bubble runs a world in a bubble of its own.
func bubble(t *testing.T, opt simulate.Options) (out simulate.Result) {
	synctest.Test(t, func(*testing.T) { out = simulate.Run(opt) })
	return out
}

// TestSameSeedSameHistory: everything that happens follows from the seed.
func TestSameSeedSameHistory(t *testing.T) {
	for seed := range uint64(20) {
		opt := simulate.Options{Seed: seed / 2, Services: seed%2 == 1, Story: true}
		a, b := bubble(t, opt), bubble(t, opt)
		for i := range min(len(a.Story), len(b.Story)) {
			if a.Story[i] != b.Story[i] {
				t.Fatalf("seed %d, services %v, line %d:\n%s\n%s\nbefore:\n%s", opt.Seed, opt.Services, i, a.Story[i], b.Story[i], strings.Join(a.Story[max(0, i-15):i], "\n"))
			}
		}
		if !slices.Equal(a.Story, b.Story) {
			t.Fatalf("seed %d, services %v: %d and %d lines", opt.Seed, opt.Services, len(a.Story), len(b.Story))
		}
	}
}

// TestOneSeed tells the story of COX_SIM_SEED.
func TestOneSeed(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("COX_SIM_SEED"), 10, 64)
	if err != nil {
		t.Skip("COX_SIM_SEED names no seed")
	}
	r := bubble(t, simulate.Options{Seed: seed, Services: os.Getenv("COX_SIM_SERVICES") != "", Story: true})
	t.Logf("%d events\n%s", r.Events, strings.Join(r.Story, "\n"))
	for _, v := range r.Broken {
		t.Error(v)
	}
	if len(r.Broken) > 0 && os.Getenv("COX_SIM_SHRINK") != "" {
		short := simulate.Shrink(r, func(o simulate.Options) simulate.Result { return bubble(t, o) }, 500)
		t.Log(short.Tell())
	}
}
