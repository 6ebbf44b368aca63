package devicelock

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// Set is devices that are held.
type Set struct{ locks []*Lock }

// Release gives all of them up.
func (s *Set) Release() {
	if s == nil {
		return
	}
	for _, k := range s.locks {
		k.Release()
	}
	s.locks = nil
}

// handover is how long TakeAll waits for devices whose owner has just died: a process that the owner
// was about to start holds its files until it has become its program.
const handover = 500 * time.Millisecond

// TakeAll locks the devices that can be locked. Beside the Set it returns an error of Take for each
// device that it could not lock.
func (l *Locker) TakeAll(devices []fleet.Device) (*Set, []error) {
	for from := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		s, errs := l.tryAll(devices)
		if !slices.ContainsFunc(errs, isHandedOver) || time.Since(from) > handover {
			return s, errs
		}
		s.Release()
	}
}

// isHandedOver reports whether a device may become free without anybody's doing.
func isHandedOver(err error) bool {
	var h *HeldError
	return errors.As(err, &h) && h.Owner.Identity != "" && !h.Owner.Lives()
}

func (l *Locker) tryAll(devices []fleet.Device) (*Set, []error) {
	s := &Set{}
	var errs []error
	for i := range devices {
		if !Lockable(&devices[i]) {
			continue
		}
		k, err := l.Take(&devices[i])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.locks = append(s.locks, k)
	}
	return s, errs
}

// JoinAll locks devices that another process of the owner may hold, as far as it can.
func (l *Locker) JoinAll(devices []fleet.Device) (*Set, error) {
	s := &Set{}
	var errs []error
	for i := range devices {
		k, err := l.Join(&devices[i])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.locks = append(s.locks, k)
	}
	return s, errors.Join(errs...)
}

// Refusal is one error of errors of TakeAll: it names the devices by who holds them. It has no
// remedy, which depends on who asks.
func Refusal(errs []error) *fault.Error {
	var order []string
	by := map[string][]string{}
	for _, err := range errs {
		who, what := "", err.Error()
		if h := new(HeldError); errors.As(err, &h) {
			who, what = h.By, deviceName(&h.Device)
		}
		if by[who] == nil {
			order = append(order, who)
		}
		by[who] = append(by[who], what)
	}
	kind := fault.Unavailable
	var parts []string
	for _, who := range order {
		text := strings.Join(by[who], "; ")
		if who != "" {
			kind = fault.Conflict
			verb := "is"
			if len(by[who]) > 1 {
				verb = "are"
			}
			text = fmt.Sprintf("%s %s held by %s", strings.Join(by[who], ", "), verb, who)
		}
		parts = append(parts, text)
	}
	return fault.New(kind, "%s", strings.Join(parts, "; "))
}
