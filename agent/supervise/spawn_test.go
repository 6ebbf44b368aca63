package supervise

import (
	"testing"

	"golang.org/x/sys/unix"
)

// noCPU is one that a set holds and no machine of the tests has.
const noCPU = 1023

// TestCPUsThatCannotBeSet: on which CPUs a process runs is a favour: where the kernel refuses
// a set, attempts begin, and programs of the site are started, all the same.
//
// Seen to fail with: begin that returns after the first error, aside that returns the error.
func TestCPUsThatCannotBeSet(t *testing.T) {
	s := &spawner{work: make(chan func())}
	s.umask = unix.Umask(0)
	unix.Umask(s.umask)
	go s.spawnThread()
	t.Cleanup(func() { close(s.work) })
	var was, none unix.CPUSet
	none.Set(noCPU)
	on := func() (now unix.CPUSet) {
		t.Helper()
		if err := s.onThread(func() error { return unix.SchedGetaffinity(0, &now) }); err != nil {
			t.Fatal(err)
		}
		return now
	}
	if was = on(); was.IsSet(noCPU) {
		t.Skip("there is such a CPU")
	}
	first := 0
	for !was.IsSet(first) {
		first++
	}
	if _, err := s.beginAttempt("m", nil, 0o77, []int{first}); err != nil {
		t.Fatal(err)
	}
	one := on()
	if one.Count() != 1 || !one.IsSet(first) {
		t.Fatalf("it runs on %v", one)
	}
	s.any.Set(noCPU)
	if who, err := s.beginAttempt("m", nil, 0o27, []int{noCPU}); err == nil || who == nil {
		t.Errorf("begin: %v, %v", who, err)
	}
	if now := on(); now != was {
		t.Errorf("an attempt that cannot be bound runs where the one before it did: %v", now)
	}
	// The site's programs: any CPU cannot be set, then the job's own cannot be set again.
	for _, x := range []struct {
		name      string
		any, cpus unix.CPUSet
		now, left unix.CPUSet // aside, and what is said to be set afterwards
	}{
		{"any cannot be set", none, one, was, one},
		{"the job's cannot be set again", was, none, was, was},
	} {
		if err := s.onThread(func() error {
			s.any, s.cpus = x.any, x.cpus
			back, err := s.asService()
			if err != nil {
				return err
			}
			var now unix.CPUSet
			if err := unix.SchedGetaffinity(0, &now); err != nil {
				return err
			}
			mask := unix.Umask(0o22)
			back()
			if after := unix.Umask(0o27); now != x.now || mask != s.umask|0o22 || after != 0o27 || s.cpus != x.left {
				t.Errorf("%s: aside on %v with mask %o, then mask %o and CPUs %v", x.name, now, mask, after, s.cpus)
			}
			return nil
		}); err != nil {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

// TestMoreCPUsThanASetHolds: nothing is known of the CPUs, so nothing is bound.
func TestMoreCPUsThanASetHolds(t *testing.T) {
	s := &spawner{}
	if err := s.bindCPUs([]int{0, 1}); err != nil || s.cpus != s.any {
		t.Errorf("%v, %v", s.cpus, err)
	}
}
