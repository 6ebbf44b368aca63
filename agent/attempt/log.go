package attempt

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/fence"
)

// EntryKind is what an Entry of the log says.
type EntryKind string

// The kinds of entry.
const (
	EntryLaunch EntryKind = "launch" // Launch was taken
	EntrySeat   EntryKind = "seat"   // node number Index sits on Seat; the last one counts
	EntryGo     EntryKind = "go"     // the barrier is opened at Started, by this or a later server
	EntryAbort  EntryKind = "abort"  // it will never be opened: Cause, Text
	EntryEnd    EntryKind = "end"    // nothing of it lives: Report is the last word
	EntryForget EntryKind = "forget" // it is not known, and must never begin
	EntryFenced EntryKind = "fenced" // what was forgotten before: Fenced
)

// Entry is one fact about an attempt, as the engine decided or learned it.
type Entry struct {
	Kind    EntryKind      `json:"kind"`
	Ref     engine.Ref     `json:"ref"`
	Launch  *Launch        `json:"launch,omitempty"`
	Index   int            `json:"index,omitempty"`
	Seat    *Slot          `json:"seat,omitempty"`
	Started time.Time      `json:"started,omitzero"`
	Cause   engine.Cause   `json:"cause,omitempty"`
	Text    string         `json:"text,omitempty"`
	Digest  string         `json:"digest,omitempty"` // of an end: of its launch
	Report  *engine.Report `json:"report,omitempty"`
	Fenced  *fence.Saved   `json:"fenced,omitempty"`
}

// isComplete reports whether an entry has what its kind needs.
func (e *Entry) isComplete() bool {
	switch e.Kind {
	case EntryLaunch:
		return e.Launch != nil
	case EntrySeat:
		return e.Seat != nil
	case EntryEnd:
		return e.Report != nil
	case EntryFenced:
		return e.Fenced != nil
	}
	return true
}

// Life is what the log says of one attempt.
type Life struct {
	Launch  *Launch // nil: it has ended
	Seats   map[int]Slot
	Decided EntryKind // EntryGo, EntryAbort, or "" while the gang is made ready
	Started time.Time
	Cause   engine.Cause
	Text    string
	Digest  string
	End     *engine.Report // nil: not yet
}

func (l *Life) applyEntry(e Entry) {
	switch e.Kind {
	case EntryLaunch:
		l.Launch, l.Digest = e.Launch, e.Launch.Digest
	case EntrySeat:
		if l.Seats == nil {
			l.Seats = map[int]Slot{}
		}
		l.Seats[e.Index] = *e.Seat
	case EntryGo, EntryAbort:
		if l.Decided == "" { // the first decision stands
			l.Decided, l.Started, l.Cause, l.Text = e.Kind, e.Started, e.Cause, e.Text
		}
	case EntryEnd:
		l.End, l.Digest, l.Launch = e.Report, e.Digest, nil
	}
}

// Log is the engine's append-only file of entries, one JSON value a line. One
// process has it open at a time. It is safe for concurrent use.
type Log struct {
	name string

	mu       sync.Mutex
	f        *os.File
	end      int64 // bytes of whole entries
	reserved int64
	live     map[engine.Ref][]span // lines that count, in order
	alive    int64                 // bytes in them
	fenced   fence.Set             // what must never begin
	buf      []byte
}

// span is where a line stands.
type span struct{ at, len int64 }

// When the log is written anew without what no longer counts.
const compactAt = 4 << 20

// logReserve is how much room the log has of its own, so that decisions and ends
// can be written on a full disk.
const logReserve = 256 << 10

// LogOf is the file of an engine's log.
func LogOf(root string) string { return filepath.Join(root, "attempts") }

// OpenLog opens or creates a log and returns what it says of every attempt that was
// not forgotten. What follows a line that cannot be read is dropped.
func OpenLog(name string) (*Log, map[engine.Ref]*Life, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, nil, err
	}
	l := &Log{name: name, f: f, live: map[engine.Ref][]span{}}
	lives := map[engine.Ref]*Life{}
	r := bufio.NewReaderSize(f, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, errors.Join(err, f.Close())
		}
		var e Entry
		if json.Unmarshal(line, &e) != nil || !e.isComplete() {
			break // of a machine that crashed
		}
		if lives[e.Ref] == nil {
			lives[e.Ref] = &Life{}
		}
		lives[e.Ref].applyEntry(e)
		l.noteEntry(e, span{l.end, int64(len(line))})
		l.end += int64(len(line))
		if e.Kind == EntryForget {
			delete(lives, e.Ref)
		}
	}
	for ref, life := range lives {
		if life.Launch == nil && life.End == nil {
			delete(lives, ref) // words about an attempt whose launch is not here
			l.dropLife(ref)
		}
	}
	_ = l.reserveSpace(0) // said again when it matters
	return l, lives, nil
}

// noteEntry enters where the lines stand that count, and what is fenced, which is
// written as a whole whenever the log is.
func (l *Log) noteEntry(e Entry, at span) {
	switch e.Kind {
	case EntryFenced:
		l.fenced.Load(*e.Fenced)
		return
	case EntryForget:
		l.fenced.Add(e.Ref)
		l.dropLife(e.Ref)
		return
	case EntryEnd:
		l.dropLife(e.Ref)
	}
	l.live[e.Ref] = append(l.live[e.Ref], at)
	l.alive += at.len
}

// Fenced reports whether an attempt must never begin.
func (l *Log) Fenced(ref engine.Ref) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fenced.Has(ref)
}

func (l *Log) dropLife(ref engine.Ref) {
	for _, s := range l.live[ref] {
		l.alive -= s.len
	}
	delete(l.live, ref)
}

// reserveSpace keeps room ahead of the end and of what is about to be written there. It fails
// if the disk is full.
func (l *Log) reserveSpace(need int64) error {
	if l.reserved-l.end-need > logReserve/2 {
		return nil
	}
	err := unix.Fallocate(int(l.f.Fd()), unix.FALLOC_FL_KEEP_SIZE, l.end, need+logReserve)
	if err == nil {
		l.reserved = l.end + need + logReserve
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return err
	}
	return nil // a file system that cannot do that
}

// Append writes an entry. After an error it is not in the log.
func (l *Log) Append(e Entry) error { return l.appendEntry(e, nil) }

// Launch writes an EntryLaunch; launch is an encoded Launch.
func (l *Log) Launch(ref engine.Ref, launch []byte) error {
	return l.appendEntry(Entry{Kind: EntryLaunch, Ref: ref}, launch)
}

func (l *Log) appendEntry(e Entry, launch []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	if l.buf, err = appendLine(l.buf[:0], e); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	if launch != nil {
		l.buf = withLaunch(l.buf, launch)
	}
	var need int64
	if e.Kind == EntryLaunch { // the room that is left is for what must not fail
		need = int64(len(l.buf))
	}
	if err := l.reserveSpace(need); err != nil && e.Kind == EntryLaunch {
		return err
	}
	n, err := l.f.WriteAt(l.buf, l.end)
	if err != nil {
		if n > 0 { // a part of a line would end what is read
			_ = l.f.Truncate(l.end)
			l.reserved = 0 // that took the reserve too
		}
		return err
	}
	l.noteEntry(e, span{l.end, int64(n)})
	l.end += int64(n)
	if cap(l.buf) > 1<<20 {
		l.buf = nil
	}
	if l.end > compactAt && l.alive < l.end/2 {
		l.compactLog()
	}
	return nil
}

// compactLog writes the log anew with what counts. If it cannot, there is another time.
func (l *Log) compactLog() {
	next, err := os.OpenFile(l.name+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return
	}
	w := bufio.NewWriterSize(next, 64<<10)
	live := make(map[engine.Ref][]span, len(l.live))
	var end int64
	if !l.fenced.Empty() {
		saved := l.fenced.Save()
		line, err := appendLine(nil, Entry{Kind: EntryFenced, Fenced: &saved})
		if err == nil {
			_, err = w.Write(line)
		}
		if err != nil {
			discardFile(next)
			return
		}
		end += int64(len(line))
	}
	for ref, spans := range l.live {
		for _, s := range spans {
			if _, err := io.Copy(w, io.NewSectionReader(l.f, s.at, s.len)); err != nil {
				discardFile(next)
				return
			}
			live[ref] = append(live[ref], span{end, s.len})
			end += s.len
		}
	}
	if w.Flush() != nil || os.Rename(next.Name(), l.name) != nil {
		discardFile(next)
		return
	}
	_ = l.f.Close()
	l.f, l.end, l.live, l.alive, l.reserved = next, end, live, end, 0
	_ = l.reserveSpace(0) // said again when it matters
}

func discardFile(f *os.File) {
	_ = f.Close()
	_ = os.Remove(f.Name())
}

// Close closes the file.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Close()
}
