package interactive

import (
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// place is a job, and where in it.
type place struct {
	job  string
	node string // empty: that of the rank, or the first
	rank *int
}

// parsePlace reads JOB, JOB.RANK or JOB.NODE.
func parsePlace(text string) (place, error) {
	job, where, dotted := strings.Cut(text, ".")
	p := place{job: job}
	switch {
	case job == "" || dotted && where == "":
		return p, fault.New(fault.Invalid, "%q names no job, rank or node", text).Advise("write 7, 7.5 for rank 5, or 7.v2 for node v2")
	case dotted:
		if n, err := strconv.Atoi(where); err == nil && n >= 0 {
			p.rank = &n
		} else {
			p.node = where
		}
	}
	return p, nil
}

// command is a command at the place.
func (p place) command(words ...string) api.Exec {
	return api.Exec{Command: words, Node: p.node, Rank: p.rank}
}
