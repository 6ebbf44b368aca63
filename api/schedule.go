package api

import (
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

// ScheduleTimes are the times at which a job runs, beside its text.
type ScheduleTimes struct {
	Cron     string `json:"cron" doc:"0 3 * * *, or @daily, @every 90m"`
	TimeZone string `json:"time_zone,omitempty" doc:"Europe/Zurich; left out: the server's own"`
	Overlap  string `json:"overlap,omitempty" enum:"allow,skip,replace" doc:"while an earlier run has not ended; left out: skip"`
	Missed   string `json:"missed,omitempty" doc:"latest, skip, or how late a run may begin: 2h; left out: latest"`
}

// Schedules is a list of schedules.
type Schedules struct {
	Schedules []Schedule     `json:"schedules"`
	Total     int            `json:"total" doc:"schedules of all pages"`
	Next      string         `json:"next,omitempty" doc:"cursor of the next page; left out: this is the last one"`
	States    map[string]int `json:"states" doc:"how many there are by state, of the same parameters without states"`
}

// Schedule is a schedule as it is shown.
type Schedule struct {
	Name     string `json:"name" doc:"with the account that it belongs to: team/nightly"`
	Owner    string `json:"owner"`
	Revision uint32 `json:"revision" doc:"grows with each submission that changes it"`

	Cron     string  `json:"cron"`
	TimeZone string  `json:"time_zone" doc:"of its times; the server's own if its file names none"`
	Overlap  string  `json:"overlap" enum:"allow,skip,replace"`
	Late     float64 `json:"late,omitempty" doc:"how late a run may begin, in seconds; left out: as late as it has to"`
	Keep     int     `json:"keep" doc:"runs that completed and are kept"`
	Failed   int     `json:"keep_failed" doc:"other runs that are kept"`

	State       string    `json:"state" enum:"waiting,running,suspended" doc:"in one word"`
	SuspendedAt time.Time `json:"suspended_at,omitzero"`
	SuspendedBy string    `json:"suspended_by,omitempty"`
	Next        time.Time `json:"next,omitzero" doc:"in its zone; left out: it is suspended"`
	Jobs        []job.ID  `json:"jobs,omitempty" doc:"of its runs that have not ended; of an array all tasks"`
	Why         string    `json:"why,omitempty" doc:"nothing can be begun"`

	Last *ScheduledRun  `json:"last,omitempty" doc:"the newest run"`
	Runs []ScheduledRun `json:"runs,omitempty" doc:"that are kept, newest first; of one schedule alone"`

	Created time.Time `json:"created,omitzero"`
	At      time.Time `json:"at,omitzero" doc:"of the revision"`
	By      string    `json:"by" doc:"of the revision"`
	Text    string    `json:"text,omitempty" doc:"the file; of one schedule alone, for the owner and administrators"`
}

// ScheduledRun is one time of a schedule, or a run by hand.
type ScheduledRun struct {
	Time     time.Time `json:"time" doc:"that it is for, in the zone of the schedule"`
	By       string    `json:"by,omitempty" doc:"who began it by hand; left out: the clock"`
	Revision uint32    `json:"revision"`
	State    string    `json:"state" doc:"DUE, SKIPPED, REFUSED, or the state of its job: PENDING, RUNNING, COMPLETED, …"`
	Job      job.ID    `json:"job,omitempty" doc:"left out: none was submitted"`
	Ended    time.Time `json:"ended,omitzero"`
	Exit     string    `json:"exit,omitempty" doc:"exit 1, or its signal; left out: 0"`
	Missed   int       `json:"missed,omitempty" doc:"times before it that had passed too when it was decided upon; 101: more than 100"`
	Why      string    `json:"why,omitempty" doc:"it was skipped or refused, waits, or ended so"`
}

// SubmittedSchedule says what became of a schedule that was submitted.
type SubmittedSchedule struct {
	Name     string    `json:"name"`
	Revision uint32    `json:"revision"`
	Created  bool      `json:"created,omitempty"`
	Changed  bool      `json:"changed,omitempty" doc:"false: it is the same as before"`
	Next     time.Time `json:"next,omitzero" doc:"in its zone; left out: it is suspended"`
	TimeZone string    `json:"time_zone"`
}

// StoppedSchedule says what became of a schedule that was stopped.
type StoppedSchedule struct {
	Name      string   `json:"name"`
	Jobs      []job.ID `json:"jobs,omitempty" doc:"of runs that had not ended"`
	Cancelled bool     `json:"cancelled,omitempty" doc:"these were cancelled"`
}
