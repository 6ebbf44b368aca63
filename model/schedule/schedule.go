// Package schedule has the words of schedules: a job that is submitted at the times of a cron
// expression, as a Kubernetes CronJob or a line of scrontab does. It has no I/O and no clock. A run of a
// schedule is a job (job.Part); which runs are due is decided by service/schedule/decide.
package schedule

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

// ControllerKind is the first part of the name of a schedule's controller: "schedule/team/nightly".
const ControllerKind = "schedule"

// Spec is what a user asked for. It is not written after submission.
type Spec struct {
	Name    string    `json:"name"`              // without account, see CheckName
	Account string    `json:"account,omitempty"` // that it belongs to; empty: a site without accounts
	Owner   job.Owner `json:"owner"`

	Settings

	Job    job.Spec `json:"job"`              // of each run; Job.Part is not set
	Script []byte   `json:"script,omitempty"` // of a job of kind job.Batch
	Env    []string `json:"env,omitempty"`    // NAME=VALUE of the submitter

	Text string `json:"text,omitempty"` // the file as it was submitted
}

// Settings say when a job runs, and what becomes of runs that cannot begin then.
type Settings struct {
	Cron    string        `json:"cron"`               // as ParseCron takes it
	Zone    string        `json:"zone,omitempty"`     // of the IANA's time zones, "Europe/Zurich"; empty: the server's own
	Overlap Overlap       `json:"overlap"`            // what happens while an earlier run has not ended
	Late    time.Duration `json:"late,omitempty"`     // how late a run may begin, at most; 0: as late as it has to (Kubernetes' startingDeadlineSeconds)
	Suspend bool          `json:"suspend,omitempty"`  // it begins with no runs by the clock until it is resumed
	CatchUp bool          `json:"catch_up,omitempty"` // times that pass while it is suspended count as missed, as in Kubernetes; else they are left out
	Keep    History       `json:"keep"`
}

// DefaultSettings are those of the native form where nothing is said. A Kubernetes CronJob has others:
// Allow, CatchUp, KubernetesHistory.
func DefaultSettings() Settings {
	return Settings{Overlap: Skip, Keep: History{Done: DefaultHistory, Failed: DefaultHistory}}
}

// OnTime is how late a run may begin of a schedule that leaves missed runs out.
const OnTime = time.Minute

// Overlap says what happens at the time of a run while an earlier one has not ended. One that waits in
// the queue has not ended either.
type Overlap string

// The three ways, with Kubernetes' names (concurrencyPolicy).
const (
	Allow   Overlap = "allow"   // Allow: both run
	Skip    Overlap = "skip"    // Forbid: the new run is left out
	Replace Overlap = "replace" // Replace: the earlier one is cancelled, and the new run begins after its end
)

// Overlaps lists the values of Overlap.
func Overlaps() []Overlap { return []Overlap{Allow, Skip, Replace} }

// History is how many runs that are over are shown.
type History struct {
	Done   int `json:"done"`   // that completed
	Failed int `json:"failed"` // the others: failed, cancelled, refused
}

// Bounds of History.Done and History.Failed.
const (
	DefaultHistory = 10 // where nothing is said
	MostHistory    = 1000
)

// KubernetesHistory is what a CronJob without limits has.
var KubernetesHistory = History{Done: 3, Failed: 1}

// The variables that a run has besides those of its job.
const (
	VariableTime = "COX_SCHEDULED_TIME" // the time that the run is for, RFC 3339, in the zone of the schedule
	VariableName = "COX_SCHEDULE"       // the full name of the schedule
)

// Document is what is known of a schedule: the projected document of its controller. It is written as a
// whole with each change.
type Document struct {
	Revision uint32    `json:"revision"` // of Spec, from 1; grows with each submission that changes it
	Spec     Spec      `json:"spec"`
	Created  time.Time `json:"created"`
	At       time.Time `json:"at"` // of the revision
	By       string    `json:"by"` // of the revision

	Suspended   bool      `json:"suspended,omitempty"`
	SuspendedAt time.Time `json:"suspended_at,omitzero"`
	SuspendedBy string    `json:"suspended_by,omitempty"`

	// Since is the time after which times of the schedule are still to be decided upon: when it was
	// made, the last time that was decided upon, or when it was resumed.
	Since time.Time `json:"since"`

	ByHand uint32 `json:"by_hand,omitempty"` // runs by hand, ever
	Runs   []Run  `json:"runs,omitempty"`    // ascending in the order in which they were decided upon
}

// Run is one time of a schedule, or one run by hand.
type Run struct {
	At       time.Time `json:"at"`            // the time that it is for
	Try      uint32    `json:"try,omitempty"` // 0: by the clock; else the number of the run by hand
	By       string    `json:"by,omitempty"`  // of a run by hand
	Revision uint32    `json:"revision"`
	Missed   int       `json:"missed,omitempty"` // times before At that had passed too when it was decided upon, MostMissed + 1 at most

	State   State     `json:"state"`
	Job     job.ID    `json:"job,omitempty"`     // 0: none was submitted
	Outcome job.State `json:"outcome,omitempty"` // of Ended; of an array the worst of its tasks
	Ended   time.Time `json:"ended,omitzero"`    // of Ended
	Exit    string    `json:"exit,omitempty"`    // of Ended, for people
	Why     string    `json:"why,omitempty"`     // it was skipped or refused or still waits to be submitted, for people
}

// State is how far a run is.
type State string

// The states of a run. Due and Live are the ones that are not over.
const (
	Due     State = "due"     // its job is to be submitted
	Live    State = "live"    // its job was submitted and has not ended
	Ended   State = "ended"   // its job has ended
	Skipped State = "skipped" // there was no job: overlap, too late, or not submitted before the next time
	Refused State = "refused" // the job was refused
)

// Over reports whether nothing comes after the state.
func (s State) Over() bool { return s == Ended || s == Skipped || s == Refused }

// Part is the part of the controller's work that a run's job is.
func (r *Run) Part(controller string) job.Part {
	return job.Part{Controller: controller, Revision: r.Revision, Index: uint32(r.At.Unix()), Try: r.Try} //nolint:gosec // seconds until 2106
}

// Last returns the newest run by the clock; nil: there is none.
func (d *Document) Last() *Run {
	for i := range slices.Backward(d.Runs) {
		if d.Runs[i].Try == 0 {
			return &d.Runs[i]
		}
	}
	return nil
}

// nameForm is the form of a schedule's name, which is that of a job besides.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

// CheckName reports why a text is no name of a schedule.
func CheckName(s string) error {
	switch {
	case s == "":
		return errors.New("the name is empty")
	case !nameForm.MatchString(s):
		return fmt.Errorf("%.70q is not made of letters, digits, hyphens, underscores and dots, 63 of them at most", s)
	}
	return nil
}

// FullName is a schedule's name with the account that it belongs to: "team/nightly", or "nightly"
// without one.
func FullName(account, name string) string {
	if account == "" {
		return name
	}
	return account + "/" + name
}

// ControllerName is the name of the controller of a schedule's full name: "schedule/team/nightly".
func ControllerName(full string) string { return ControllerKind + "/" + full }

// Check reports the first field that no schedule can have. The job is checked by those who run jobs.
func (s *Spec) Check() error {
	if err := CheckName(s.Name); err != nil {
		return err
	}
	return s.Settings.Check()
}

// Check reports the first setting that no schedule can have.
func (s *Settings) Check() error {
	if _, err := ParseCron(s.Cron, s.Zone); err != nil {
		return err
	}
	switch {
	case !slices.Contains(Overlaps(), s.Overlap):
		return fmt.Errorf("overlap %.40q is none of allow, skip, replace", s.Overlap)
	case s.Late < 0:
		return errors.New("late is less than nothing")
	case s.Keep.Done < 0 || s.Keep.Failed < 0 || max(s.Keep.Done, s.Keep.Failed) > MostHistory:
		return fmt.Errorf("keep: 0 to %d runs can be kept", MostHistory)
	}
	return nil
}
