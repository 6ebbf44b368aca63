package controller

import (
	"context"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/service/metrics"
)

// How often the pages of replicas are read, and for how long a number holds.
const (
	pageEach  = 5 * time.Second
	pageHolds = 3 * pageEach
	pagesOnce = 16 // read at the same time, at most
)

// pages are the numbers that were read off the Prometheus pages of replicas. It has a lock of its own.
type pages struct {
	mu  sync.Mutex
	all map[string]map[job.ID]reading // by service
}

type reading struct {
	at    time.Time
	value float64
	err   error
}

func newPages() *pages { return &pages{all: map[string]map[job.ID]reading{}} }

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

// troubleOf is what is wrong with a page of a service, "" if nothing is.
func (p *pages) troubleOf(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.all[name] {
		if r.err != nil {
			return r.err.Error()
		}
	}
	return ""
}

// setReadings takes the numbers of a service's replicas; earlier ones of replicas that are not among
// them are forgotten.
func (p *pages) setReadings(name string, now map[job.ID]reading) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all[name] = now
}

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

// readPages reads the pages of the replicas of services whose number follows them, until ctx ends.
func (c *Controller) readPages(ctx context.Context) {
	reader := metrics.NewReader()
	defer reader.Close()
	ticker := time.NewTicker(c.cfg.PageEach)
	defer ticker.Stop()
	for {
		c.readOnce(ctx, reader)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// readOnce reads every page once.
func (c *Controller) readOnce(ctx context.Context, reader *metrics.Reader) {
	var targets []target
	if err := c.ask(ctx, func(context.Context) error { targets = c.pageTargets(); return nil }); err != nil {
		return
	}
	read := map[string]map[job.ID]reading{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	free := make(chan struct{}, pagesOnce)
	for _, t := range targets {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			v, err := reader.Read(ctx, t.address, t.scale.Path, t.scale.Metric)
			mu.Lock()
			defer mu.Unlock()
			if read[t.service] == nil {
				read[t.service] = map[job.ID]reading{}
			}
			read[t.service][t.job] = reading{c.cfg.Now(), v, err}
		})
	}
	wg.Wait()
	for name, numbers := range read {
		c.scraped.setReadings(name, numbers)
		c.touch(name)
	}
}

// pageTargets lists the pages of ready replicas. It runs on the goroutine of Run.
func (c *Controller) pageTargets() (out []target) {
	for name, m := range c.services {
		s := c.wanted(m).Scale
		if s == nil || s.Metric == service.MetricInFlight || s.Metric == service.MetricRate {
			continue
		}
		for _, r := range c.cfg.Hub.Replicas(name) {
			if address := r.Address(s.Port); r.Ready && address != "" {
				out = append(out, target{name, address, r.Job, *s})
			}
		}
	}
	return out
}
