package controller

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/service/metrics"
)

// How often the pages of replicas are read, and for how long a number holds. One that
// fails is read less and less often.
const (
	pageEach     = 5 * time.Second
	pageHolds    = 3 * pageEach
	pagesOnce    = 256 // read at the same time, at most
	pagesService = 16  // of one service
	pageRarely   = time.Minute
)

// pages are the numbers that were read off the Prometheus pages of replicas. It has a lock of its own.
type pages struct {
	mu   sync.Mutex
	all  map[string]map[job.ID]reading // by service
	busy map[string]bool               // services whose pages are being read
}

type reading struct {
	at     time.Time
	value  float64
	err    error
	failed int // times in a row
}

func newPages() *pages { return &pages{all: map[string]map[job.ID]reading{}, busy: map[string]bool{}} }

// valuesOf are the numbers of a service that hold still.
func (p *pages) valuesOf(name string, now time.Time) map[job.ID]float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[job.ID]float64{}
	for id, r := range p.all[name] {
		if r.err == nil && now.Sub(r.at) < pageHolds {
			out[id] = r.value
		}
	}
	return out
}

// troubleOf is what is wrong with a page of a service, the one of its oldest replica; "" if nothing is.
func (p *pages) troubleOf(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(p.all[name])) {
		if err := p.all[name][id].err; err != nil {
			return err.Error()
		}
	}
	return ""
}

// keepTargets forgets what was read of replicas whose pages are read no more.
func (p *pages) keepTargets(targets map[string][]target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, of := range p.all {
		maps.DeleteFunc(of, func(id job.ID, _ reading) bool {
			return !slices.ContainsFunc(targets[name], func(t target) bool { return t.job == id })
		})
		if len(of) == 0 {
			delete(p.all, name)
		}
	}
}

// setReading takes what was read off one page.
func (p *pages) setReading(t target, r reading) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all[t.service] == nil {
		p.all[t.service] = map[job.ID]reading{}
	}
	if r.err != nil {
		r.failed = p.all[t.service][t.job].failed + 1
	}
	p.all[t.service][t.job] = r
}

// beginService returns the pages of a service that are to be read now, those that answered last time
// first; nil: none, or they are being read.
func (p *pages) beginService(name string, targets []target, each time.Duration, now time.Time) (due []target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy[name] {
		return nil
	}
	of := p.all[name]
	for _, t := range targets {
		if r := of[t.job]; r.failed < 2 || now.Sub(r.at) >= min(each<<min(r.failed-1, 10), pageRarely) {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(a, b target) int {
		return cmp.Or(cmp.Compare(of[a.job].failed, of[b.job].failed), cmp.Compare(a.job, b.job))
	})
	p.busy[name] = len(due) > 0
	return due
}

func (p *pages) endService(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, name)
}

// forgetService forgets a service that is gone.
func (p *pages) forgetService(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, name)
}

// target is a page to read.
type target struct {
	service, address string
	job              job.ID
	scale            service.Scale
}

// readPages reads the pages of the replicas of services whose number follows them, until ctx ends. Each
// service is read on its own: pages that hang delay no other service.
func (c *Controller) readPages(ctx context.Context) {
	reader := metrics.NewReader(c.cfg.PageTimeout)
	defer reader.Close()
	var services sync.WaitGroup
	defer services.Wait()
	free := make(chan struct{}, pagesOnce)
	ticker := time.NewTicker(c.cfg.PageEach)
	defer ticker.Stop()
	for {
		var targets map[string][]target
		if err := c.ask(ctx, func(context.Context) error { targets = c.pageTargets(); return nil }); err != nil {
			return
		}
		c.scraped.keepTargets(targets)
		for name, all := range targets {
			if due := c.scraped.beginService(name, all, c.cfg.PageEach, c.cfg.Now()); len(due) > 0 {
				services.Go(func() {
					defer c.scraped.endService(name)
					c.readService(ctx, reader, free, due)
					c.touch(name)
				})
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// readService reads the pages of one service once. Each number counts as soon as it is read.
func (c *Controller) readService(ctx context.Context, reader *metrics.Reader, free chan struct{}, due []target) {
	var reads sync.WaitGroup
	defer reads.Wait()
	own := make(chan struct{}, pagesService)
	for _, t := range due {
		for _, slots := range []chan struct{}{own, free} {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
		reads.Go(func() {
			defer func() { <-free; <-own }()
			v, err := reader.Read(ctx, t.address, t.scale.Path, t.scale.Metric)
			if ctx.Err() == nil {
				c.scraped.setReading(t, reading{at: c.cfg.Now(), value: v, err: err})
			}
		})
	}
}

// pageTargets lists the pages of ready replicas by service. It runs on the goroutine of Run.
func (c *Controller) pageTargets() map[string][]target {
	out := map[string][]target{}
	for name, m := range c.services {
		s := c.wanted(m).Scale
		if s == nil || s.Metric == service.MetricInFlight || s.Metric == service.MetricRate {
			continue
		}
		for _, r := range c.cfg.Hub.Replicas(name) {
			if address := r.Address(s.Port); r.Ready && address != "" {
				out[name] = append(out[name], target{name, address, r.Job, *s})
			}
		}
	}
	return out
}
