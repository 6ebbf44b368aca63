package intake

import (
	"context"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/admission"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec/provenance"
	"github.com/coxswain-sched/coxswain/store/upload"
)

// Plane is what the intake needs of a control plane; *control.Control is one.
type Plane interface {
	Submit(context.Context, control.Submission) (control.Accepted, error)
	Estimate(context.Context, control.Submission) (control.Estimate, error)
	// Fits says why a job could never run in the pool that it names; known is false where
	// nobody knows.
	Fits(context.Context, control.Submission) (known bool, err error)
	// ExpectedIn says when a job is expected to start in the pool that it names.
	ExpectedIn(context.Context, *engine.JobDraft, job.ID) query.PoolStart
	NodeViews(context.Context) ([]query.NodeView, error)
	Pools() []pools.View
	AddedEngine(pool string) engine.Engine
}

// Site is where requests are admitted: a control plane, and what its owner says about jobs.
// The zero values of all but Plane mean that nothing is said.
type Site struct {
	Plane Plane
	Rules func(context.Context) (*admission.Rules, error) // in force now; nil: there is no site, and nothing that it lacks is refused
	Pool  string                                          // of jobs that name none, or several (job.PoolNames); empty: any

	Environment provenance.EnvironmentPolicy // which variables of a submission are kept
	Uploads     *upload.Store                // of directories that come with jobs; nil: they are not taken
	OwnUploads  bool                         // jobs of the configuration's own pools may bring theirs
	Mail        bool                         // somebody sends mail about jobs
	Webhook     func(url string) error       // says why a job may not have a webhook; nil: nobody sends any
	MaxArray    uint32                       // array indices stay below it; 0: Slurm's own bound
	Now         func() time.Time             // nil: time.Now
}

// Wish is what a submission asks for beside its text.
type Wish struct {
	Pool       string // outranks the text's; empty: as the text says
	Pods       string // "node" or "task": what has a pod of its own; empty: as the text says
	Provenance *job.Provenance
	Upload     *job.Upload // the directory that comes along
	Umask      *uint32     // the submitter's mask of file modes
	Limits     []string    // NAME=VALUE of the submitter's soft resource limits
	TestOnly   bool        // nothing is kept, so the directory need not be here
}

func (s *Site) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

// Read is the package's Read with what the site says about texts.
func (s *Site) Read(t Text, o Options) (*Request, error) {
	o.Now, o.Mail, o.Webhook, o.MaxArray = s.now(), s.Mail, s.Webhook, s.MaxArray
	return Read(t, o)
}

// rulesInForce are those in force; nil: there are none.
func (s *Site) rulesInForce(ctx context.Context) (*admission.Rules, error) {
	if s.Rules == nil {
		return nil, nil
	}
	return s.Rules(ctx)
}

// Submit hands a request that was admitted to the control plane.
func (s *Site) Submit(ctx context.Context, by job.Actor, r *Request) (control.Accepted, error) {
	return s.Plane.Submit(ctx, r.submission(by))
}

// Estimate says when and where a request that was admitted would start; nothing is kept. With
// preview it also has what the engine of its pool would hand over.
func (s *Site) Estimate(ctx context.Context, by job.Actor, r *Request, preview bool) (control.Estimate, error) {
	sub := r.submission(by)
	sub.Preview, sub.Keeping = preview, r.Secrets()
	return s.Plane.Estimate(ctx, sub)
}

func (r *Request) submission(by job.Actor) control.Submission {
	return control.Submission{Spec: r.Spec, Script: r.Script, Env: r.Env, By: by}
}

// listNodes lists the nodes as they are described now.
func (s *Site) listNodes(ctx context.Context) ([]fleet.Node, error) {
	views, err := s.Plane.NodeViews(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]fleet.Node, len(views))
	for i := range views {
		out[i] = views[i].Node
	}
	return out, nil
}
