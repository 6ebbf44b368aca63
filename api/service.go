package api

import (
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

// Services is a list of services.
type Services struct {
	Services []Service      `json:"services"`
	Total    int            `json:"total" doc:"services of all pages"`
	Next     string         `json:"next,omitempty" doc:"cursor of the next page; left out: this is the last one"`
	States   map[string]int `json:"states" doc:"how many there are by state, of the same parameters without states"`
}

// Service is a service as it is shown.
type Service struct {
	Name     string        `json:"name" doc:"with the account that it belongs to: team/chat"`
	Owner    string        `json:"owner"`
	Revision uint32        `json:"revision" doc:"that serves, or is to"`
	URL      string        `json:"url,omitempty" doc:"at the gateway; empty: no gateway is known"`
	Host     string        `json:"host" doc:"name under which the gateway finds it"`
	Path     string        `json:"path,omitempty" doc:"prefix of the paths that it answers"`
	State    string        `json:"state" enum:"starting,ready,degraded,updating,paused,halted,failed,asleep,stopping" doc:"in one word; failed: no replica serves"`
	Replicas ServiceCounts `json:"replicas"`
	Rollout  *Rollout      `json:"rollout,omitempty"`
	Parts    []Replica     `json:"parts,omitempty" doc:"its replicas; of one service alone"`
	Reasons  []string      `json:"reasons,omitempty" doc:"what it decided and what it waits for, newest first"`

	Revisions []Revision `json:"revisions,omitempty" doc:"that are kept, newest first; of one service alone"`
	Load      *Load      `json:"load,omitempty" doc:"left out: unknown, no gateway has posted in the last 10 seconds"`
	Since     time.Time  `json:"since,omitzero" doc:"when it was first submitted, as far as that is kept"`
}

// ServiceCounts are numbers of replicas.
type ServiceCounts struct {
	Want  int `json:"want"`
	Ready int `json:"ready"`
	Min   int `json:"min"`
	Max   int `json:"max"`
}

// Load is what the gateways saw.
type Load struct {
	InFlight int     `json:"in_flight"`
	Rate     float64 `json:"requests_per_second" doc:"over the last minute"`
	Held     int     `json:"held" doc:"requests that wait for a replica"`
	Failed   float64 `json:"failed_per_second" doc:"requests that were answered with 5xx, or not at all; over the last minute"`

	Latency *Latency `json:"latency,omitempty" doc:"left out: unknown, no replica answered in the last minute, or the gateway is of an older version"`
}

// Latency is how long clients waited for the head of an answer: from the head of the request at the gateway,
// with the time that it was held there. The quantiles are estimates from the buckets of LatencyBounds, linear
// within a bucket, over all gateways and the last 55 to 60 seconds. An answer without a head is not in it.
type Latency struct {
	P50      float64 `json:"p50" doc:"seconds until the head of the answer, estimated; 60: a minute or more"`
	P95      float64 `json:"p95"`
	P99      float64 `json:"p99"`
	Answered uint64  `json:"answered" doc:"answers that were measured, in the last minute"`
}

// Rollout is the way from one revision to another.
type Rollout struct {
	From  uint32    `json:"from,omitempty"`
	To    uint32    `json:"to"`
	Phase string    `json:"phase" enum:"rolling,paused,undoing,halted,done,undone"`
	Step  string    `json:"step,omitempty" doc:"of a canary: 10%"`
	Since time.Time `json:"since,omitzero"`
	Why   string    `json:"why,omitempty" doc:"of a failure"`
}

// Replica is one replica of a service.
type Replica struct {
	Index    uint32 `json:"index"`
	Revision uint32 `json:"revision"`
	Try      uint32 `json:"try"`
	Job      job.ID `json:"job,omitempty" doc:"0: none now"`
	State    string `json:"state" doc:"of the job, or a pause before it is begun anew"`
	Ready    bool   `json:"ready"`
	Node     string `json:"node,omitempty"`
	Address  string `json:"address,omitempty"`
	Why      string `json:"why,omitempty" doc:"it is not ready, or ended last"`
}

// Revision is a specification that was submitted.
type Revision struct {
	Number uint32    `json:"number"`
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Note   string    `json:"note,omitempty"`
	Text   string    `json:"text,omitempty" doc:"the file; for the owner and administrators"`
}

// ServiceScale sets the number of replicas by hand.
type ServiceScale struct {
	Replicas int `json:"replicas" minimum:"0" maximum:"10000"`
}

// ServiceRollout changes a rollout.
type ServiceRollout struct {
	Action string `json:"action" enum:"pause,resume,undo"`
	To     uint32 `json:"to,omitempty" doc:"with undo: revision to go to; 0: the one before"`
}

// SubmittedService says what became of a service that was submitted.
type SubmittedService struct {
	Name     string `json:"name"`
	Revision uint32 `json:"revision"`
	Created  bool   `json:"created,omitempty"`
	Changed  bool   `json:"changed,omitempty" doc:"false: it is the same as the revision that serves"`
	URL      string `json:"url,omitempty"`
}
