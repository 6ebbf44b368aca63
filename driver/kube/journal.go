package kube

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/appendlog"
	"github.com/coxswain-sched/coxswain/engine/fence"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// kind is what an entry of the journal says.
type kind string

const (
	born     kind = "born"   // the name under which this driver's objects are known: Server
	opened   kind = "open"   // a driver began to use the file: Epoch
	launched kind = "launch" // Launch is taken
	created  kind = "made"   // all its objects exist: Made. Nothing is made for it after that
	started  kind = "start"  // it began, at Time
	held     kind = "held"   // it is suspended, or not: On, the last one counts; as long as it is not Sure, it is being told so
	waning   kind = "ending" // a part of it has ended
	stopped  kind = "stop"   // it is to end: Stop, the last one counts
	ended    kind = "end"    // nothing of it lives: Report is the last word
	dropped  kind = "forget" // it is not known any more, and must never begin
	barred   kind = "fenced" // what was dropped before: Fenced
)

// entry is one fact, as the driver decided or learned it.
type entry struct {
	Kind      kind           `json:"kind"`
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

// order is a launch as it is kept. Script and Env go once the objects are there.
type order struct {
	Job       *job.Job      `json:"job"`
	Claims    []fleet.Claim `json:"claims"`
	Nodes     []render.Node `json:"nodes"`
	Gang      *Gang         `json:"gang,omitempty"` // by which its pods begin together; nil: they are bound by us, or there is one
	Near      render.Near   `json:"near,omitzero"`  // what Kueue is told of where they are to be
	Script    []byte        `json:"script,omitempty"`
	Env       []string      `json:"env,omitempty"`
	Grace     time.Duration `json:"grace,omitempty"`
	Digest    string        `json:"digest"`
	Time      time.Time     `json:"time"`
	Saved     engine.Saved  `json:"saved,omitzero"`      // what earlier attempts reported
	Namespace string        `json:"namespace,omitempty"` // of its objects; empty: the pool's
	As        string        `json:"as,omitempty"`        // whom the API server is told to make them as; empty: the pool's own account
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
	Grace  time.Duration `json:"grace,omitempty"`
	Cause  engine.Cause  `json:"cause"`
	Reason string        `json:"reason,omitempty"`
}

// killDeadline is when nothing of it is to live any more.
func (s *stopping) killDeadline() time.Time { return s.Asked.Add(s.Grace) }

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

// journal is an append-only file of entries, one JSON value a line. One driver has it open.
type journal struct {
	name string

	mu     sync.Mutex
	file   *appendlog.File
	least  int64 // bytes: of the file when it was written anew last
	server string
	epoch  uint64
	fenced fence.Set
	lives  map[engine.Ref]*life
}

// openJournal opens or creates the file; server is the name where it has none yet. What
// follows a line that cannot be read is dropped.
func openJournal(name, server string) (*journal, error) {
	j := &journal{name: name, lives: map[engine.Ref]*life{}}
	var err error
	if j.file, err = appendlog.Open(name, func(line []byte) bool {
		var e entry
		if json.Unmarshal(line, &e) != nil {
			return false
		}
		j.applyEntry(&e)
		return true
	}); err != nil {
		return nil, err
	}
	if j.server == "" {
		j.server = server
	}
	j.epoch++
	if err := j.rewriteFile(); err != nil {
		return nil, errors.Join(err, j.file.Close())
	}
	return j, nil
}

func (j *journal) applyEntry(e *entry) {
	switch e.Kind {
	case born:
		j.server = e.Server
	case opened:
		j.epoch = max(j.epoch, e.Epoch)
	case barred:
		j.fenced.Load(*e.Fenced)
	case launched:
		j.lives[e.Ref] = &life{launch: e.Launch, digest: e.Launch.Digest}
	case dropped:
		j.fenced.Add(e.Ref)
		delete(j.lives, e.Ref)
	case ended:
		j.lives[e.Ref] = &life{digest: e.Digest, namespace: e.Namespace, end: e.Report}
	}
	l := j.lives[e.Ref]
	if l == nil {
		return
	}
	switch e.Kind {
	case created:
		l.made = e.Made
		slim := *l.launch
		slim.Script, slim.Env = nil, nil
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

// compactAt is the size from which the file is written anew without what no longer counts, if that
// may be half of it: where more than this counts, it would else be written anew for each attempt
// that is forgotten.
const compactAt = 4 << 20

// appendEntry writes an entry to the disk. After an error it is not in the journal.
func (j *journal) appendEntry(e *entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	err = j.repairFile()
	if err == nil {
		err = j.file.AddNow(line)
	}
	if err != nil {
		remedy := cmp.Or(fault.Remedy(err), "look at the disk of the state directory")
		if fault.KindOf(err) == fault.Exhausted {
			remedy = "make room in the state directory"
		}
		return fault.New(fault.KindOf(err), "the journal %s: %w", j.name, err).Advise("%s", remedy)
	}
	j.applyEntry(e)
	if j.file.Size() > max(compactAt, 2*j.least) && e.Kind == dropped {
		_ = j.rewriteFile() // if it cannot, there is another time; what is in doubt the file remembers
	}
	return nil
}

// repairFile writes the file anew where nobody knows what of it is on the disk. The caller holds the lock.
func (j *journal) repairFile() error {
	if j.file.Doubt() == nil {
		return nil
	}
	return j.rewriteFile()
}

// fenceAttempt makes sure that an attempt never begins by this journal, and drops what it has of it.
func (j *journal) fenceAttempt(ref engine.Ref) error {
	if j.isDropped(ref) {
		return nil
	}
	return j.appendEntry(&entry{Kind: dropped, Ref: ref})
}

// isDropped reports whether an attempt is fenced, and nothing else is kept of it. One that has run for long
// may be below the set's floor since others ended that are younger: it is still to be dropped.
func (j *journal) isDropped(ref engine.Ref) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.fenced.Has(ref) && j.lives[ref] == nil
}

func (j *journal) isFenced(ref engine.Ref) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.fenced.Has(ref)
}

// rewriteFile writes the file anew with what counts. The caller holds the lock, or is alone.
func (j *journal) rewriteFile() error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	all := []*entry{{Kind: born, Server: j.server}, {Kind: opened, Epoch: j.epoch}}
	if !j.fenced.Empty() {
		saved := j.fenced.Save()
		all = append(all, &entry{Kind: barred, Fenced: &saved})
	}
	for ref, l := range j.lives {
		all = append(all, l.liveEntries(ref)...)
	}
	for _, e := range all {
		if err := enc.Encode(e); err != nil {
			return err
		}
	}
	err := j.file.Rewrite(b.Bytes())
	if err == nil {
		j.least = int64(b.Len())
	}
	return err
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

func (j *journal) close() error { return j.file.Close() }
