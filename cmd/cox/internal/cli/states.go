package cli

import (
	"strings"

	"github.com/coxswain-sched/coxswain/model/job"
)

// StateNames are the long names of all states.
func StateNames() []string {
	var names []string
	for _, s := range job.States() {
		names = append(names, s.String())
	}
	return names
}

// LongStates makes long names of short ones: R is RUNNING. Words that are not known
// stay, for the server to judge.
func LongStates(words []string) []string {
	var out []string
	for _, w := range words {
		up := strings.ToUpper(w)
		long := up
		if up == "ALL" {
			long = "all"
		}
		for _, s := range job.States() {
			if s.Short() == up {
				long = s.String()
			}
		}
		out = append(out, long)
	}
	return out
}
