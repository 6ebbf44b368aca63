package slurm_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// follow hears of the ends in a pool, from one driver after the other, until the test ends.
func (s *storm) follow(t *testing.T, p *pool) {
	for t.Context().Err() == nil {
		_ = p.engine().Watch(t.Context(), "", func(ev engine.Event) error {
			if ev.Report.Gone {
				s.judge(t, ev.Report)
			}
			return t.Context().Err()
		}) // it is closed, and another one opens
		time.Sleep(5 * time.Millisecond)
	}
}

// judge looks at the end of an attempt, at the moment in which it is reported.
func (s *storm) judge(t *testing.T, r engine.Report) {
	i := int(r.Ref.Allocation)
	s.mu.Lock()
	before, ended := s.ends[i]
	s.mu.Unlock()
	if ended {
		if before.Cause != r.Cause || before.Exit != r.Exit || !before.Ended.Equal(r.Ended) {
			t.Errorf("%s ended twice: as %s, %s, and as %s, %s", r.Ref, before.Cause, before.Exit, r.Cause, r.Exit)
		}
		return
	}
	p := s.plan(i)
	if n := processes(t, cmp.Or(s.way.mark, p.pool.root+"/locks"), r.Ref); n != 0 {
		t.Errorf("%s is said to be gone, and %d processes of it live: %q", r.Ref, n, r.Message)
	}
	times := len(s.lines("ran", i))
	bySlurm := r.Cause == engine.Cancelled && strings.HasSuffix(r.Message, "by uid 0") // as slurmd has it done; unlike asks accounting
	switch {
	case times > 1:
		t.Errorf("%s ran %d times", r.Ref, times)
	case times == 1 && bySlurm:
	case p.long && (r.Cause == engine.Stopped || r.Cause == engine.NodeLost || r.Cause == engine.Unready && times == 0):
	case p.long:
		t.Errorf("%s was to be stopped, ran %d times, and ended as %s, %s, %q", r.Ref, times, r.Cause, r.Exit, r.Message)
	case times == 1 && (r.Cause != engine.Exited || r.Exit.Status != 3) && r.Cause != engine.NodeLost:
		t.Errorf("%s ran and ended as %s, %s, %q", r.Ref, r.Cause, r.Exit, r.Message)
	case times == 0 && s.way.mark != "" && strings.Contains(r.Message, "put the job back"): // what nodes do not show to have never begun counts as begun
	case times == 0 && r.Cause != engine.Unready:
		t.Errorf("%s did not run and ended as %s, %s, %q", r.Ref, r.Cause, r.Exit, r.Message)
	}
	if r.Cause != engine.Exited && !p.long {
		t.Logf("%s: %s, ran %d times: %s", r.Ref, r.Cause, times, r.Message)
	}
	s.whole(t, &p, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends[i] = r
	delete(s.left, r.Ref)
}

// settle waits for the ends of all.
func (s *storm) settle(t *testing.T) {
	open := func() (n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.left)
	}
	began, told := time.Now(), time.Now()
	for deadline := began.Add(8 * time.Minute); open() > 0 && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		// slurmctld hears only at its next registration, some minutes later, of a job that a
		// slurmd which was killed has never begun.
		if time.Since(told) > 25*time.Second {
			for _, n := range s.lab.Nodes {
				s.lab.Kill(t, "slurmd."+n)
				s.lab.Begin(t, "slurmd."+n)
			}
			told = time.Now()
		}
	}
	ends := map[engine.Cause]int{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.ends {
		ends[r.Cause]++
	}
	t.Logf("%d jobs, ends: %v, the last %s after the storm", len(s.jobs), ends, time.Since(began).Round(time.Second))
	for ref := range s.left {
		r, err := s.jobs[ref.Allocation-1].pool.engine().Inspect(t.Context(), ref)
		t.Errorf("%s has not ended: %s, uncertain %t, %q, %v", ref, r.Phase, r.Uncertain, r.Message, err)
	}
}

// agree waits until no job of an engine's lives in Slurm that has ended for it: slurmctld
// finds some again that were lost.
func agree(t *testing.T, l *lab.Lab) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		live := l.Run(t, "squeue", "-h", "-t", "PD,R,S,CF", "-o", "%i %T %r %k")
		if !strings.Contains(live, "cox:") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("these live in Slurm, and have ended here:\n%s", live)
		}
	}
}

// compare holds the ends here against accounting's, which comes later.
func (s *storm) compare(t *testing.T) {
	var wrong []string
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(500 * time.Millisecond) {
		records := map[string][]string{} // by the name of a job
		for line := range strings.Lines(s.lab.Run(t, "sacct", "-n", "-X", "-P", "-D", "-a", "-S", "now-1days", "-o", "JobName,JobIDRaw,State,ExitCode")) {
			name, rest, _ := strings.Cut(strings.TrimSpace(line), "|")
			records[name] = append(records[name], rest)
		}
		if wrong = s.unlike(records); len(wrong) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("accounting says otherwise:\n%s", strings.Join(wrong, "\n"))
		}
	}
}

// unlike are the jobs of which Slurm's accounting, or what ran, says what cannot be true if our
// ledger is.
func (s *storm) unlike(records map[string][]string) (wrong []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range s.ends {
		all := strings.Join(records[fmt.Sprintf("storm-%d", i)], " ")
		failed := strings.Contains(all, "|FAILED|3:0")
		bad := len(s.lines("ran", i)) > 1
		switch {
		case bad:
		case r.Cause == engine.Cancelled:
			bad = !strings.Contains(all, "|CANCELLED")
		case r.Cause == engine.Unready:
			bad = len(s.lines("ran", i)) > 0 // whatever Slurm says: it takes the end of an earlier job for that of a later one to which it gave the same number
		case s.jobs[i-1].long:
			bad = failed // it never ended by itself
		case r.Cause == engine.Exited: // Slurm has the end, or has lost the job, or that it ran
			bad = !failed && strings.Contains(all, "|COMPLETED|")
		}
		if bad {
			wrong = append(wrong, fmt.Sprintf("%s: %s, %s, %q; Slurm: %s", r.Ref, r.Cause, r.Exit, r.Message, all))
		}
	}
	return wrong
}
