package control

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store"
)

// Restored is the state that a start would find, as text, from the projection and
// the journal after it or from the journal alone. What is not in the journal is left
// out: reports of what runs, and since when a job is eligible.
func Restored(ctx context.Context, st store.Store, journalAlone bool) (string, error) {
	if journalAlone {
		st = bare{st}
	}
	s := state.New()
	if _, err := s.Restore(ctx, st, time.Now(), -1); err != nil {
		return "", err
	}
	if err := s.Check(); err != nil {
		return "", state.DamagedError(fmt.Errorf("the journal does not add up: %w", err)) // as Open says it
	}
	var b strings.Builder
	for _, e := range s.Order {
		row := e.ProjectRow()
		var d state.RowDetail
		if err := d.DecodeDetail(&row); err != nil {
			return "", err
		}
		d.Eligible = 0
		if d.Last != nil && e.State.Holds() {
			d.Last.Report = nil
		}
		fmt.Fprintf(&b, "%s\n", d.EncodeDetail())
	}
	for _, a := range s.Ledger.Live() {
		fmt.Fprintf(&b, "%s\n", state.MustJSON(a))
	}
	on := make([]string, 0, len(s.Depend.On))
	for id, list := range s.Depend.On {
		slices.Sort(list)
		on = append(on, fmt.Sprint(id, "<-", list))
	}
	slices.Sort(on)
	for _, m := range s.Owners.Machines() {
		fmt.Fprintf(&b, "%s\n", state.MustJSON(s.Owners.Of(m)))
	}
	fmt.Fprintf(&b, "%s\n%s\n%s\n", on, s.EncodeDoc(), state.MustJSON(s.Policies.CurrentPolicy()))
	return b.String(), nil
}

// bare is a store without a projection.
type bare struct{ store.Store }

func (bare) Projected(context.Context) (uint64, error) { return 0, nil }

func (bare) Live(context.Context, func(store.JobRow) error) error { return nil }

func (bare) History(context.Context, store.Query, func(store.JobRow) error) error { return nil }

func (bare) Job(context.Context, uint64) (store.JobRow, error) {
	return store.JobRow{}, fault.New(fault.NotFound, "no row")
}

// RefuseStarts makes the ledger refuse whatever the core proposes for a node, by
// letting it know less of the node than the core does.
func (c *Control) RefuseStarts(ctx context.Context, node string) error {
	return c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
		k, err := l.state.Nodes.Named(node)
		if err != nil {
			answer(err)
			return
		}
		n, _ := l.state.Nodes.Get(k)
		n.Devices = nil
		l.state.Ledger.SetNode(n)
		answer(nil)
	})
}

// NodeIs has the engine's word that a node is in another state.
func (c *Control) NodeIs(ctx context.Context, node string, state fleet.NodeState) error {
	return c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
		k, err := l.state.Nodes.Named(node)
		if err != nil {
			answer(err)
			return
		}
		n, _ := l.state.Nodes.Get(k)
		n.State = state
		l.state.Nodes.Set(k, n)
		l.tellNode(k)
		answer(nil)
	})
}

// ProjectOf writes the rows of one store's journal to another store, as a projection
// that reflects the journal up to a record; without docs, as one that was not written
// to its end.
func ProjectOf(ctx context.Context, from, to store.Store, upTo uint64, docs bool) error {
	s := state.New()
	if _, err := s.Restore(ctx, from, time.Now(), -1); err != nil {
		return err
	}
	epoch, err := to.Lead(ctx, "projector")
	if err != nil {
		return err
	}
	var world map[string][]byte
	if docs {
		_, _, world, _ = s.TakeUnprojected()
	}
	return to.Project(ctx, epoch, upTo, s.MakeRows(s.Order), world)
}

// Kinds lists the kinds of record.
func Kinds() []string { return slices.Sorted(maps.Keys(state.Appliers)) }

// CutDetail takes the detail of a row apart: the form, and all else as an object.
func CutDetail(b []byte) (spec, rest []byte) {
	var d state.RowDetail
	spec, rest, err := d.SplitDetail(b)
	if err != nil {
		panic(err)
	}
	return spec, rest
}

// JoinDetail undoes CutDetail, also for what is no object.
func JoinDetail(spec, rest []byte) []byte {
	b := fmt.Appendf(nil, "%s%d%s%s,", state.DetailForm, len(spec), state.DetailSpec, spec)
	return append(b, bytes.TrimPrefix(rest, []byte("{"))...)
}

// ShowRow is the view of a row that is not in memory.
func ShowRow(r *store.JobRow) error { _, err := state.ViewOfRow(r); return err }

// Compare asks the engines for all that they have, as a loop does every so often.
func (c *Control) Compare(ctx context.Context) error {
	return c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
		l.compareEngines()
		l.refuseWhenLeading(answer, nil)
	})
}

// RunTime is how long a job is taken to run, by those that ended.
func (c *Control) RunTime(name string, spec *job.Spec, elapsed time.Duration) time.Duration {
	return c.state.Estimates.RunTime(name, spec, elapsed)
}
