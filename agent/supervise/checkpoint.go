package supervise

import (
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
)

// checkpointPoll is the time between two looks for the file by which a job reports that it
// has saved something. A watch of the kernel's would be told sooner, and of nothing on a
// file system that other machines write to.
const checkpointPoll = time.Second

// seenCheckpoint is the file that was looked at last.
type seenCheckpoint struct {
	seen attempt.Stamp
	bad  string // what was said of one that cannot be read
}

// reportCheckpoint reports a checkpoint if the job has put another file in the place of the last
// one. Only the head node looks: the directory is one for all.
func (s *supervisor) reportCheckpoint() {
	dir := s.launch.Checkpoint
	if dir == "" || !s.isHead() || s.state.Started.IsZero() {
		return
	}
	var d attempt.Done
	err := s.user.runAsUser(func() (err error) {
		d, err = attempt.ReadDone(dir)
		return err
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, unix.EINTR):
	case err != nil:
		if text := err.Error(); text != s.done.bad {
			s.done.bad = text
			s.log.Warn("a checkpoint is not noted", "err", err)
			s.recordFact(attempt.Record{Kind: attempt.KindNote, Text: "its checkpoint is not noted: " + text})
		}
	case d.Stamp == s.done.seen || d.Stamp == s.launch.Done: // the latter: of an earlier attempt
	default:
		s.done.seen, s.done.bad = d.Stamp, ""
		if now := time.Now().Round(0); d.Saved.At.After(now) || d.Saved.At.Before(s.state.Started) {
			d.Saved.At = now // its time was set by hand, or kept from another file
		}
		s.recordFact(attempt.Record{Kind: attempt.KindSaved, Saved: &d.Saved})
	}
}
