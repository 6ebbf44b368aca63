package control

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/store"
)

// Restored is the state that a start would find, as text, from the projection and
// the journal after it or from the journal alone. What is not in the journal is left
// out: reports of what runs, and since when a job is eligible.
func Restored(ctx context.Context, st store.Store, journalAlone bool) (string, error) {
	if journalAlone {
		st = bare{st}
	}
	s := newState()
	if _, err := s.restoreFrom(ctx, st, time.Now(), -1); err != nil {
		return "", err
	}
	if err := s.checkInvariants(); err != nil {
		return "", damagedError(fmt.Errorf("the journal does not add up: %w", err)) // as Open says it
	}
	var b strings.Builder
	for _, e := range s.order {
		row := e.projectRow()
		var d rowDetail
		if err := d.decodeDetail(&row); err != nil {
			return "", err
		}
		d.Eligible = 0
		if d.Last != nil && e.state.Holds() {
			d.Last.Report = nil
		}
		fmt.Fprintf(&b, "%s\n", d.encodeDetail())
	}
	for _, a := range s.ledger.Live() {
		fmt.Fprintf(&b, "%s\n", mustJSON(a))
	}
	on := make([]string, 0, len(s.depend.on))
	for id, list := range s.depend.on {
		slices.Sort(list)
		on = append(on, fmt.Sprint(id, "<-", list))
	}
	slices.Sort(on)
	fmt.Fprintf(&b, "%s\n%s\n%s\n", on, s.encodeDoc(), mustJSON(s.policies.currentPolicy()))
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
		k, err := l.state.nodes.Named(node)
		if err != nil {
			answer(err)
			return
		}
		n, _ := l.state.nodes.Get(k)
		n.Devices = nil
		l.state.ledger.SetNode(n)
		answer(nil)
	})
}

// NodeIs has the engine's word that a node is in another state.
func (c *Control) NodeIs(ctx context.Context, node string, state fleet.NodeState) error {
	return c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
		k, err := l.state.nodes.Named(node)
		if err != nil {
			answer(err)
			return
		}
		n, _ := l.state.nodes.Get(k)
		n.State = state
		l.state.nodes.Set(k, n)
		l.tellNode(k)
		answer(nil)
	})
}

// ProjectOf writes the rows of one store's journal to another store, as a projection
// that reflects the journal up to a record; without docs, as one that was not written
// to its end.
func ProjectOf(ctx context.Context, from, to store.Store, upTo uint64, docs bool) error {
	s := newState()
	if _, err := s.restoreFrom(ctx, from, time.Now(), -1); err != nil {
		return err
	}
	epoch, err := to.Lead(ctx, "projector")
	if err != nil {
		return err
	}
	var world map[string][]byte
	if docs {
		_, _, world, _ = s.takeUnprojected()
	}
	return to.Project(ctx, epoch, upTo, s.makeRows(s.order), world)
}

// Kinds lists the kinds of record.
func Kinds() []string { return slices.Sorted(maps.Keys(appliers)) }

// CutDetail takes the detail of a row apart: the form, and all else as an object.
func CutDetail(b []byte) (spec, rest []byte) {
	var d rowDetail
	spec, rest, err := d.splitDetail(b)
	if err != nil {
		panic(err)
	}
	return spec, rest
}

// JoinDetail undoes CutDetail, also for what is no object.
func JoinDetail(spec, rest []byte) []byte {
	b := fmt.Appendf(nil, "%s%d%s%s,", detailForm, len(spec), detailSpec, spec)
	return append(b, bytes.TrimPrefix(rest, []byte("{"))...)
}

// ShowRow is the view of a row that is not in memory.
func ShowRow(r *store.JobRow) error { _, err := fromRow(r); return err }

// Compare asks the engines for all that they have, as a loop does every so often.
func (c *Control) Compare(ctx context.Context) error {
	return c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
		l.compareEngines()
		l.refuseWhenLeading(answer, nil)
	})
}
