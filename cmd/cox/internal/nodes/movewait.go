package nodes

import (
	"context"
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// lookAtMoves is how often hand-overs are looked at while somebody waits for them.
const lookAtMoves = time.Second

// moveWait follows hand-overs.
type moveWait struct {
	a     *cli.App
	quiet bool                         // print no steps
	told  map[string]string            // machine → what was last said of it
	left  map[string]*api.MovedMachine // by machine: hand-overs that have not ended
	back  int                          // hand-overs that were walked back
}

// waitForMoves follows hand-overs until all have ended, and says each step. Those that are walked back are the error,
// unless that was asked for.
func waitForMoves(ctx context.Context, a *cli.App, c *client.Client, list []api.MovedMachine, quiet, abort bool) error {
	w := &moveWait{a: a, quiet: quiet, told: map[string]string{}, left: map[string]*api.MovedMachine{}}
	for i := range list {
		if list[i].Error == nil && list[i].Epoch != 0 {
			w.left[list[i].Machine] = &list[i]
		}
	}
	all := len(w.left)
	for {
		machines, err := c.Machines(ctx)
		if err != nil {
			return err
		}
		for i := range machines.Machines {
			w.note(&machines.Machines[i])
		}
		if len(w.left) == 0 {
			break
		}
		select {
		case <-time.After(lookAtMoves):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if w.back > 0 && !abort {
		return fault.New(fault.Conflict, "%d of %d hand-overs were walked back", w.back, all).Advise("cox machines says why")
	}
	return nil
}

// note says what is new of a machine.
func (w *moveWait) note(m *api.Machine) {
	asked := w.left[m.Name]
	if asked == nil {
		return
	}
	text := fmt.Sprintf("step %s is done", m.Step)
	if m.Evidence != "" {
		text += ": " + m.Evidence
	}
	switch ended := m.Epoch > asked.Epoch || m.To == ""; {
	case ended && m.Pool == asked.To:
		text = "belongs to pool " + m.Pool
	case ended:
		w.back++
		text = "stays in pool " + m.Pool + ": " + m.Evidence
	case m.Waits != "":
		text = "waits for " + m.Waits
	}
	if m.Epoch > asked.Epoch || m.To == "" {
		delete(w.left, m.Name)
	}
	if w.told[m.Name] != text && !w.quiet {
		fmt.Fprintf(w.a.Out, "%s: %s\n", m.Name, text)
	}
	w.told[m.Name] = text
}
