package kit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"sync"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/appendlog"
	"github.com/coxswain-sched/coxswain/engine/fence"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Kind says what an entry of a journal records. A driver adds its own to those of this package.
type Kind string

// The kinds of entries that the journal writes and reads by itself. A driver never appends them.
const (
	Named     Kind = "born"   // the name under which the cluster knows the driver's objects: Head.Name
	Opened    Kind = "open"   // a driver began to use the file: Head.Epoch
	Forgotten Kind = "forget" // the attempt is not known any more, and must never begin
	Fenced    Kind = "fenced" // the attempts that were forgotten before: Head.Fenced
)

// Head is the part of an entry that the journal reads.
type Head struct {
	Kind   Kind
	Ref    engine.Ref   // of Forgotten, and of the driver's kinds
	Name   string       // of Named
	Epoch  uint64       // of Opened
	Fenced *fence.Saved // of Fenced
}

// Format says how a driver records attempts. E is an entry, encoded as one JSON value a line; L is
// what the entries of one attempt add up to.
type Format[E, L any] struct {
	Head  func(e *E) Head // what the journal reads of an entry
	Entry func(h Head) *E // an entry that the journal writes
	// Apply adds an entry to the attempts. The journal has dealt with its own kinds before.
	Apply func(lives map[engine.Ref]*L, e *E)
	// Entries returns the entries that give an attempt again, for a file that is rewritten.
	Entries func(ref engine.Ref, l *L) []*E
	// More returns the entries that count beside those of attempts; nil: there are none.
	More func() []*E
	// Durable has each entry on the disk before Append returns, whose error then names the file and
	// the remedy. Otherwise entries are on the disk after the next Sync.
	Durable bool
}

// compactAt is the size in bytes from which the file is rewritten without the entries that no longer
// count, if these may be half of it: where more than this counts, each attempt that is forgotten
// would else rewrite it.
const compactAt = 4 << 20

// Journal is an append-only file of entries. One driver has it open.
type Journal[E, L any] struct {
	path   string
	format Format[E, L]
	name   string
	epoch  uint64
	file   *appendlog.File

	mu     sync.Mutex
	least  int64 // size of the file in bytes when it was last rewritten
	fenced fence.Set
	lives  map[engine.Ref]*L
}

// OpenJournal opens or creates the file at a path and begins its next epoch. The journal has the
// name that the file says, or else this one. A line that cannot be read, and all behind it, are
// dropped. fault.Conflict: another driver has the file open.
func OpenJournal[E, L any](path, name string, f Format[E, L]) (*Journal[E, L], error) {
	j := &Journal[E, L]{path: path, format: f, lives: map[engine.Ref]*L{}}
	var err error
	if j.file, err = appendlog.Open(path, func(line []byte) bool {
		e := new(E)
		if json.Unmarshal(line, e) != nil {
			return false
		}
		j.apply(e)
		return true
	}); err != nil {
		return nil, err
	}
	if j.name == "" {
		j.name = name
	}
	j.epoch++
	if err := j.rewriteFile(); err != nil {
		return nil, errors.Join(err, j.file.Close())
	}
	return j, nil
}

// Name is the name under which the cluster knows the driver's objects.
func (j *Journal[E, L]) Name() string { return j.name }

// Epoch counts how often the file was opened.
func (j *Journal[E, L]) Epoch() uint64 { return j.epoch }

// Lives returns what the journal has of each attempt.
func (j *Journal[E, L]) Lives() map[engine.Ref]*L {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.lives)
}

// On has the file use a disk; see appendlog.File.
func (j *Journal[E, L]) On(d appendlog.Disk) { j.file.On(d) }

// Close closes the file, for others to open.
func (j *Journal[E, L]) Close() error { return j.file.Close() }

// apply adds an entry to what the journal has. The caller holds the lock, or is alone.
func (j *Journal[E, L]) apply(e *E) {
	switch h := j.format.Head(e); h.Kind {
	case Named:
		j.name = h.Name
	case Opened:
		j.epoch = max(j.epoch, h.Epoch)
	case Fenced:
		j.fenced.Load(*h.Fenced)
	case Forgotten:
		j.fenced.Add(h.Ref)
		delete(j.lives, h.Ref)
	default:
		j.format.Apply(j.lives, e)
	}
}

// Append writes an entry. After an error it is not in the journal.
func (j *Journal[E, L]) Append(e *E) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.appendLine(line); err != nil {
		return err
	}
	j.apply(e)
	if j.file.Size() > max(compactAt, 2*j.least) && j.format.Head(e).Kind == Forgotten {
		_ = j.rewriteFile() // if it fails, the next entry tries again; the file remembers that it is in doubt
	}
	return nil
}

// appendLine writes a line as durably as the format asks for. The caller holds the lock.
func (j *Journal[E, L]) appendLine(line []byte) error {
	err := j.repairFile()
	if !j.format.Durable {
		if err == nil {
			err = j.file.Add(line)
		}
		return err
	}
	if err == nil {
		err = j.file.AddNow(line)
	}
	if err == nil {
		return nil
	}
	remedy := cmp.Or(fault.Remedy(err), "look at the disk of the state directory")
	if fault.KindOf(err) == fault.Exhausted {
		remedy = "make room in the state directory"
	}
	return fault.New(fault.KindOf(err), "the journal %s: %w", j.path, err).Advise("%s", remedy)
}

// Sync makes durable what was appended before. Calls at the same time share one sync of the disk.
// If the disk fails, Sync tries once more, with a file that is rewritten.
func (j *Journal[E, L]) Sync() error {
	if err := j.file.Sync(); err == nil {
		return nil
	}
	j.mu.Lock()
	err := j.repairFile()
	j.mu.Unlock()
	if err != nil {
		return err
	}
	return j.file.Sync()
}

// repairFile rewrites the file if it is in doubt. The caller holds the lock.
func (j *Journal[E, L]) repairFile() error {
	if j.file.Doubt() == nil {
		return nil
	}
	return j.rewriteFile()
}

// Fence makes sure that an attempt never begins by this journal, and drops what it has of the
// attempt. After nil the fence is on the disk, even if an earlier call noted it and failed.
func (j *Journal[E, L]) Fence(ref engine.Ref) error {
	if !j.isForgotten(ref) {
		if err := j.Append(j.format.Entry(Head{Kind: Forgotten, Ref: ref})); err != nil {
			return err
		}
	}
	if j.format.Durable {
		return nil // what Append has applied is on the disk
	}
	return j.Sync()
}

// isForgotten reports whether an attempt is fenced and the journal has nothing else of it. The
// floor of the fence may have passed an attempt that runs for long, as younger ones ended: such an
// attempt is fenced, but not forgotten yet.
func (j *Journal[E, L]) isForgotten(ref engine.Ref) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.fenced.Has(ref) && j.lives[ref] == nil
}

// IsFenced reports whether an attempt must never begin.
func (j *Journal[E, L]) IsFenced(ref engine.Ref) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.fenced.Has(ref)
}

// rewriteFile replaces the file by one with the entries that count. The caller holds the lock, or is
// alone.
func (j *Journal[E, L]) rewriteFile() error {
	entry := j.format.Entry
	all := []*E{entry(Head{Kind: Named, Name: j.name}), entry(Head{Kind: Opened, Epoch: j.epoch})}
	if !j.fenced.Empty() {
		saved := j.fenced.Save()
		all = append(all, entry(Head{Kind: Fenced, Fenced: &saved}))
	}
	for ref, l := range j.lives {
		all = append(all, j.format.Entries(ref, l)...)
	}
	if j.format.More != nil {
		all = append(all, j.format.More()...)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
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
