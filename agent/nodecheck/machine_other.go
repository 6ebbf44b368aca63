//go:build !linux

package nodecheck

import (
	"context"
	"errors"
	"os/exec"
	"time"

	"github.com/coxswain-sched/coxswain/agent/discover/probe"
)

var errNotHere = errors.New("checks of the machine are made on Linux alone")

// setDefaults fills in ways that see nothing.
func (m *Machine) setDefaults() {
	if m.Space == nil {
		m.Space = func(string) (Space, error) { return Space{}, errNotHere }
	}
	if m.Memory == nil {
		m.Memory = func() (MemoryState, error) { return MemoryState{}, errNotHere }
	}
	if m.Clock == nil {
		m.Clock = func() (ClockState, error) { return ClockState{}, errNotHere }
	}
	if m.Mounted == nil {
		m.Mounted = func(string) (bool, error) { return false, errNotHere }
	}
	if m.GPUs == nil {
		m.GPUs = func(context.Context) (probe.Report, error) {
			return probe.Report{Error: &probe.Error{Kind: probe.Unsupported, Text: errNotHere.Error()}}, nil
		}
	}
	if m.Bus == nil {
		m.Bus = func(string) ([]byte, error) { return nil, errNotHere }
	}
	if m.Xids == nil {
		m.Xids = func(time.Time) ([]Xid, error) { return nil, errNotHere }
	}
	if m.Run == nil {
		m.Run = (*exec.Cmd).Run
	}
	if m.Now == nil {
		m.Now = time.Now
	}
}
