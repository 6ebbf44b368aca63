// Package model is what the simulation judges the control plane by: an account of
// its own of what may be true, kept from facts.
//
// A fact is something that was seen from outside: a record became durable, the
// engine's world began or ended work on a node, a request was answered, a leader
// published what it knows. The model is told of every fact in the order in which
// they happened and answers the promises that the fact breaks. It shares types with
// the product (a job's specification, a claim, a record of the journal), but no
// logic: how a job goes from state to state, what a node can carry, what is a proof
// are written here a second time, and shorter.
//
// The promises are those of the architecture: 1 whole or not at all; 2 one ledger,
// fenced by attempt, freed on proof, nothing runs twice; 3 one leader writes and a
// node that is drained or down gets no new work; 4 the same state and the same events
// give the same decisions; 5 nothing is lost and everything that waits says why. See
// Promise for what stands under each.
//
// The model does not judge order or placement beyond what fits, and it does not know
// how long anything should take: whoever tells it facts says when a run is settled.
package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
)

// Promise is one of the five promises of the design.
type Promise int

// The promises, and the rules (Violation.Rule) under each.
const (
	Whole   Promise = iota + 1 // gang, undone
	Ledger                     // capacity, journal-first, unproved, twice, stale, books
	Owner                      // fenced, drained, both, open
	Replay                     // restart, decisions
	Account                    // reason, final, durable, transition, quota, limit, licence, kept, preempt, usage
)

// String names the promise as the architecture does.
func (p Promise) String() string {
	names := [...]string{"no promise", "whole or not at all", "one ledger, freed on proof", "one owner", "the same again", "nothing lost, every wait has its reason"}
	if int(p) < len(names) {
		return fmt.Sprintf("promise %d (%s)", int(p), names[p])
	}
	return fmt.Sprintf("promise %d", int(p))
}

// Violation is a promise that a fact broke.
type Violation struct {
	Promise Promise
	Rule    string // which rule of the promise, one word
	Text    string // one sentence about jobs, attempts and nodes
}

// String is the promise, the rule and the sentence.
func (v Violation) String() string { return fmt.Sprintf("%s, %s: %s", v.Promise, v.Rule, v.Text) }

// Model is the account. It is not safe for concurrent use.
type Model struct {
	now    time.Time
	nodes  map[string]*node
	jobs   map[job.ID]*work
	order  []*work // as they were submitted
	sights uint64
	arrays map[job.ID]*array
	claims map[engine.Ref]*attempt // every attempt that was ever seen
	live   []*attempt              // whose allocation the journal holds, or of which something lives

	seq     uint64 // of the last durable record
	epoch   uint64 // of the newest leader
	leaders map[uint64]*leader
	asked   map[int]*question
	named   map[string]job.ID // of submissions

	controllers map[string]document
	documents   []string // all that there ever were
	services    map[string][]*service.Document

	rules   *account.Policy // of the site; nil: none
	ruling  string          // the document that says so
	rulings []string        // all that ever did
	used    usage
	jumped  bool // the clock was set

	found []Violation
	seen  map[string]int
}

// Seen counts what the journal says has happened that few runs have.
func (m *Model) Seen() map[string]int { return m.seen }

func (m *Model) countSeen(what string) { m.seen[what]++ }

// New returns a model that was told nothing.
func New() *Model {
	return &Model{
		nodes: map[string]*node{}, jobs: map[job.ID]*work{}, arrays: map[job.ID]*array{}, claims: map[engine.Ref]*attempt{},
		leaders: map[uint64]*leader{}, asked: map[int]*question{}, named: map[string]job.ID{}, controllers: map[string]document{}, services: map[string][]*service.Document{}, seen: map[string]int{},
	}
}

// Tell notes a fact and returns the promises that it breaks; nil is good.
func (m *Model) Tell(f Fact) []Violation {
	m.found = nil
	f.tellModel(m)
	return m.found
}

// addBroken notes a violation.
func (m *Model) addBroken(p Promise, rule, format string, args ...any) {
	m.found = append(m.found, Violation{p, rule, fmt.Sprintf(format, args...)})
}

func joinNames(list []string) string {
	if len(list) == 0 {
		return "nothing"
	}
	list = slices.Compact(slices.Sorted(slices.Values(list)))
	return strings.Join(list, ", ")
}
