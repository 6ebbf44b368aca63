package kube

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/podstatus"
	"github.com/coxswain-sched/coxswain/driver/kube/quota"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kit"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// attempt is what the driver knows of one. Its goroutine alone calls the cluster for it; all
// fields from made on are the Engine's, under its lock.
type attempt struct {
	ref       engine.Ref
	namespace string // of its objects
	chosen    bool   // Coxswain chose its nodes, and not the cluster's scheduler
	order     *order // nil: it has ended
	digest    string
	wake      chan struct{}

	made    *made // all its objects exist; nil: some may
	bound   bool
	begun   bool      // something was sent
	named   bool      // its Service is there
	placed  time.Time // since when all its pods have nodes; zero: they do not
	pods    map[int]*pod
	on      []string // the nodes where it began, by index, where we did not choose them
	report  engine.Report
	stop    *stopping
	told    *stopping // what the crew has been told of stop
	deleted *stopping // what the pods were deleted for
	ship    shipping
	takes   quota.Usage // what its pods take of quotas
	ended   bool

	suspension suspension
	said       saidReasons
	volumes    volumeWait
	saving     savedQuestion
	live       liveUsage
	stall      startStall
}

// suspension is what an attempt's agent was told of suspending last.
type suspension struct {
	told *pausing // nil: nothing
	turn uint64   // of that; 0: this driver has told it nothing
}

// saidReasons is what was reported last of why an attempt does not get on.
type saidReasons struct {
	waiting  string // why its pods have no nodes
	unlisted string // why its pods cannot be seen; empty: they can
}

// volumeWait is the wait for the volumes of an attempt's claims.
type volumeWait struct {
	missing     string    // why its claims have no volumes yet; empty: they have
	wantedSince time.Time // since when its claims are to have volumes; zero: nothing was done for that
}

// savedQuestion is the question what an attempt has saved.
type savedQuestion struct {
	asking   bool         // its agent is asked
	signaled time.Time    // when a signal was last sent to it, in this driver's time
	before   engine.Saved // what it had saved then, as far as is known
	answered bool         // it has said since what it had
}

// startStall is what keeps an attempt's pods from starting on their nodes.
type startStall struct {
	stuckSince time.Time // since when a container cannot be made; zero: it can
	bareSince  time.Time // since when a pod that has its node has no sandbox; zero: all have
	barePod    int       // which pod
	bareText   string    // what was said of that
}

// pod is the last that was seen of a pod.
type pod struct {
	*corev1.Pod
	seen  bool                // by the watch, not only as what a create gave back
	gone  bool                // the object is there no more
	taken podstatus.Admission // of one that its kubelet refuses: that it had taken it before
	dying time.Time           // when the driver heard that it is being deleted; zero: it is not, or was when it was seen first
}

// noteDeletion takes when it was heard that a pod is being deleted. was is what was seen of it before.
func (p *pod) noteDeletion(was *pod, now time.Time) {
	switch {
	case p.DeletionTimestamp == nil || was == nil || was.UID != p.UID:
	case was.DeletionTimestamp.Equal(p.DeletionTimestamp):
		p.dying = was.dying
	default:
		p.dying = now
	}
}

// serverClock is what the API server's clock shows, by which a pod has a time to be gone: it may differ from
// the driver's. Where nothing tells it, it is the driver's.
func (p *pod) serverClock(now time.Time) time.Time {
	if p.dying.IsZero() || p.DeletionGracePeriodSeconds == nil {
		return now
	}
	asked := p.DeletionTimestamp.Add(-time.Duration(*p.DeletionGracePeriodSeconds) * time.Second)
	return asked.Add(now.Sub(p.dying))
}

// Launch takes an attempt: it is on disk when it returns, and sent soon after.
func (e *Engine) Launch(ctx context.Context, l *engine.Launch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	refused := func(err error) error {
		return fault.New(fault.KindOf(err), "launch of attempt %s: %w", l.Ref, err).Advise("%s", fault.Remedy(err))
	}
	if l.Job == nil || l.Job.Spec == nil || len(l.Claims) == 0 {
		return refused(fault.New(fault.Invalid, "a job and claims are needed"))
	}
	e.mu.Lock()
	known := e.attempts[l.Ref]
	e.mu.Unlock()
	o := &order{Job: l.Job, Claims: l.Claims, Avoid: l.Avoid, Script: l.Script, Env: l.Env, Grace: l.Grace, Saved: l.Saved, Digest: kit.LaunchDigest(l), Time: time.Now()}
	settleIdentity(&e.cfg.Terms, o)
	if known == nil {
		err := e.cfg.Terms.CheckJob(l.Job.Spec)
		if err == nil {
			err = o.readManifest(&e.cfg.Terms)
		}
		if err != nil {
			return refused(err)
		}
		if e.cfg.Terms.Placed {
			o.Nodes, err = e.nodesOf(ctx, l.Claims, o.Namespace)
			if err == nil && l.Job.Spec.PodPerTask() {
				o.Claims, o.Nodes, err = render.Split(l.Claims, o.Nodes)
			}
		} else {
			err = e.planDelegation(ctx, o)
		}
		if err != nil {
			return refused(err)
		}
		if err := e.renderAttempt(l.Ref, o).Check(); err != nil {
			return refused(err)
		}
		if err := render.CheckSecrets(l.Secrets); err != nil {
			return refused(err)
		}
	}
	if known == nil {
		if err := e.checkBeforeLaunch(o); err != nil {
			return err
		}
		if err := e.reserveQuota(l.Ref, o, l.Ahead); err != nil {
			return err
		}
	}
	err := e.takeOrder(l.Ref, o, l.Secrets)
	e.mu.Lock()
	if a := e.attempts[l.Ref]; a == nil || a.made != nil || a.ended {
		e.releaseQuota(o.Namespace, l.Ref)
	}
	e.mu.Unlock()
	return err
}

func (e *Engine) takeOrder(ref engine.Ref, o *order, given []engine.Secret) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil {
		return kit.Closed(engineName)
	}
	if a := e.attempts[ref]; a != nil {
		if a.digest != o.Digest {
			return fault.New(fault.Conflict, "attempt %s was launched before, as something else", ref)
		}
		return nil
	}
	if e.log.IsFenced(ref) {
		return fault.New(fault.Conflict, "attempt %s was given up or forgotten", ref)
	}
	if o.Nodes == nil {
		return fault.New(fault.Unavailable, "launch of attempt %s: it was forgotten at this moment", ref)
	}
	if err := e.Refuse(ref, o.Claims); err != nil {
		return err
	}
	if err := e.claimConflict(o); err != nil {
		return err
	}
	if err := e.podCapacityError(o); err != nil {
		return err
	}
	if err := e.secrets.Keep(ref, given); err != nil {
		return engine.Unwritten(ref, err)
	}
	if err := e.log.Append(&entry{Kind: launched, Ref: ref, Launch: o}); err != nil {
		return engine.Unwritten(ref, err)
	}
	a := newAttempt(&e.cfg.Terms, ref, o)
	e.attempts[ref] = a
	e.countPods(a, true)
	e.cache.Publish(a.report)
	e.wg.Go(func() { e.driveAttempt(a) })
	return nil
}

// settleIdentity says where a job's objects are made, and as whom.
func settleIdentity(t *settings.Terms, o *order) {
	o.Namespace, _ = t.NamespaceOf(o.Job.Spec.Account)
	if who, ok := t.ImpersonatedSubject(o.Job.Spec, o.Namespace); ok {
		o.As = who.UserName()
	}
}

// newAttempt is an attempt of which nothing was sent.
func newAttempt(t *settings.Terms, ref engine.Ref, o *order) *attempt {
	return &attempt{
		ref: ref, namespace: cmp.Or(o.Namespace, t.Namespace), chosen: t.Placed, order: o, digest: o.Digest, wake: make(chan struct{}, 1), pods: map[int]*pod{},
		report: engine.Report{Ref: ref, Job: o.Job.ID, Phase: engine.Accepted, Native: ""},
	}
}

// restoreAttempt is an attempt as the journal has it.
func (e *Engine) restoreAttempt(ref engine.Ref, l *life) *attempt {
	if l.end != nil {
		return &attempt{ref: ref, namespace: cmp.Or(l.namespace, e.cfg.Terms.Namespace), digest: l.digest, report: *l.end, ended: true}
	}
	if err := l.launch.readManifest(&e.cfg.Terms); err != nil { // it could be read when it was taken
		e.cfg.Log.Warn("kubernetes", "attempt", ref.String(), "error", err)
	}
	a := newAttempt(&e.cfg.Terms, ref, l.launch)
	a.begun, a.made, a.stop, a.suspension.told, a.on = true, l.made, l.stop, l.held, l.on
	if a.made != nil {
		a.report.Native = render.Name(e.log.server, ref)
	}
	if !l.started.IsZero() {
		a.bound = true // of a pod that is not there any more, a second binding would say that it never began
		a.report.Phase, a.report.Started, a.report.Suspended = engine.Running, l.started, l.held != nil && *l.held == pausing{On: true, Sure: true}
		a.report.Tasks, a.report.Files = a.batchReport(&a.report, true), []string{e.logs.fileOf(ref)}
	}
	if l.waning {
		a.report.Phase = engine.Ending
	}
	if a.stop != nil {
		a.report.Phase, a.report.Message = engine.Ending, a.stop.Reason
	}
	a.report.Suspended = a.report.Suspended && a.report.Phase == engine.Running
	for i := range a.order.Nodes { // until the pods are seen
		a.report.Nodes = onNode(a.report.Nodes, engine.NodeReport{Node: a.nodeOf(i), Phase: min(a.report.Phase, engine.Running)}, a.mayShareNode())
	}
	return a
}

// renderAttempt is what objects are made of.
func (e *Engine) renderAttempt(ref engine.Ref, o *order) *render.Attempt {
	t := e.cfg.Terms.ForJob(o.Job.Spec)
	s := render.Settings{
		Namespace: cmp.Or(o.Namespace, t.Namespace), Domain: t.Domain, Image: t.Image, Agent: t.AgentImage, AsImage: t.AsImage, Selector: t.Selector,
		Tolerations: t.Tolerate(), PriorityClass: t.PriorityClass, PullSecrets: t.PullSecrets, Ready: e.cfg.Ready, Placed: t.Placed,
		Scheduler: t.Scheduler, Queue: t.Queue, Checkpoints: t.Checkpoints, Shape: t.Shape,
	}
	s.ServiceAccount = cmp.Or(t.ServiceAccounts[o.Job.Spec.Account], s.ServiceAccount)
	for _, p := range t.Paths {
		if p.Volume.Kind != settings.OfImage {
			s.Mounts = append(s.Mounts, render.Mount{Path: p.Prefix, Source: p.Volume.Source(), Sub: p.Volume.Sub, ReadOnly: p.Volume.ReadOnly})
		}
	}
	if u := o.Job.Spec.Upload; u != nil { // with puts it last
		s.Mounts[len(s.Mounts)-1].Name, s.UploadRoom = "upload", e.cfg.Terms.UploadRoomOf(o.Job.Spec)
	}
	s.Strict = func(dir string) bool { _, ok := t.PathOf(dir); return ok }
	var template render.Template // nil, and no interface with a nil in it
	if o.work != nil {
		template = o.work
	}
	return &render.Attempt{
		Template: template, Server: e.log.server, Nodes: o.Nodes, Digest: o.Digest, Settings: s, Gang: o.gangKind(), Near: o.Near,
		Launch: &engine.Launch{Ref: ref, Job: o.Job, Claims: o.Claims, Avoid: o.Avoid, Script: o.Script, Env: o.Env, Grace: o.Grace, Saved: o.Saved},
	}
}

// nodesOf are the nodes that claims name, each once, in order. fault.Exhausted: one of them cannot
// have the volumes of the namespace, or is not in the pool: whoever chose it knew it from there, maybe
// before the server began anew; others may be free later.
func (e *Engine) nodesOf(ctx context.Context, claims []fleet.Claim, namespace string) ([]render.Node, error) {
	out := make([]render.Node, 0, len(claims))
	had := map[string]bool{}
	for _, c := range claims {
		if had[c.Node] {
			continue
		}
		had[c.Node] = true
		m, ok, err := e.Machine(ctx, c.Node)
		if err != nil {
			return nil, err
		}
		if !ok { // it was there when it was chosen: the job is not at fault, and is to be placed again
			return nil, fault.New(fault.Exhausted, "there is no node %q in pool %s any more", c.Node, cmp.Or(e.cfg.Terms.Pool, "kubernetes"))
		}
		if why := m.VolumeUnreachable(namespace); why != "" {
			return nil, fault.New(fault.Exhausted, "node %s of namespace %s: %s", c.Node, namespace, why).Advise("a pool of these nodes for the accounts of the namespace (node_selector)")
		}
		out = append(out, m.RenderNode(&e.cfg.Terms))
	}
	return out, nil
}
