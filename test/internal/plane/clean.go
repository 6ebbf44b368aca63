package plane

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/cgroup"
	"github.com/coxswain-sched/coxswain/api"
)

// cleanUp ends everything that the test began: in order as far as that goes, then by
// force.
func (p *Plane) cleanUp() {
	if p.stop != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		now := 0.0
		_, _ = p.Client.Change(ctx, &api.Change{Verb: api.VerbCancel, Select: api.Select{All: true}, Grace: &now})
		cancel()
	}
	p.Stop()
	p.Client.Close()
	p.log.Close()
	for range 200 { // what is killed may have started something
		pids := p.Left()
		if len(pids) == 0 {
			break
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL) // it may have ended
		}
		time.Sleep(5 * time.Millisecond)
	}
	if pids := p.Left(); len(pids) > 0 {
		p.T.Errorf("processes %v are left and resist", pids)
	}
	base, _ := cgroup.Find()
	for _, name := range base.Names(attempt.GroupPrefix(filepath.Join(p.State, "engine"))) {
		if err := base.Group(name).Remove(); err != nil {
			p.T.Errorf("a control group is left: %v", err)
		}
	}
}

// Left lists the live processes that belong to the plane: those whose command line or
// environment names its directory, but for this one.
func (p *Plane) Left() (pids []int) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	p.failOn(err)
	for _, d := range dirs {
		pid, err := strconv.Atoi(filepath.Base(d))
		if err != nil || pid == os.Getpid() || !p.isOwnProcess(d) {
			continue
		}
		pids = append(pids, pid)
	}
	return pids
}

func (p *Plane) isOwnProcess(dir string) bool {
	for _, file := range []string{"/cmdline", "/environ"} {
		if b, err := os.ReadFile(dir + file); err == nil && bytes.Contains(b, []byte(p.Dir)) {
			return true
		}
	}
	return false
}
