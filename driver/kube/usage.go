package kube

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

var (
	_ engine.UsageSampler = (*Engine)(nil)
	_ engine.PodLister    = (*Engine)(nil)
)

const (
	// usageWithin is how long the pods of an attempt may take to say what they use: who asks for a
	// job waits for it.
	usageWithin = 5 * time.Second

	// usageFresh is for how long an answer is given again: each goes through the API server and a
	// kubelet.
	usageFresh = 5 * time.Second
)

// liveUsage is what an attempt said last that it uses.
type liveUsage struct {
	record *rusage.Record
	at     time.Time
}

// Usage asks the agent in the pods of an attempt that runs; see engine.UsageSampler. nil: it is an
// older one, which does not know, or there is none.
func (e *Engine) Usage(ctx context.Context, ref engine.Ref) (*rusage.Record, error) {
	a, err := e.runningAttempt(ref)
	if err != nil {
		return nil, err
	}
	if a.hasNoAgent() {
		return nil, nil //nolint:nilnil // nobody in its pods measures it
	}
	e.mu.Lock()
	last := a.live
	e.mu.Unlock()
	if time.Since(last.at) < usageFresh {
		return last.record, nil
	}
	ctx, cancel := context.WithTimeout(ctx, usageWithin)
	defer cancel()
	select {
	case e.asks <- struct{}{}:
		defer func() { <-e.asks }()
	case <-ctx.Done():
		return nil, fault.New(fault.Unavailable, "many jobs of this pool are asked what they use").Advise("try again in a moment")
	}
	text, err := json.Marshal(podagent.Question{Usage: true})
	if err != nil {
		return nil, err
	}
	said := beginning{most: podagent.MaxUsage}
	code, err := e.calls.inPod(ctx, e.calls.execTarget(a, 0), nil, &said, "ask", string(text))
	switch {
	case code == fault.Invalid.ExitCode() && err != nil: // an older cox-pod knows no such question
	case err != nil:
		if _, over := e.runningAttempt(ref); over != nil {
			return nil, over
		}
		return nil, fault.New(fault.Unavailable, "what attempt %s uses: %w", ref, err)
	}
	var r *rusage.Record
	if json.Unmarshal([]byte(said.String()), &r) != nil {
		r = nil // what answers runs in the job's pod, and may be anything
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if a.ended {
		return nil, fault.New(fault.Conflict, "attempt %s has ended", ref)
	}
	r = r.Renamed(a.nodesOfPods(e.log.server))
	a.live = liveUsage{r, time.Now()}
	return r, nil
}

// Pods lists the pods of an attempt that runs; see engine.PodLister.
func (e *Engine) Pods(ref engine.Ref) (out []engine.PodName) {
	a, err := e.runningAttempt(ref)
	if err != nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, i := range slices.Sorted(maps.Keys(a.pods)) {
		if p := a.pods[i]; p != nil && p.Pod != nil && !p.gone {
			out = append(out, engine.PodName{Namespace: p.Namespace, Name: p.Name, Node: a.nodeOf(i)})
		}
	}
	return out
}
