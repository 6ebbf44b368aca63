package slurm

import (
	"testing"

	"github.com/coxswain-sched/coxswain/engine/kit"
	"github.com/coxswain-sched/coxswain/engine/kit/kittest"
)

// TestJournalsOfEarlierVersions are read and written as that version did it, with the jobs that Slurm
// put back.
//
// Seen to fail with: a field of an entry that is renamed; jobs that are rewritten without those that
// were put back.
func TestJournalsOfEarlierVersions(t *testing.T) {
	kittest.Compatible(t, "testdata", func(path, name string) (*kit.Journal[entry, life], error) {
		j, err := openJournal(path, name)
		if err != nil {
			return nil, err
		}
		return j.Journal, nil
	})
}
