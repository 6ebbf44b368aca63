package controller

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/service/decide"
	"github.com/coxswain-sched/coxswain/service/endpoints"
)

// Config are the parts of a controller.
type Config struct {
	Plane Plane
	Hub   *endpoints.Hub

	// Tokens are the SHA-256 in hex of the secrets that an owner's route names, one of which a request
	// has to bear. nil: nobody has secrets, and a route that names some answers nobody.
	Tokens func(owner job.Owner, names []string) ([]string, error)

	// Rules are the site's rules in force, which are never written to; of them the routes of accounts count.
	// nil, or nil of it: there are none.
	// IsAdmin says whether an owner is an administrator, who has every host; nil: nobody is.
	Rules   func() *account.Policy
	IsAdmin func(job.Owner) bool

	// PageEach is how often the Prometheus pages of replicas are read; 0: 5 s.
	PageEach time.Duration
	// PageTimeout is how long one page may take; 0: metrics.Timeout.
	PageTimeout time.Duration

	// Round is called before each round of requests and decisions: a simulation lets everything else come
	// to rest there. nil: nobody.
	Round func(context.Context)

	Now func() time.Time // nil: time.Now
	Log *slog.Logger     // nil: none
}

// Controller keeps services alive. Its methods are safe for concurrent use and answer while Run runs.
type Controller struct {
	cfg      Config
	started  time.Time
	requests chan func(context.Context)
	ended    chan struct{} // closed when Run has returned

	// The rest belongs to the goroutine of Run.
	services map[string]*managed // by name, "team/chat"
	doubted  map[string]bool     // services whose document was written with an error: it may be durable
	unread   error               // why the documents could not be read; nil once they were
	scraped  *pages
	workers  sync.WaitGroup // that carry out decisions

	mu      sync.Mutex
	touched map[string]bool
	wake    chan struct{} // holds one at most
	version uint64        // of what is shown; grows with each decision
	changed chan struct{} // closed with the next one
}

// managed is a service with what only the memory of this process knows.
type managed struct {
	name         string
	doc          *service.Document
	version      uint64 // of the document as it was written
	last         decide.Output
	memory       decide.Memory
	refused      map[job.Part]*refusal
	trouble      string    // why its document could not be written, for people
	tokenTrouble string    // why its route answers nobody
	routeTrouble string    // why it has no route
	due          time.Time // decide again then
	dirty        bool
	rounds       int       // decisions in a row that changed the document
	decided      bool      // last is of a decision
	busySince    time.Time // when a decision began to be carried out; zero: none is
}

// refusal is a submission that was refused.
type refusal struct {
	decide.Refusal
	count int // in a row
}

// New makes a controller. Run has to run for its methods to answer.
func New(cfg Config) *Controller {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.PageEach <= 0 {
		cfg.PageEach = pageEach
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Controller{
		version: 1,
		cfg:     cfg, started: cfg.Now(), requests: make(chan func(context.Context)), ended: make(chan struct{}),
		services: map[string]*managed{}, doubted: map[string]bool{}, touched: map[string]bool{}, wake: make(chan struct{}, 1), changed: make(chan struct{}), scraped: newPages(),
	}
}

// readAgain is how long Run waits before it reads the documents again that it could not read.
const readAgain = time.Second

// Run keeps services alive until ctx ends. Their replicas go on without it.
func (c *Controller) Run(ctx context.Context) {
	defer close(c.ended)
	var followers sync.WaitGroup
	defer followers.Wait()
	defer c.workers.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for {
		if c.unread = c.readDocuments(ctx); c.unread == nil {
			break
		}
		c.cfg.Log.Warn("the documents of services cannot be read; trying again", "error", c.unread)
		if !c.answerUntil(ctx, time.After(readAgain)) {
			return
		}
	}
	c.decideAll(ctx) // before the hub hears that it knows everything: gateways get every route at once
	c.tellParts(ctx)
	followers.Go(func() { c.followJobs(ctx) })
	followers.Go(func() { c.followHub(ctx) })
	followers.Go(func() { c.readPages(ctx) })
	timer := time.NewTimer(c.pause())
	defer timer.Stop()
	for {
		var request func(context.Context)
		select {
		case <-ctx.Done():
			return
		case request = <-c.requests:
		case <-c.wake:
		case <-timer.C:
		}
		c.doRound(ctx, request)
		timer.Reset(c.pause())
	}
}

// answerUntil answers requests without a decision until a time has come; false: ctx has ended.
func (c *Controller) answerUntil(ctx context.Context, come <-chan time.Time) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case request := <-c.requests:
			request(ctx)
		case <-come:
			return true
		}
	}
}

// doRound answers a request, that one or the next one that waits, and decides.
func (c *Controller) doRound(ctx context.Context, request func(context.Context)) {
	if c.cfg.Round != nil {
		c.cfg.Round(ctx)
	}
	if request == nil {
		select {
		case request = <-c.requests:
		default:
		}
	}
	select { // what touched services until now is seen to now
	case <-c.wake:
	default:
	}
	if request != nil {
		request(ctx)
	}
	c.decideAll(ctx)
}

// readDocuments takes up the services that the control plane keeps.
func (c *Controller) readDocuments(ctx context.Context) error {
	stored, err := c.cfg.Plane.Documents(ctx)
	if err != nil {
		return err
	}
	for _, s := range stored {
		name, ok := strings.CutPrefix(s.Controller, service.ControllerKind+"/")
		if !ok {
			continue
		}
		var d service.Document
		if err := json.Unmarshal(s.Payload, &d); err != nil || d.Revision(d.Target()) == nil {
			c.cfg.Log.Error("the document of a service cannot be read; its replicas stay as they are", "service", name, "error", err)
			continue
		}
		m := c.newManaged(name, &d)
		m.version = s.Version
		c.services[name] = m
	}
	return nil
}

// readDoubted takes up what the control plane keeps of services whose document was written with an error.
// A write may have failed and be durable: the next one would not follow it.
func (c *Controller) readDoubted(ctx context.Context) {
	if len(c.doubted) == 0 {
		return
	}
	stored, err := c.cfg.Plane.Documents(ctx)
	if err != nil {
		return // pause tries again
	}
	for _, s := range stored {
		name := strings.TrimPrefix(s.Controller, service.ControllerKind+"/")
		if m := c.services[name]; !c.doubted[name] || m != nil && m.version == s.Version {
			continue
		}
		var d service.Document
		if err := json.Unmarshal(s.Payload, &d); err != nil || d.Revision(d.Target()) == nil {
			c.cfg.Log.Error("the document of a service cannot be read; its replicas stay as they are", "service", name, "error", err)
			continue
		}
		if c.services[name] == nil {
			c.services[name] = c.newManaged(name, &d)
		}
		m := c.services[name]
		m.doc, m.version, m.dirty = &d, s.Version, true
	}
	clear(c.doubted)
}

func (c *Controller) newManaged(name string, d *service.Document) *managed {
	return &managed{name: name, doc: d, refused: map[job.Part]*refusal{}, dirty: true}
}

// touch has services decided upon.
func (c *Controller) touch(names ...string) {
	c.mu.Lock()
	for _, n := range names {
		c.touched[n] = true
	}
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// all stands for every service in touch.
const all = "*"

// decideAll decides upon the services that something happened to, and those whose time has come.
func (c *Controller) decideAll(ctx context.Context) {
	c.mu.Lock()
	touched := c.touched
	c.touched = map[string]bool{}
	c.mu.Unlock()
	c.readDoubted(ctx)
	for _, name := range slices.Sorted(maps.Keys(c.services)) {
		m := c.services[name]
		now := c.cfg.Now()
		due := !m.due.After(now)
		m.dirty = m.dirty || due || touched[name] || touched[all]
		if m.dirty && m.busySince.IsZero() {
			c.decideService(ctx, m)
		}
	}
}

// longestPause bounds the time between two decisions, for what is no change of a job: the drain of a
// node, the rules of the site.
const longestPause = 5 * time.Second

// pause is how long nothing has to be decided.
func (c *Controller) pause() time.Duration {
	next := longestPause
	if len(c.doubted) > 0 {
		next = writeAgain
	}
	for _, m := range c.services {
		if !m.busySince.IsZero() {
			continue // the end of its work wakes Run
		}
		if m.dirty {
			return 0
		}
		next = min(next, m.due.Sub(c.cfg.Now()))
	}
	return max(next, 10*time.Millisecond)
}

// ask has the goroutine of Run answer a request. While the documents cannot be read the answer is
// fault.Unavailable.
func (c *Controller) ask(ctx context.Context, f func(context.Context) error) error {
	done := make(chan error, 1)
	request := func(run context.Context) {
		if c.unread != nil {
			done <- fault.New(fault.Unavailable, "the documents of services cannot be read: %w", c.unread).Advise("try again; the server reads them again each %s", readAgain)
			return
		}
		c.readDoubted(run)
		done <- f(run)
	}
	select {
	case c.requests <- request:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ended:
		return fault.New(fault.Unavailable, "the server ends")
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
