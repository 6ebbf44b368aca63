package node

import (
	"errors"
	"os"

	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/pmix"
)

// findHelper finds the PMIx helper of this node, and reports why it cannot be started in the
// job's image, if the node is a container of one.
func (p *pmixServer) findHelper() (string, error) {
	helper, err := pmix.FindHelper(p.step.node.cfg.TaskInit[0])
	switch {
	case !p.orders.InImage:
		return helper, err
	case err != nil:
		return "", errors.New("the program speaks PMIx, as Open MPI does, and " + pmix.HelperName + " is not in the agent image of this pool; ask an administrator for the agent image of this release, or start the program with mpirun inside the job")
	}
	return helper, pmix.CheckLoader(helper)
}

// removeLeftovers removes the directory of a helper that could not do so itself, as the user
// whose it is: what a root supervisor removes by name, a user may have put elsewhere.
func (p *pmixServer) removeLeftovers(helper string) {
	if _, err := os.Lstat(p.orders.TempDir); err != nil {
		return
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer null.Close()
	s := p.step
	h := &barrier.Hold{
		Args: []string{helper, pmix.RemoveWord, p.orders.TempDir}, Umask: 0o077, Dir: "/",
		Files: [3]*os.File{null, null, null}, Step: s.prep.Info.Step, Rank: -1, Local: -1,
	}
	held, err := h.Start(s.node.cfg.Spawner, s.node.cfg.TaskInit)
	if held == nil {
		return
	}
	if err == nil && held.Ready() == nil {
		_ = held.Go()
	}
	<-held.Exited
	held.Close()
}
