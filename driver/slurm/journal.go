package slurm

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/fence"
	"github.com/coxswain-sched/coxswain/engine/kit"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// The kinds of entries that the driver adds to those of kit.
const (
	launched kit.Kind = "launch" // Launch is taken
	sent     kit.Kind = "sent"   // slurmctld gave it the number ID
	started  kit.Kind = "start"  // it began, as Report has it
	stopped  kit.Kind = "stop"   // it is to end: Stop, the last one counts
	ended    kit.Kind = "end"    // nothing of it lives: Report is the last word
	spared   kit.Kind = "spare"  // Slurm put its job back, which waits for the job's next attempt: Spare
	adopted  kit.Kind = "adopt"  // it took Spare over
	unspared kit.Kind = "spent"  // nobody took Spare over
)

// entry is one fact, as the driver decided or learned it.
type entry struct {
	Kind    kit.Kind       `json:"kind"`
	Ref     engine.Ref     `json:"ref"`
	Cluster string         `json:"cluster,omitempty"`
	Epoch   uint64         `json:"epoch,omitempty"`
	Launch  *order         `json:"launch,omitempty"`
	ID      uint32         `json:"id,omitempty"`
	Stop    *stopping      `json:"stop,omitempty"`
	Report  *engine.Report `json:"report,omitempty"`
	Digest  string         `json:"digest,omitempty"`
	Spare   *requeuedJob   `json:"spare,omitempty"`
	Fenced  *fence.Saved   `json:"fenced,omitempty"`
}

// order is a launch as it is kept. Script, Env and Avoid go once slurmctld has the job.
type order struct {
	Job    *job.Job      `json:"job"`
	Claims []fleet.Claim `json:"claims"`
	Script []byte        `json:"script,omitempty"`
	Env    []string      `json:"env,omitempty"`
	Grace  time.Duration `json:"grace,omitempty"`
	Token  string        `json:"token"`
	Digest string        `json:"digest"`
	Time   time.Time     `json:"time"`
	Avoid  []string      `json:"avoid,omitempty"` // nodes that slurmctld is not to choose
	Ports  [2]int        `json:"ports,omitzero"`  // range of the ports of a job that serves; zero: it serves not, or the journal is older
}

// stopping is how an attempt is to end.
type stopping struct {
	Asked  time.Time    `json:"asked"`
	Signal int          `json:"signal"`
	From   time.Time    `json:"from,omitzero"` // the signal is not sent before: requests have so long to end
	Kill   time.Time    `json:"kill"`          // SIGKILL then
	Cause  engine.Cause `json:"cause"`
	Reason string       `json:"reason,omitempty"`
	Barred bool         `json:"barred,omitempty"` // its lock is: nothing of it begins, whatever Slurm calls its job
}

// life is what the journal says of an attempt.
type life struct {
	launch  *order // nil: it has ended
	digest  string
	id      uint32
	adopted *requeuedJob // its job was another attempt's
	started *engine.Report
	stop    *stopping
	end     *engine.Report
}

// journal is the driver's journal, an append-only file of entries. It has the jobs that Slurm put
// back beside the attempts.
type journal struct {
	*kit.Journal[entry, life]
	cluster string // the name under which this driver's jobs are known in Slurm

	mu   sync.Mutex // taken after the journal's own
	kept map[job.ID]*requeuedJob
}

// openJournal opens or creates the file; cluster is the name if the file has none yet.
func openJournal(path, cluster string) (*journal, error) {
	j := &journal{kept: map[job.ID]*requeuedJob{}}
	var err error
	j.Journal, err = kit.OpenJournal(path, cluster, kit.Format[entry, life]{
		Head: (*entry).head, Entry: headEntry, Apply: j.applyEntry, More: j.requeuedEntries,
		Entries: func(ref engine.Ref, l *life) []*entry { return l.entries(ref) },
	})
	if err != nil {
		return nil, err
	}
	j.cluster = j.Name()
	return j, nil
}

func (e *entry) head() kit.Head {
	return kit.Head{Kind: e.Kind, Ref: e.Ref, Name: e.Cluster, Epoch: e.Epoch, Fenced: e.Fenced}
}

func headEntry(h kit.Head) *entry {
	return &entry{Kind: h.Kind, Ref: h.Ref, Cluster: h.Name, Epoch: h.Epoch, Fenced: h.Fenced}
}

func (j *journal) applyEntry(lives map[engine.Ref]*life, e *entry) {
	l := lives[e.Ref]
	switch e.Kind {
	case launched:
		lives[e.Ref] = &life{launch: e.Launch, digest: e.Launch.Digest}
	case ended:
		lives[e.Ref] = &life{digest: e.Digest, end: e.Report}
	case spared, adopted, unspared:
		j.applyRequeued(e)
	}
	if l == nil {
		return
	}
	switch e.Kind {
	case sent:
		l.id = e.ID
		if l.launch != nil {
			slim := *l.launch
			slim.Script, slim.Env, slim.Avoid = nil, nil, nil
			l.launch = &slim
		}
	case started:
		l.started = e.Report
	case stopped:
		l.stop = e.Stop
	case adopted:
		l.adopted = e.Spare
	}
}

func (j *journal) applyRequeued(e *entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e.Kind == spared {
		j.kept[e.Spare.Job] = e.Spare
	} else {
		delete(j.kept, e.Spare.Job)
	}
}

// requeuedJob returns the job that Slurm keeps for the next attempt of a job; nil: none.
func (j *journal) requeuedJob(id job.ID) *requeuedJob {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.kept[id]
}

// requeuedJobs returns the jobs that Slurm keeps for next attempts.
func (j *journal) requeuedJobs() []*requeuedJob {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Collect(maps.Values(j.kept))
}

func (j *journal) requeuedEntries() (out []*entry) {
	for _, p := range j.requeuedJobs() {
		out = append(out, &entry{Kind: spared, Ref: p.Ref, Spare: p})
	}
	return out
}

func (l *life) entries(ref engine.Ref) []*entry {
	if l.end != nil {
		return []*entry{{Kind: ended, Ref: ref, Digest: l.digest, Report: l.end}}
	}
	out := []*entry{{Kind: launched, Ref: ref, Launch: l.launch}}
	if l.id != 0 {
		out = append(out, &entry{Kind: sent, Ref: ref, ID: l.id})
	}
	if l.adopted != nil {
		out = append(out, &entry{Kind: adopted, Ref: ref, ID: l.id, Spare: l.adopted})
	}
	if l.started != nil {
		out = append(out, &entry{Kind: started, Ref: ref, Report: l.started})
	}
	if l.stop != nil {
		out = append(out, &entry{Kind: stopped, Ref: ref, Stop: l.stop})
	}
	return out
}
