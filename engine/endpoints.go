package engine

import (
	"context"

	"github.com/coxswain-sched/coxswain/model/job"
)

// Endpoints are the addresses at which the first task of an attempt serves (job.Serve). They are never
// journaled: an engine tells them anew after each restart.
type Endpoints struct {
	Ref     Ref        `json:"ref"`
	Job     job.ID     `json:"job"`
	Version uint64     `json:"version"` // grows with every change of this attempt's endpoints; older ones are to be ignored
	List    []Endpoint `json:"list"`    // one for each port, in the order of job.Serve.Ports; none: not known yet, or the attempt has ended
	Ready   bool       `json:"ready"`   // the readiness probe passes
	Failed  string     `json:"failed,omitempty"`
}

// Endpoint is one port of an attempt.
type Endpoint struct {
	Port   string `json:"port"` // its name
	Host   string `json:"host"` // an address or a name that the server can reach
	Number int    `json:"number"`
}

// EndpointWatcher is an optional ability: jobs with job.Spec.Serve. An engine without it refuses them.
type EndpointWatcher interface {
	// WatchEndpoints calls f with the endpoints of each attempt that has some, then with every
	// change, until ctx ends or f fails. One call of f at a time.
	WatchEndpoints(ctx context.Context, f func(Endpoints) error) error
}

// Addresser is an optional ability: each task may have a network of its own. Elsewhere a fixed port
// (job.Port.Number) is taken for all jobs of the node.
type Addresser interface {
	// OwnAddresses reports whether every task has one.
	OwnAddresses() bool
}
