package kube

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-sched/coxswain/driver/kube/gang"
	"github.com/coxswain-sched/coxswain/driver/kube/manifestpod"
	"github.com/coxswain-sched/coxswain/driver/kube/podstatus"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/fence"
	"github.com/coxswain-sched/coxswain/engine/kit"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// The kinds of entries that the driver adds to those of kit.
const (
	launched kit.Kind = "launch" // Launch is taken
	created  kit.Kind = "made"   // all its objects exist: Made. Nothing is made for it after that
	started  kit.Kind = "start"  // it began, at Time
	held     kit.Kind = "held"   // it is suspended, or not: On, the last one counts; as long as it is not Sure, it is being told so
	waning   kit.Kind = "ending" // a part of it has ended
	stopped  kit.Kind = "stop"   // it is to end: Stop, the last one counts
	ended    kit.Kind = "end"    // nothing of it lives: Report is the last word
)

// entry is one fact, as the driver decided or learned it.
type entry struct {
	Kind      kit.Kind       `json:"kind"`
	Ref       engine.Ref     `json:"ref"`
	Server    string         `json:"server,omitempty"`
	Epoch     uint64         `json:"epoch,omitempty"`
	Launch    *order         `json:"launch,omitempty"`
	Made      *made          `json:"made,omitempty"`
	Time      time.Time      `json:"time,omitzero"`
	Nodes     []string       `json:"nodes,omitempty"` // on which it began, by index, where the cluster's scheduler chose them
	On        bool           `json:"on,omitempty"`
	Sure      bool           `json:"sure,omitempty"`
	Stop      *stopping      `json:"stop,omitempty"`
	Report    *engine.Report `json:"report,omitempty"`
	Digest    string         `json:"digest,omitempty"`
	Namespace string         `json:"namespace,omitempty"` // of what has ended; empty: the pool's
	Fenced    *fence.Saved   `json:"fenced,omitempty"`
}

// order is a launch as it is kept. Script, unless it is of pods, and Env go once the objects are there.
type order struct {
	Job       *job.Job      `json:"job"`
	Claims    []fleet.Claim `json:"claims"`
	Nodes     []render.Node `json:"nodes"`
	Gang      *gang.Gang    `json:"gang,omitempty"`  // by which its pods begin together; nil: they are bound by us, or there is one
	Near      render.Near   `json:"near,omitzero"`   // what Kueue is told of where they are to be
	Avoid     []string      `json:"avoid,omitempty"` // nodes that the cluster's scheduler is not to choose
	Script    []byte        `json:"script,omitempty"`
	Env       []string      `json:"env,omitempty"`
	Grace     time.Duration `json:"grace,omitempty"`
	Digest    string        `json:"digest"`
	Time      time.Time     `json:"time"`
	Saved     engine.Saved  `json:"saved,omitzero"`      // what earlier attempts reported
	Namespace string        `json:"namespace,omitempty"` // of its objects; empty: the pool's
	As        string        `json:"as,omitempty"`        // whom the API server is told to make them as; empty: the pool's own account

	work *manifestpod.Work // of a job of kind job.Pods: Script as it was read; nil: it is another, or cannot be read
}

// made are an attempt's objects.
type made struct {
	Root types.UID   `json:"root"`
	Pods []types.UID `json:"pods"` // by index
}

// stopping is how an attempt is to end.
type stopping struct {
	Asked  time.Time     `json:"asked"`
	Signal int           `json:"signal,omitempty"`
	Drain  time.Duration `json:"drain,omitempty"` // from Asked until it is told to end: requests have so long to end
	Grace  time.Duration `json:"grace,omitempty"`
	Cause  engine.Cause  `json:"cause"`
	Reason string        `json:"reason,omitempty"`
}

// asStop is what an attempt's members need to know of it; nil of nil.
func (s *stopping) asStop() *podstatus.Stop {
	if s == nil {
		return nil
	}
	return &podstatus.Stop{Cause: s.Cause, Reason: s.Reason, Signal: s.Signal}
}

// killDeadline is when nothing of it is to live any more.
func (s *stopping) killDeadline() time.Time { return s.signalTime().Add(s.Grace) }

// signalTime is when it is told to end.
func (s *stopping) signalTime() time.Time { return s.Asked.Add(s.Drain) }

// pausing is whether an attempt is suspended, and whether its crew has said that it is so.
type pausing struct{ On, Sure bool }

// life is what the journal says of an attempt.
type life struct {
	launch    *order // nil: it has ended
	digest    string
	namespace string // of what has ended
	made      *made
	started   time.Time
	on        []string // the nodes; nil: as in launch
	held      *pausing // nil: it never was suspended
	waning    bool
	stop      *stopping
	end       *engine.Report
}

// journal is the driver's journal, an append-only file of entries.
type journal struct {
	*kit.Journal[entry, life]
	server string // the name under which this driver's objects are known
}

// openJournal opens or creates the file; server is the name if the file has none yet.
func openJournal(path, server string) (*journal, error) {
	j, err := kit.OpenJournal(path, server, kit.Format[entry, life]{
		Head: (*entry).head, Entry: headEntry, Apply: applyEntry, Durable: true,
		Entries: func(ref engine.Ref, l *life) []*entry { return l.liveEntries(ref) },
	})
	if err != nil {
		return nil, err
	}
	return &journal{Journal: j, server: j.Name()}, nil
}

func (e *entry) head() kit.Head {
	return kit.Head{Kind: e.Kind, Ref: e.Ref, Name: e.Server, Epoch: e.Epoch, Fenced: e.Fenced}
}

func headEntry(h kit.Head) *entry {
	return &entry{Kind: h.Kind, Ref: h.Ref, Server: h.Name, Epoch: h.Epoch, Fenced: h.Fenced}
}

func applyEntry(lives map[engine.Ref]*life, e *entry) {
	switch e.Kind {
	case launched:
		lives[e.Ref] = &life{launch: e.Launch, digest: e.Launch.Digest}
	case ended:
		lives[e.Ref] = &life{digest: e.Digest, namespace: e.Namespace, end: e.Report}
	}
	l := lives[e.Ref]
	if l == nil {
		return
	}
	switch e.Kind {
	case created:
		l.made = e.Made
		slim := *l.launch
		slim.Env = nil
		if slim.Job == nil || slim.Job.Spec == nil || slim.Job.Spec.Program.Kind != job.Pods { // how its pods end, the script says
			slim.Script = nil
		}
		l.launch = &slim
	case started:
		l.started, l.on = e.Time, e.Nodes
	case held:
		l.held = &pausing{On: e.On, Sure: e.Sure}
	case waning:
		l.waning = true
	case stopped:
		l.stop = e.Stop
	}
}

func (l *life) liveEntries(ref engine.Ref) []*entry {
	if l.end != nil {
		return []*entry{{Kind: ended, Ref: ref, Digest: l.digest, Namespace: l.namespace, Report: l.end}}
	}
	out := []*entry{{Kind: launched, Ref: ref, Launch: l.launch}}
	if l.made != nil {
		out = append(out, &entry{Kind: created, Ref: ref, Made: l.made})
	}
	if !l.started.IsZero() {
		out = append(out, &entry{Kind: started, Ref: ref, Time: l.started, Nodes: l.on})
	}
	if h := l.held; h != nil {
		out = append(out, &entry{Kind: held, Ref: ref, On: h.On, Sure: h.Sure})
	}
	if l.waning {
		out = append(out, &entry{Kind: waning, Ref: ref})
	}
	if l.stop != nil {
		out = append(out, &entry{Kind: stopped, Ref: ref, Stop: l.stop})
	}
	return out
}
