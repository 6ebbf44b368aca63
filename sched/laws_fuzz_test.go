package sched_test

import (
	"testing"

	"pgregory.net/rapid"
)

// The laws as fuzz targets: coverage leads to histories that drawing alone seldom makes.
// scripts/fuzz.sh runs them as long as wanted.

func FuzzLaws(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { newWorld(t, nil).anything(t) }))
}

func FuzzLawsWithPreemption(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		w := newWorld(t, rules(t))
		w.anything(t)
		w.quiet(t)
	}))
}

func FuzzHeadIsNeverDelayed(f *testing.F) { f.Fuzz(rapid.MakeFuzz(headIsNeverDelayed)) }

func FuzzPlannedJobsAreNeverDelayed(f *testing.F) { f.Fuzz(rapid.MakeFuzz(plannedJobsAreNeverDelayed)) }
