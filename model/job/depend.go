package job

import (
	"fmt"
	"strings"
	"time"
)

// Dependency is what must have happened to other jobs before this one may start
// (sbatch --dependency). The zero value asks for nothing.
type Dependency struct {
	Text    string             `json:"text,omitempty"` // as written
	Any     bool               `json:"any,omitempty"`  // one clause suffices ("?"); otherwise all must hold (",")
	Clauses []DependencyClause `json:"clauses,omitempty"`
	// KillIfNever ends a job that can never meet its dependency, instead of
	// letting it wait (sbatch --kill-on-invalid-dep). nil: as the site says.
	KillIfNever *bool `json:"kill_if_never,omitempty"`
}

// DependencyKind says what must have happened, in sbatch's words.
type DependencyKind string

// The kinds of dependency.
const (
	After      DependencyKind = "after"            // has started or was cancelled, Delay ago
	AfterAny   DependencyKind = "afterany"         // has ended
	AfterOK    DependencyKind = "afterok"          // has ended COMPLETED
	AfterNotOK DependencyKind = "afternotok"       // has ended otherwise
	AfterCorr  DependencyKind = "aftercorr"        // the task of the same index has ended COMPLETED
	AfterBurst DependencyKind = "afterburstbuffer" // as AfterAny: there are no burst buffers to wait for
	Singleton  DependencyKind = "singleton"        // no earlier job of the same name and user lives
)

// DependencyClause is one condition; all its jobs must meet it.
type DependencyClause struct {
	Kind  DependencyKind `json:"kind"`
	Jobs  []JobRef       `json:"jobs,omitempty"`  // none for Singleton
	Delay time.Duration  `json:"delay,omitempty"` // After only
}

// JobRef names a job, or one task of an array; without a task an array is meant
// whole.
type JobRef struct {
	Job  ID      `json:"job"`
	Task *uint32 `json:"task,omitempty"`
}

// String is "7" or "7_3".
func (r JobRef) String() string {
	if r.Task == nil {
		return r.Job.String()
	}
	return fmt.Sprintf("%d_%d", r.Job, *r.Task)
}

// IsZero reports whether nothing is asked for.
func (d Dependency) IsZero() bool { return len(d.Clauses) == 0 }

// String is the dependency as sbatch spells it: "afterok:7:8,after:9+10".
func (d Dependency) String() string {
	var parts []string
	for _, c := range d.Clauses {
		s := string(c.Kind)
		for _, j := range c.Jobs {
			s += ":" + j.String()
			if c.Delay > 0 {
				s += fmt.Sprintf("+%d", int(c.Delay.Minutes()))
			}
		}
		parts = append(parts, s)
	}
	if d.Any {
		return strings.Join(parts, "?")
	}
	return strings.Join(parts, ",")
}
