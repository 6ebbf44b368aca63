package slurm

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/appendlog"
	"github.com/coxswain-sched/coxswain/engine/fence"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// kind is what an entry of the journal says.
type kind string

const (
	born     kind = "born"   // the name under which this driver's jobs are known in Slurm: Cluster
	opened   kind = "open"   // a driver began to use the file: Epoch
	launched kind = "launch" // Launch is taken
	sent     kind = "sent"   // slurmctld gave it the number ID
	started  kind = "start"  // it began, as Report has it
	stopped  kind = "stop"   // it is to end: Stop, the last one counts
	ended    kind = "end"    // nothing of it lives: Report is the last word
	spared   kind = "spare"  // Slurm put its job back, which waits for the job's next attempt: Spare
	adopted  kind = "adopt"  // it took Spare over
	unspared kind = "spent"  // nobody took Spare over
	dropped  kind = "forget" // it is not known any more, and must never begin
	barred   kind = "fenced" // what was dropped before: Fenced
)

// entry is one fact, as the driver decided or learned it.
type entry struct {
	Kind    kind           `json:"kind"`
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

// order is a launch as it is kept. Script and Env go once slurmctld has the job.
type order struct {
	Job    *job.Job      `json:"job"`
	Claims []fleet.Claim `json:"claims"`
	Script []byte        `json:"script,omitempty"`
	Env    []string      `json:"env,omitempty"`
	Grace  time.Duration `json:"grace,omitempty"`
	Token  string        `json:"token"`
	Digest string        `json:"digest"`
	Time   time.Time     `json:"time"`
}

// stopping is how an attempt is to end.
type stopping struct {
	Asked  time.Time    `json:"asked"`
	Signal int          `json:"signal"`
	Kill   time.Time    `json:"kill"` // SIGKILL then
	Cause  engine.Cause `json:"cause"`
	Reason string       `json:"reason,omitempty"`
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

// journal is an append-only file of entries, one JSON value a line. One driver has it open.
type journal struct {
	mu      sync.Mutex
	file    *appendlog.File
	least   int64 // bytes: of the file when it was written anew last
	cluster string
	epoch   uint64
	fenced  fence.Set
	lives   map[engine.Ref]*life
	kept    map[job.ID]*requeuedJob
}

// openJournal opens or creates the file; cluster is the name where it has none yet. What
// follows a line that cannot be read is dropped.
func openJournal(name, cluster string) (*journal, error) {
	j := &journal{lives: map[engine.Ref]*life{}, kept: map[job.ID]*requeuedJob{}}
	var err error
	if j.file, err = appendlog.Open(name, func(line []byte) bool {
		var e entry
		if json.Unmarshal(line, &e) != nil {
			return false
		}
		j.apply(&e)
		return true
	}); err != nil {
		return nil, err
	}
	if j.cluster == "" {
		j.cluster = cluster
	}
	j.epoch++
	if err := j.rewrite(); err != nil {
		return nil, errors.Join(err, j.file.Close())
	}
	return j, nil
}

func (j *journal) apply(e *entry) {
	l := j.lives[e.Ref]
	switch e.Kind {
	case born:
		j.cluster = e.Cluster
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
		j.lives[e.Ref] = &life{digest: e.Digest, end: e.Report}
	case spared:
		j.kept[e.Spare.Job] = e.Spare
	case adopted, unspared:
		delete(j.kept, e.Spare.Job)
	}
	if l == nil {
		return
	}
	switch e.Kind {
	case sent:
		l.id = e.ID
		if l.launch != nil {
			slim := *l.launch
			slim.Script, slim.Env = nil, nil
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

// compactAt is the size from which the file is written anew without what no longer counts, if that
// may be half of it: where more than this counts, it would else be written anew for each attempt
// that is forgotten.
const compactAt = 4 << 20

// add writes an entry. After an error it is not in the journal.
func (j *journal) add(e *entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.mend(); err != nil {
		return err
	}
	if err := j.file.Add(line); err != nil {
		return err
	}
	j.apply(e)
	if j.file.Size() > max(compactAt, 2*j.least) && e.Kind == dropped {
		_ = j.rewrite() // if it cannot, there is another time; what is in doubt the file remembers
	}
	return nil
}

// sync makes durable what was added before. Callers at once share one turn of the disk. Where the
// disk fails it is tried once more, with a file that is written anew.
func (j *journal) sync() error {
	if err := j.file.Sync(); err == nil {
		return nil
	}
	j.mu.Lock()
	err := j.mend()
	j.mu.Unlock()
	if err != nil {
		return err
	}
	return j.file.Sync()
}

// mend writes the file anew where nobody knows what of it is on the disk. The caller holds the lock.
func (j *journal) mend() error {
	if j.file.Doubt() == nil {
		return nil
	}
	return j.rewrite()
}

// fenceAttempt makes sure that an attempt never begins by this journal, and drops what it has of it: after
// nil that is on the disk, also where it was noted before, by a call that failed.
func (j *journal) fenceAttempt(ref engine.Ref) error {
	if j.isOver(ref) {
		return j.sync()
	}
	if err := j.add(&entry{Kind: dropped, Ref: ref}); err != nil {
		return err
	}
	return j.sync()
}

// isOver reports whether an attempt is fenced, and nothing else is kept of it. One that has run for long
// may be below the set's floor since others ended that are younger: it is still to be dropped.
func (j *journal) isOver(ref engine.Ref) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.fenced.Has(ref) && j.lives[ref] == nil
}

func (j *journal) isFenced(ref engine.Ref) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.fenced.Has(ref)
}

// rewrite writes the file anew with what counts. The caller holds the lock, or is alone.
func (j *journal) rewrite() error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	all := []*entry{{Kind: born, Cluster: j.cluster}, {Kind: opened, Epoch: j.epoch}}
	if !j.fenced.Empty() {
		saved := j.fenced.Save()
		all = append(all, &entry{Kind: barred, Fenced: &saved})
	}
	for ref, l := range j.lives {
		all = append(all, l.entries(ref)...)
	}
	for _, p := range j.kept {
		all = append(all, &entry{Kind: spared, Ref: p.Ref, Spare: p})
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

// requeuedJob is the job that Slurm keeps for the next attempt of a job; nil: none.
func (j *journal) requeuedJob(id job.ID) *requeuedJob {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.kept[id]
}

// requeuedJobs are all of these.
func (j *journal) requeuedJobs() []*requeuedJob {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Collect(maps.Values(j.kept))
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

func (j *journal) close() error { return j.file.Close() }
