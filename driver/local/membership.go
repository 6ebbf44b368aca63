package local

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// An elastic gang has a file that says who is in it (COX_GANG_FILE): written before its
// barrier is opened, and anew by Regroup. Everybody may read it, nobody but the server
// writes it, and it goes with the attempt when that is forgotten. What is added to a gang
// is an attempt of its own, whose tasks find the gang's file.

var _ engine.Regrouper = (*Engine)(nil)

// gangRef is the attempt whose file a launch's tasks read.
func gangRef(l *attempt.Launch) engine.Ref {
	if l.Adds != nil {
		return l.Adds.To
	}
	return l.Ref
}

// Regroup writes who is in a running gang.
func (e *Engine) Regroup(ctx context.Context, ref engine.Ref, r engine.Roster) error {
	return e.askGang(ctx, ref, func(g *gang) error {
		if g.decided != attempt.EntryGo || g.launch.Job == nil || !g.launch.Job.Spec.Elastic() {
			return fault.New(fault.Conflict, "attempt %s is no elastic gang that runs", ref)
		}
		return e.writeRoster(ref, r)
	})
}

// writeRoster puts a roster in the place of an older one, whole or not at all.
func (e *Engine) writeRoster(ref engine.Ref, r engine.Roster) error {
	name := attempt.GangFile(e.cfg.Root, ref)
	if old, err := os.ReadFile(name); err == nil {
		var was engine.Roster
		if json.Unmarshal(old, &was) == nil && was.Generation > r.Generation {
			return nil
		}
	}
	r.Members = slices.Clone(r.Members)
	for i := range r.Members {
		m := &r.Members[i]
		if k := slices.IndexFunc(e.cfg.Nodes, func(n fleet.Node) bool { return n.Name == m.Node }); k >= 0 {
			m.Address = e.cfg.Nodes[k].Address
		}
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	next := name + ".new"
	if err := os.WriteFile(next, append(text, '\n'), 0o644); err != nil {
		return fault.New(fault.Unavailable, "say who is in gang %s: %w", ref, err)
	}
	if err := errors.Join(os.Chmod(next, 0o644), os.Rename(next, name)); err != nil {
		return fault.New(fault.Unavailable, "say who is in gang %s: %w", ref, err)
	}
	return nil
}

// firstRoster is who is in a gang when its barrier is opened.
func firstRoster(l *attempt.Launch) engine.Roster {
	r := engine.Roster{Job: l.Job.ID}
	rank := 0
	for i := range l.Claims {
		c := &l.Claims[i]
		r.Members = append(r.Members, engine.Member{Node: c.Node, Group: c.Group, Rank: rank, Tasks: c.Tasks})
		rank += c.Tasks
	}
	return r
}

// writeFirstRoster writes the first roster of an elastic gang.
func (g *gang) writeFirstRoster() error {
	if l := g.launch; l.Adds == nil && l.Job.Spec.Elastic() {
		return g.e.writeRoster(l.Ref, firstRoster(l))
	}
	return nil
}

// removeRoster removes the file of a gang that is forgotten.
func (e *Engine) removeRoster(ref engine.Ref) {
	if err := os.Remove(attempt.GangFile(e.cfg.Root, ref)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		e.cfg.Log.Warn("remove the file of a gang", "attempt", ref, "err", err)
	}
}
