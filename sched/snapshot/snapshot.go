// Package snapshot writes the state of a core to a file and reads it again, with
// the steps that it made afterwards, so that a decision of production can be made
// anew anywhere, to the byte.
//
// The form is JSON with a version. A specification is written once for all jobs
// that share it, and only what the core looks at is written: no scripts, commands,
// environments, output files, addresses of mail or comments. Names of jobs, users,
// accounts and nodes are.
package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
)

// Format and Version are in the first fields of every file. Of version 1 the memory of
// growth and of moves had another form.
const (
	Format  = "coxswain-snapshot"
	Version = 2
)

// File is a state and what followed.
type File struct {
	State *sched.Snapshot
	Steps []Step
}

// Step is one call of Core.Step.
type Step struct {
	Now    sched.Instant
	Events []sched.Event
	Out    []byte // the decisions, as Encode writes them; nil: not kept
	Sum    string // SHA-256 of Out, in hex; empty: not kept
}

// file is how a File is written.
type file struct {
	Format  string          `json:"format"`
	Version int             `json:"version"`
	Made    string          `json:"made,omitempty"` // by which cox
	Specs   []job.Spec      `json:"specs"`
	Specced []specced       `json:"specced"` // the state's jobs: queue, then running, as the state has them
	State   *sched.Snapshot `json:"state"`
	Steps   []step          `json:"steps,omitempty"`
	Pools   []string        `json:"pools,omitempty"` // of the state's claims, and then of those of the steps; nil: each node has a name of its own
}

// specced says which specification a job has; -1: none is known.
type specced = int

type step struct {
	Now    sched.Instant   `json:"now"`
	Events []event         `json:"events,omitempty"`
	Out    json.RawMessage `json:"out,omitempty"`
	Sum    string          `json:"sum,omitempty"`
}

// Write writes a file. made says by which program.
func (f *File) Write(w io.Writer, made string) error {
	p := newPool()
	out := file{Format: Format, Version: Version, Made: made}
	state := *f.State
	state.Queue = append([]sched.Waiting(nil), state.Queue...)
	state.Running = append([]sched.Restored(nil), state.Running...)
	for i := range state.Queue {
		out.Specced = append(out.Specced, p.specIndex(state.Queue[i].Spec))
		state.Queue[i].Spec = nil
	}
	for i := range state.Running {
		out.Specced = append(out.Specced, p.specIndex(state.Running[i].Spec))
		state.Running[i].Spec = nil
	}
	out.State = &state
	for _, s := range f.Steps {
		x := step{Now: s.Now, Out: s.Out, Sum: s.Sum}
		for _, e := range s.Events {
			ev, err := p.encodeEvent(e)
			if err != nil {
				return err
			}
			x.Events = append(x.Events, ev)
		}
		out.Steps = append(out.Steps, x)
	}
	out.Specs = p.specs
	if f.sharesNames() {
		f.eachClaim(func(c *fleet.Claim) { out.Pools = append(out.Pools, c.Pool) })
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(&out)
}

// Read reads a file; name is for messages.
func Read(r io.Reader, name string) (*File, error) {
	var head struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, fault.New(fault.Invalid, "read %s: %w", name, err)
	}
	if err := json.Unmarshal(b, &head); err != nil || head.Format != Format {
		return nil, fault.New(fault.Invalid, "%s: this is not a snapshot of cox, or not a whole one", name).Advise("cox snapshot > FILE writes one")
	}
	if head.Version != Version {
		return nil, fault.New(fault.Unsupported, "%s is a snapshot of version %d, this cox reads version %d", name, head.Version, Version).
			Advise("use the cox that wrote it")
	}
	var in file
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, fault.New(fault.Invalid, "%s: %w", name, err).Advise("it was written by another cox, or changed since")
	}
	f, err := in.restoreSpecs()
	if err != nil {
		return nil, fault.New(fault.Invalid, "%s does not add up: %w", name, err).Advise("it was changed since it was written")
	}
	return f, nil
}

// restoreSpecs puts the specifications back to their jobs.
func (in *file) restoreSpecs() (*File, error) {
	s := in.State
	if s == nil || len(in.Specced) != len(s.Queue)+len(s.Running) {
		return nil, errors.New("it has another number of jobs than of specifications for them")
	}
	spec := func(i int) (*job.Spec, error) {
		switch {
		case i == -1:
			return nil, nil
		case i < 0 || i >= len(in.Specs):
			return nil, fmt.Errorf("there is no specification %d", i)
		}
		return &in.Specs[i], nil
	}
	var err error
	for i, k := range in.Specced {
		if i < len(s.Queue) {
			s.Queue[i].Spec, err = spec(k)
		} else {
			s.Running[i-len(s.Queue)].Spec, err = spec(k)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := s.Valid(); err != nil {
		return nil, err
	}
	f := &File{State: s}
	for _, x := range in.Steps {
		st := Step{Now: x.Now, Out: x.Out, Sum: x.Sum}
		for i := range x.Events {
			e, err := x.Events[i].decodeEvent(spec)
			if err != nil {
				return nil, err
			}
			st.Events = append(st.Events, e)
		}
		f.Steps = append(f.Steps, st)
	}
	return f, f.setPools(in.Pools)
}

// sharesNames reports whether a name is that of several nodes.
func (f *File) sharesNames() bool {
	pools := map[string]string{}
	shared := len(f.State.Apart) > 0
	see := func(n *fleet.Node) {
		pool, known := pools[n.Name]
		shared = shared || known && pool != n.Pool
		pools[n.Name] = n.Pool
	}
	for i := range f.State.Nodes {
		see(&f.State.Nodes[i])
	}
	for i := range f.Steps {
		for _, e := range f.Steps[i].Events {
			if n, ok := e.(sched.NodeSet); ok {
				see(&n.Node)
			}
		}
	}
	return shared
}

// eachClaim calls do with each claim of the state and then of the steps.
func (f *File) eachClaim(do func(*fleet.Claim)) {
	all := func(claims []fleet.Claim) {
		for i := range claims {
			do(&claims[i])
		}
	}
	f.State.EachClaims(all)
	for i := range f.Steps {
		for _, e := range f.Steps[i].Events {
			sched.EachClaims(e, all)
		}
	}
}

// setPools says of which pool each claim is. Without pools the name of its node says it.
func (f *File) setPools(pools []string) error {
	if pools == nil {
		return nil
	}
	n := 0
	f.eachClaim(func(c *fleet.Claim) {
		if n < len(pools) {
			c.Pool = pools[n]
		}
		n++
	})
	if n != len(pools) {
		return fmt.Errorf("it has %d claims and the pools of %d", n, len(pools))
	}
	return nil
}
