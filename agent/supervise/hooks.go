package supervise

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// hooks is how far the prolog and epilog of an attempt are.
type hooks struct {
	exited <-chan barrier.Exit // of the one that runs; nil: none does
	name   string              // of it: "prolog" or "epilog"
	pid    int
	words  *os.File // what it says
	late   bool     // it was killed at its time limit

	begun bool // the prolog was started, so the epilog is due
	done  bool // the epilog has ended
}

// startProlog starts the program that goes before the job. The node is ready when it
// has ended well.
func (s *supervisor) startProlog() error {
	s.hooks.begun = true
	if s.launch.Hooks.Prolog == "" {
		return nil
	}
	return s.startHook("prolog", s.launch.Hooks.Prolog)
}

// epilogEnded reports whether the program that goes after the job has ended, and starts
// it if it has not.
func (s *supervisor) epilogEnded() bool {
	h := &s.hooks
	if h.exited != nil {
		return false
	}
	if h.done || !h.begun || s.launch.Hooks.Epilog == "" {
		return true
	}
	h.done = true
	if err := s.startHook("epilog", s.launch.Hooks.Epilog); err != nil {
		s.recordFact(attempt.Record{Kind: attempt.KindNote, Text: err.Error()})
		return true
	}
	s.due.kill = time.Time{}
	return false
}

func (s *supervisor) startHook(name, path string) error {
	words, err := os.OpenFile(filepath.Join(s.Dir, name+".log"), os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return errors.Join(err, words.Close())
	}
	defer null.Close()
	h := &s.hooks
	h.pid, h.exited, err = s.spawner.spawnProcess(startRequest{path: path, args: []string{path}, env: s.hookEnv(name), dir: "/", files: []*os.File{null, words, words}, site: true})
	if err != nil {
		_ = words.Close()
		return fmt.Errorf("the %s on %s: %w", name, s.node.Name, err)
	}
	h.name, h.words, h.late = name, words, false
	if s.launch.Hooks.Timeout > 0 {
		s.due.hook = time.Now().Add(s.launch.Hooks.Timeout)
	}
	return nil
}

// hookEnv is what a hook learns of the job.
func (s *supervisor) hookEnv(name string) []string {
	l := s.launch
	spec := l.Job.Spec
	env := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"SLURM_SCRIPT_CONTEXT=" + name + "_slurmd",
		"SLURM_JOB_ID=" + l.Job.ID.String(), "SLURM_JOBID=" + l.Job.ID.String(),
		"SLURM_JOB_NAME=" + jobName(spec),
		"SLURM_JOB_USER=" + spec.Owner.User,
		fmt.Sprintf("SLURM_JOB_UID=%d", spec.Owner.UID), fmt.Sprintf("SLURM_JOB_GID=%d", spec.Owner.GID),
		"SLURM_JOB_ACCOUNT=" + spec.Account, "SLURM_JOB_WORK_DIR=" + spec.WorkDir,
		"SLURMD_NODENAME=" + s.node.Name,
		fmt.Sprintf("SLURM_RESTART_COUNT=%d", l.Ref.Attempt-1),
		"SLURM_JOB_NODELIST=" + nodeList(l), "SLURM_NODELIST=" + nodeList(l),
	}
	if len(spec.Partitions) > 0 {
		env = append(env, "SLURM_JOB_PARTITION="+spec.Partitions[0])
	}
	if s.state.Exit != nil {
		env = append(env, fmt.Sprintf("SLURM_JOB_EXIT_CODE2=%d:%d", s.state.Exit.Status, s.state.Exit.Signal))
	}
	return env
}

// hookEnded goes on after a hook.
func (s *supervisor) hookEnded(e barrier.Exit) {
	h := &s.hooks
	h.exited = nil
	s.due.hook = time.Time{}
	err := h.hookFailure(e, s.node.Name, s.launch.Hooks.Timeout)
	_ = h.words.Close()
	switch {
	case h.name == "epilog" && err != nil:
		s.recordFact(attempt.Record{Kind: attempt.KindNote, Text: err.Error()})
	case h.name == "epilog" || s.state.Phase >= engine.Ending:
	case err != nil:
		s.recordFact(attempt.Record{Kind: attempt.KindRefuse, Text: err.Error()})
		s.recordFact(attempt.Record{Kind: attempt.KindEnding, Cause: engine.LaunchFailed})
	default:
		s.makeReady()
	}
	if s.state.Phase >= engine.Ending && !s.noProcessLeft() {
		s.due.kill = time.Now() // what a hook leaves behind goes
	}
}

// hookFailure is why a hook has failed, with its last words; nil if it has not.
func (h *hooks) hookFailure(e barrier.Exit, node string, limit time.Duration) error {
	how := ""
	switch {
	case h.late:
		how = "was ended after " + slurmfmt.FormatTimeLimit(limit)
		if limit%time.Second != 0 {
			how = "was ended after " + limit.String()
		}
	case e.Signal != 0:
		how = fmt.Sprintf("was ended by signal %d", e.Signal)
	case e.Status != 0:
		how = fmt.Sprintf("failed with exit code %d", e.Status)
	default:
		return nil
	}
	text := fmt.Sprintf("the %s on %s %s", h.name, node, how)
	if last := lastWords(h.words); last != "" {
		text += ": " + last
	}
	return errors.New(text)
}

// lastWords are the last lines of a file, in one.
func lastWords(f *os.File) string { return lastLines(f, 1<<10) }

// lastLines is the end of a file, of so many bytes at most, in one line.
func lastLines(f *os.File, most int64) string {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	b := make([]byte, min(size, most))
	if _, err := f.ReadAt(b, size-int64(len(b))); err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(b), "?")), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}

// hookLate ends a hook at its time limit, with everything that it started in its
// session.
func (s *supervisor) hookLate() {
	s.hooks.late = true
	_ = unix.Kill(-s.hooks.pid, unix.SIGKILL) // it may have ended meanwhile
}
