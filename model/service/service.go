// Package service has the words of services: work that is kept alive, reachable, updated without a gap
// and scaled by its load. It has no I/O. A replica of a service is a job (job.Part, job.Serve); what to
// do with the jobs is decided by service/decide.
package service

import (
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

// ControllerKind is the first part of the name of a service's controller: "service/team/chat".
const ControllerKind = "service"

// Spec is what a user asked for. It is not written after submission.
type Spec struct {
	Name    string    `json:"name"`              // without account: lower case letters, digits, hyphens; it is a DNS label
	Account string    `json:"account,omitempty"` // that it belongs to; empty: a site without accounts
	Owner   job.Owner `json:"owner"`

	Job    job.Spec `json:"job"`              // of one replica: Job.Serve is set, Job.Part is not
	Script []byte   `json:"script,omitempty"` // of a job whose kind has one
	Env    []string `json:"env,omitempty"`    // NAME=VALUE of the submitter

	Replicas Bounds `json:"replicas"`
	SpareQOS string `json:"spare_qos,omitempty"` // of replicas above Replicas.Min; empty: that of the job
	Update   Update `json:"update"`
	Scale    *Scale `json:"scale,omitempty"` // nil: the number of replicas is what a person says
	Route    Route  `json:"route"`

	Text string `json:"text,omitempty"` // the file as it was submitted
}

// Bounds of the number of replicas, both included.
type Bounds struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// Update says how a new revision takes the place of the old one.
type Update struct {
	Surge       int           `json:"surge"`                 // replicas more than wanted, at most
	Unavailable int           `json:"unavailable"`           // replicas fewer ready than wanted, at most, by our own doing
	InPlace     bool          `json:"in_place,omitempty"`    // Surge 0: Unavailable replicas at a time, one at least, are drained, ended, begun anew
	Canary      []int         `json:"canary,omitempty"`      // per cent of the requests that the new revision gets, ascending, each for Step
	Step        time.Duration `json:"step,omitempty"`        // how long each step of Canary lasts
	Timeout     time.Duration `json:"timeout,omitempty"`     // without progress, until the rollout has failed
	ManualUndo  bool          `json:"manual_undo,omitempty"` // a rollout that failed stops where it is; else it is undone
}

// Scale says what the number of replicas follows.
type Scale struct {
	Metric   string        `json:"metric"`             // MetricInFlight, MetricRate, or the name of a number on the replicas' Prometheus page
	Target   float64       `json:"target"`             // of the metric for each replica
	Path     string        `json:"path,omitempty"`     // of the Prometheus page; empty: /metrics
	Port     string        `json:"port,omitempty"`     // of the Prometheus page; empty: the first
	Cooldown time.Duration `json:"cooldown,omitempty"` // for so long the number wanted does not fall below the largest recommendation
	ToZero   time.Duration `json:"to_zero,omitempty"`  // without a request, until no replica is left; 0: never
}

// The metrics that the gateway counts itself.
const (
	MetricInFlight = "in_flight"           // requests that were begun and not answered
	MetricRate     = "requests_per_second" // over the last minute
)

// Route says how the gateway finds the service and what it does with its requests.
type Route struct {
	Host    string        `json:"host,omitempty"`    // empty: NAME.localhost, or what the site's gateway is called
	Path    string        `json:"path,omitempty"`    // prefix, which is kept; empty: every path
	Port    string        `json:"port,omitempty"`    // that gets the requests; empty: the first
	Timeout time.Duration `json:"timeout,omitempty"` // until the first byte of an answer; 0: the gateway's
	Sticky  bool          `json:"sticky,omitempty"`  // balance by a cookie, else by fewest outstanding requests
	Tokens  []string      `json:"tokens,omitempty"`  // names of secrets one of which a request has to bear; none: everybody may ask
	Rate    float64       `json:"rate,omitempty"`    // requests a second, at most; 0: no bound
	Held    int           `json:"held,omitempty"`    // requests that wait for a replica, at most; 0: the gateway's
	H2C     bool          `json:"h2c,omitempty"`     // replicas speak HTTP/2 without TLS (gRPC)
}

// Document is what is known of a service: the projected document of its controller. It is written
// as a whole with each change. What can be read off the jobs is not in it.
type Document struct {
	Revisions []Revision `json:"revisions"` // ascending, the newest MostRevisions of them
	Current   uint32     `json:"current"`   // the revision that serves, or began to first
	Rollout   *Rollout   `json:"rollout,omitempty"`
	Want      int        `json:"want"`                // replicas wanted now, within the bounds of the spec; 0 while it sleeps
	ScaledAt  time.Time  `json:"scaled_at,omitzero"`  // when Want changed last
	ByHand    bool       `json:"by_hand,omitempty"`   // a person changed it last
	ScaledWhy string     `json:"scaled_why,omitzero"` // for people
	Stopping  bool       `json:"stopping,omitempty"`  // every replica is ended, then the document goes
	Replicas  []Slot     `json:"replicas,omitempty"`  // by index, then by revision; each pair once

	// StartTimes are how long the last replicas took from the start of their job until they were
	// ready, the newest last, at most MostStartTimes. The replacement of a replica begins so much ahead.
	StartTimes []time.Duration `json:"start_times,omitempty"`
}

// MostStartTimes is how many start-up times are kept.
const MostStartTimes = 5

// What a specification has where nothing is said. Timeout and Cooldown are Kubernetes' values.
const (
	DefaultTimeout  = 10 * time.Minute // of Update.Timeout
	DefaultStep     = 5 * time.Minute  // of Update.Step
	DefaultCooldown = 5 * time.Minute  // of Scale.Cooldown
)

// Revision returns a revision that is kept; nil: there is none of that number.
func (d *Document) Revision(number uint32) *Revision {
	for i := range d.Revisions {
		if d.Revisions[i].Number == number {
			return &d.Revisions[i]
		}
	}
	return nil
}

// Target is the number of the revision whose replicas are wanted in the end: the one that a rollout
// leads to, or that it goes back to, else the current one.
func (d *Document) Target() uint32 {
	r := d.Rollout
	switch {
	case r.Over():
		return d.Current
	case r.Phase == Undoing:
		return r.From
	}
	return r.To
}

// Routed lists the specifications whose routes the service holds: that of the revision that is wanted,
// and those of both revisions during a rollout, which may be undone.
func (d *Document) Routed() (out []*Spec) {
	numbers := []uint32{d.Target()}
	if r := d.Rollout; !r.Over() {
		numbers = []uint32{r.From, r.To}
	}
	for _, n := range numbers {
		if r := d.Revision(n); r != nil {
			out = append(out, &r.Spec)
		}
	}
	return out
}

// MostReplicas is how many replicas one service can have.
const MostReplicas = 1000

// MostRevisions is how many revisions of a service are kept.
const MostRevisions = 10

// Revision is a specification that was submitted.
type Revision struct {
	Number uint32    `json:"number"`
	Spec   Spec      `json:"spec"`
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Note   string    `json:"note,omitempty"` // for people: "undo to revision 2"
}

// Phase is how far a rollout is.
type Phase string

// The phases of a rollout.
const (
	Rolling Phase = "rolling"
	Paused  Phase = "paused"
	Undoing Phase = "undoing" // back to From
	Halted  Phase = "halted"  // it failed and was not undone
	Done    Phase = "done"
	Undone  Phase = "undone" // From serves again
)

// Rollout is the way from one revision to another.
type Rollout struct {
	From  uint32    `json:"from"` // 0: the first revision
	To    uint32    `json:"to"`
	Phase Phase     `json:"phase"`
	Step  int       `json:"step,omitempty"`  // index into Update.Canary
	Since time.Time `json:"since"`           // of the phase or the step, or of the last progress
	Ready int       `json:"ready,omitempty"` // replicas of the revision it leads to that were ready at once, at most: more are progress
	Why   string    `json:"why,omitempty"`   // of a failure, for people
}

// Over reports whether nothing is left to do: a new revision serves, or the old one serves again. nil is
// over.
func (r *Rollout) Over() bool { return r == nil || r.Phase == Done || r.Phase == Undone }

// Slot is a replica's place.
type Slot struct {
	Index    uint32    `json:"index"`
	Revision uint32    `json:"revision"`
	Try      uint32    `json:"try"`
	Failed   int       `json:"failed,omitempty"` // ends of the program in a row
	After    time.Time `json:"after,omitzero"`   // it is not begun anew before
	Why      string    `json:"why,omitempty"`    // it ended last, for people

	Spare   bool      `json:"spare,omitempty"`   // its job has Spec.SpareQOS
	Attempt uint32    `json:"attempt,omitempty"` // of its job, that was ready first at Ready
	Ready   time.Time `json:"ready,omitzero"`    // zero: it was not yet
}
