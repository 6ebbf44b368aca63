package simulate

import (
	"fmt"
	"time"
)

// Fault is a kind of thing that goes wrong.
type Fault int

// The faults.
const (
	// Of calls of the engine and their answers.
	CallLost Fault = iota
	CallLate
	CallDoubled
	CallRefused
	CallFull
	AnswerLost
	AnswerLate
	AnswerWrong
	ListShort
	// Of reports.
	ReportsLost
	ReportLate
	ReportDoubled
	ReportsReordered
	ReportStale
	ReportOldAttempt
	ReportStrange
	ReportWrongJob
	// Of the engine and its nodes.
	EngineRestart
	EngineDown
	EngineAmnesia
	NodeLost
	NodeSilent
	NodeGone
	LaunchFails
	WorkResists
	// Of the store.
	DiskError
	DiskErrorAfter
	DiskFull
	DiskSlow
	BlobFails
	ProjectFails
	ProjectFailsAfter
	OpenFails
	ReadFails
	// Of the server.
	CrashBefore
	CrashAfter
	CrashAnywhere
	Followed
	FollowedAnywhere
	ClockForward
	ClockBack
	Slow
	ClientGone
	// Of what services ask of control, and of the engine's news of their endpoints. Only worlds with
	// services have them.
	PlaneCallDoubled
	PlaneAnswerLost
	PlaneAnswerLate
	NewsLost
	NewsLate
	NewsDoubled
	Faults // how many there are
)

// kinds has of each fault its name and how often it happens where it can, in
// thousandths.
var kinds = [Faults]struct {
	name string
	rate float64
}{
	CallLost:         {"a call never arrives", 15},
	CallLate:         {"a call arrives after its caller gave up", 10},
	CallDoubled:      {"a call arrives twice", 15},
	CallRefused:      {"the engine refuses a launch", 10},
	CallFull:         {"the engine has no room for a launch", 10},
	AnswerLost:       {"an answer never arrives", 15},
	AnswerLate:       {"an answer takes long", 10},
	AnswerWrong:      {"an answer is an error although the call was heard", 6},
	ListShort:        {"a list lacks what is there", 40},
	ReportsLost:      {"the watch breaks and reports are lost", 10},
	ReportLate:       {"a report takes long", 15},
	ReportDoubled:    {"a report comes twice", 20},
	ReportsReordered: {"a report overtakes another", 20},
	ReportStale:      {"an old report comes again", 12},
	ReportOldAttempt: {"a report of an earlier attempt comes again", 40},
	ReportStrange:    {"a report names an attempt that nobody knows", 6},
	ReportWrongJob:   {"a report names another job", 8},

	EngineRestart: {"the engine starts again", 0},
	EngineDown:    {"the engine is away for long", 0},
	EngineAmnesia: {"the engine starts again and remembers nothing", 0},
	NodeLost:      {"a node is lost", 0},
	NodeSilent:    {"a node falls silent and comes back with its work", 0},
	NodeGone:      {"a node leaves the engine's list", 0},
	LaunchFails:   {"a node cannot be made ready", 30},
	WorkResists:   {"work does not end when it is told to", 40},

	DiskError:         {"a write fails before it is durable", 6},
	DiskErrorAfter:    {"a write fails after it was durable", 6},
	DiskFull:          {"the disk is full", 4},
	DiskSlow:          {"a write takes long", 6},
	BlobFails:         {"a script cannot be written", 20},
	ProjectFails:      {"the projection cannot be written", 12},
	ProjectFailsAfter: {"the projection is written and it is said that it was not", 12},
	OpenFails:         {"a server cannot take the lead", 50},
	ReadFails:         {"the journal cannot be read", 60},

	CrashBefore:      {"a server is killed before a write", 4},
	CrashAfter:       {"a server is killed after a write", 4},
	CrashAnywhere:    {"a server is killed", 0},
	Followed:         {"a server is followed in the middle of a write", 4},
	FollowedAnywhere: {"a server is followed", 0},
	ClockForward:     {"the clock jumps forward", 0},
	ClockBack:        {"the clock jumps back", 0},
	Slow:             {"everything is slow", 0},
	ClientGone:       {"a client gives up", 20},

	PlaneCallDoubled: {"a request of services is made twice", 20},
	PlaneAnswerLost:  {"an answer to services never arrives", 20},
	PlaneAnswerLate:  {"an answer to services takes long", 15},
	NewsLost:         {"the watch of endpoints breaks", 15},
	NewsLate:         {"news of endpoints take long", 20},
	NewsDoubled:      {"news of endpoints come twice", 20},
}

// OfServices reports whether only worlds with services have a fault.
func (f Fault) OfServices() bool { return f >= PlaneCallDoubled }

// String says what happens.
func (f Fault) String() string { return kinds[f].name }

// drawFaultProfile gives a run faults of its own: some kinds often, some not at all.
func (w *World) drawFaultProfile() {
	for f := range Faults {
		w.rates[f] = kinds[f].rate
		switch r := w.dice.rollBits("rate", fmt.Sprint(int(f))) % 8; {
		case w.opt.Calm, r == 0:
			w.rates[f] = 0
		case r == 1:
			w.rates[f] *= 4
		}
	}
}

// faultAt reports whether a fault happens at a gate, and counts it.
func (w *World) faultAt(f Fault, key string) bool {
	return !w.calm && w.rates[f] > 0 && w.dice.happensOnce(f.String(), key, w.rates[f]) && w.injectFault(f, key)
}

// injectFault counts a fault that happens, unless it may not.
func (w *World) injectFault(f Fault, key string) bool {
	name := f.String() + " at: " + key
	if !w.isAllowed(name) {
		return false
	}
	w.out.Faults[f]++
	w.out.Done = append(w.out.Done, name)
	w.addStory("*** %s", f)
	return true
}

// drawLatency is how long something takes on its way: mostly next to nothing, sometimes
// longer than anybody expects.
func (w *World) drawLatency(key string) time.Duration {
	s := w.dice.streamFor("latency", key)
	var d time.Duration
	switch r := s.intBelow(100); {
	case r < 70:
		d = s.durationBetween(10*time.Microsecond, 3*time.Millisecond)
	case r < 92:
		d = s.durationBetween(3*time.Millisecond, 80*time.Millisecond)
	case r < 99:
		d = s.durationBetween(80*time.Millisecond, 2*time.Second)
	default:
		d = s.durationBetween(2*time.Second, 10*time.Second)
	}
	if w.slow > 1 {
		d *= w.slow
	}
	return d
}
