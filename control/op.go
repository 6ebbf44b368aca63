package control

import (
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Op is a change that somebody asks for, of any number of jobs.
type Op interface{ isOp() }

// The changes.
type (
	// Cancel ends jobs: pending ones at once, running ones by Signal (0: SIGTERM)
	// and, after Grace, SIGKILL. Grace 0 kills at once; negative: the control
	// plane's own. Cancelling an ended job is no error.
	Cancel struct {
		Grace   time.Duration
		Signal  int
		Message string
	}
	// Hold keeps pending jobs from starting, or lets them go again. What an
	// administrator holds (Admin) only an administrator releases (Admin).
	Hold struct {
		On    bool
		Admin bool
	}
	// Requeue ends running jobs and lets them wait for a new attempt, or lets ended
	// ones wait again; with Hold they wait until they are released.
	Requeue struct{ Hold bool }
	// Signal sends a signal to running jobs and nothing more. It is not journaled.
	Signal struct {
		Signal int
		To     engine.Scope
	}
	// Suspend stops the processes of running jobs, or continues them.
	Suspend struct{ On bool }
	// Saved says that running jobs have saved what they did until now: it is not lost
	// if they are ended, and they go on from there. As is engine.Saved's.
	Saved struct{ As string }
	// Top puts pending jobs before all others of their owner.
	Top struct{}
	// Update changes what was asked for; nil leaves a field. Most fields change only
	// while a job waits. Who may raise a limit or a priority is decided by the caller.
	Update struct {
		Name       *string
		Comment    *string
		Account    *string
		Partitions *[]string
		QOS        *string
		TimeLimit  *time.Duration // 0: none
		TimeMin    *time.Duration
		Begin      *time.Time // zero: at once
		Deadline   *time.Time // zero: none
		Depends    *job.Dependency
		Priority   *int64
		Nice       *int64
		Requeue    *bool
		MaxRunning *uint32 // of the whole array; 0: no limit
		Nodes      *job.Range
		NodeList   *[]string
		Exclude    *[]string
		Constraint *job.Constraint
	}
)

func (Cancel) isOp()  {}
func (Hold) isOp()    {}
func (Requeue) isOp() {}
func (Signal) isOp()  {}
func (Suspend) isOp() {}
func (Top) isOp()     {}
func (Saved) isOp()   {}
func (Update) isOp()  {}
