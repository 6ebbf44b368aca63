package decide

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
)

// Bounds of a service's document, in bytes of its JSON: control takes 4 MiB. What is left beside the
// revisions is for replicas and what is said of them (sortSlots).
const (
	mostSpec      = 1 << 20 // of one specification
	mostRevisions = 3 << 20 // of all together
)

// Submitted is what a submission did.
type Submitted struct {
	Revision uint32 // that is wanted now
	New      bool   // it is a new revision: replicas are replaced
	Changed  bool   // something else than replicas changed: bounds, scale, update, route
}

// Submit applies a specification to the document of a service; nil: there is none yet. The same
// specification again changes nothing. One that concerns no replica changes the revision that is wanted
// and makes no new one. During a rollout the new one starts from what serves.
func Submit(old *service.Document, spec *service.Spec, by, note string, now time.Time) (*service.Document, Submitted, error) {
	if err := checkSpec(spec); err != nil {
		return nil, Submitted{}, err
	}
	if n := len(encode(spec)); n > mostSpec {
		return nil, Submitted{}, fault.New(fault.Invalid, "service %s: its file, script and environment are %s in all, and a service may have %s", spec.Name, byteText(n), byteText(mostSpec)).
			Advise("keep large data in files beside it or in the image")
	}
	if old == nil {
		d := &service.Document{
			Revisions: []service.Revision{{Number: 1, Spec: *spec, At: now, By: by, Note: note}}, Current: 1,
			Rollout: &service.Rollout{To: 1, Phase: service.Rolling, Since: now},
			Want:    firstWant(spec), ScaledAt: now,
		}
		return d, Submitted{Revision: 1, New: true}, nil
	}
	if old.Stopping {
		return nil, Submitted{}, fault.New(fault.Conflict, "service %s is being stopped", spec.Name).Advise("submit it again when it has ended; cox service show %s says what is missing", spec.Name)
	}
	d := copyDocument(old)
	target := d.Target()
	wanted := d.Revision(target)
	same := sameReplica(&wanted.Spec, spec)
	if same && sameRest(&wanted.Spec, spec) {
		return nil, Submitted{Revision: target}, nil
	}
	if b := spec.Replicas; spec.Scale == nil && (b != wanted.Spec.Replicas || wanted.Spec.Scale != nil) {
		if n := min(max(d.Want, b.Min), b.Max); n != d.Want {
			d.ScaledWhy = fmt.Sprintf("%d → %d: the specification of %s", d.Want, n, by)
			d.Want, d.ScaledAt = n, now
		}
	}
	if same {
		wanted.Spec, wanted.At, wanted.By = *spec, now, by
		return &d, Submitted{Revision: target, Changed: true}, dropLarge(&d)
	}
	number := d.Revisions[len(d.Revisions)-1].Number + 1
	d.Revisions = append(d.Revisions, service.Revision{Number: number, Spec: *spec, At: now, By: by, Note: note})
	startRollout(&d, number, now)
	return &d, Submitted{Revision: number, New: true}, dropLarge(&d)
}

// dropLarge forgets the oldest revisions that are not in use, until the rest has room in a document.
func dropLarge(d *service.Document) error {
	sizes, all := map[uint32]int{}, 0
	for i := range d.Revisions {
		n := len(encode(d.Revisions[i]))
		sizes[d.Revisions[i].Number] = n
		all += n
	}
	used := usedRevisions(d)
	d.Revisions = slices.DeleteFunc(d.Revisions, func(r service.Revision) bool {
		if all <= mostRevisions || used[r.Number] {
			return false
		}
		all -= sizes[r.Number]
		return true
	})
	if all > mostRevisions {
		return fault.New(fault.Conflict, "the %d revisions whose replicas live have %s in all, and a service may have %s", len(d.Revisions), byteText(all), byteText(mostRevisions)).
			Advise("submit it again when the update that is under way is over")
	}
	return nil
}

// usedRevisions are the revisions that cannot be forgotten.
func usedRevisions(d *service.Document) map[uint32]bool {
	used := map[uint32]bool{d.Current: true, d.Target(): true}
	if r := d.Rollout; r != nil {
		used[r.From], used[r.To] = true, true
	}
	for _, s := range d.Replicas {
		used[s.Revision] = true
	}
	return used
}

func byteText(n int) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// startRollout leads to a revision from what serves.
func startRollout(d *service.Document, to uint32, now time.Time) {
	from := d.Current
	if r := d.Rollout; !r.Over() {
		from = r.From
		gone := !slices.ContainsFunc(d.Replicas, func(s service.Slot) bool { return s.Revision == r.From })
		if gone && r.Ready > 0 { // the revision before is gone, and the one between serves
			from = d.Target()
		}
	}
	if d.Want == 0 {
		from = 0
	}
	d.Current = from
	if from == 0 {
		d.Current = to
	}
	d.Rollout = &service.Rollout{From: from, To: to, Phase: service.Rolling, Since: now}
}

// firstWant is how many replicas a new service begins with.
func firstWant(s *service.Spec) int {
	if s.Scale != nil && s.Scale.ToZero > 0 {
		return max(s.Replicas.Min, 1)
	}
	return s.Replicas.Min
}

// checkSpec refuses what no service can have.
func checkSpec(s *service.Spec) error {
	b := s.Replicas
	switch {
	case b.Min < 0 || b.Max < b.Min || b.Max > service.MostReplicas:
		return fault.New(fault.Invalid, "replicas: %d to %d are no bounds: the least comes first, and %d is the most", b.Min, b.Max, service.MostReplicas)
	case b.Max == 0 && s.Scale != nil:
		return fault.New(fault.Invalid, "replicas: a service with scale needs a max of at least 1")
	case s.Job.Serve == nil || len(s.Job.Serve.Ports) == 0:
		return fault.New(fault.Invalid, "ports: a service needs a port").Advise("write ports: [http], and have the program listen on $PORT")
	case s.Scale != nil && s.Scale.Target <= 0:
		return fault.New(fault.Invalid, "scale: target must be more than 0")
	}
	last := 0
	for _, share := range s.Update.Canary {
		if share <= last || share >= 100 {
			return fault.New(fault.Invalid, "update: canary steps ascend from 1 to 99 per cent, and %v do not", s.Update.Canary)
		}
		last = share
	}
	return nil
}

// sameReplica reports whether the replicas of two specifications are alike. Where they were submitted
// from, and what was recorded of it, does not count.
func sameReplica(a, b *service.Spec) bool {
	plain := func(s *service.Spec) []byte {
		j := s.Job
		j.Source, j.Provenance, j.Chosen = job.Source{}, nil, nil
		j.Env.Hash, j.Program.ScriptHash = "", ""
		return encode(struct {
			Job    job.Spec
			Script []byte
			Spare  string
		}{j, s.Script, s.SpareQOS})
	}
	return bytes.Equal(plain(a), plain(b))
}

// sameRest reports whether two specifications are alike but for their replicas.
func sameRest(a, b *service.Spec) bool {
	plain := func(s service.Spec) []byte {
		s.Job, s.Script, s.Env, s.Text = job.Spec{}, nil, nil, ""
		return encode(s)
	}
	return bytes.Equal(plain(*a), plain(*b))
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a specification came as JSON
	}
	return b
}

// ScaleTo sets the number of replicas that a person wants.
func ScaleTo(old *service.Document, n int, by string, now time.Time) (*service.Document, error) {
	if err := checkLives(old); err != nil {
		return nil, err
	}
	spec := &old.Revision(old.Target()).Spec
	b := spec.Replicas
	switch {
	case n < 0 || n > service.MostReplicas:
		return nil, fault.New(fault.Invalid, "%d replicas: a service has 0 to %d", n, service.MostReplicas)
	case b.Min != b.Max && (n < b.Min || n > b.Max) && (n != 0 || spec.Scale == nil || spec.Scale.ToZero <= 0):
		return nil, fault.New(fault.Invalid, "%d replicas: the specification allows %d to %d", n, b.Min, b.Max).Advise("change replicas in the file and submit it again")
	case n == old.Want:
		return nil, nil //nolint:nilnil // nothing changes
	}
	d := copyDocument(old)
	d.ScaledWhy = fmt.Sprintf("%d → %d: %s said so", d.Want, n, by)
	d.Want, d.ScaledAt, d.ByHand = n, now, true
	return &d, nil
}

// Pause stops a rollout where it is; nil: it is paused.
func Pause(old *service.Document, now time.Time) (*service.Document, error) {
	return setPhase(old, now, service.Paused, service.Rolling)
}

// Resume lets a rollout go on that was paused, or that failed and was not undone; nil: it runs.
func Resume(old *service.Document, now time.Time) (*service.Document, error) {
	return setPhase(old, now, service.Rolling, service.Paused, service.Halted)
}

func setPhase(old *service.Document, now time.Time, to service.Phase, from ...service.Phase) (*service.Document, error) {
	if err := checkLives(old); err != nil {
		return nil, err
	}
	r := old.Rollout
	switch {
	case r.Over():
		return nil, fault.New(fault.Conflict, "no rollout is under way: revision %d serves", old.Current)
	case r.Phase == to:
		return nil, nil //nolint:nilnil // nothing changes
	case !slices.Contains(from, r.Phase):
		return nil, fault.New(fault.Conflict, "the rollout of revision %d is %s", r.To, r.Phase)
	}
	d := copyDocument(old)
	d.Rollout.Phase, d.Rollout.Since = to, now
	if to == service.Rolling {
		d.Rollout.Why, d.Rollout.Ready = "", 0
		for i := range d.Replicas {
			if s := &d.Replicas[i]; s.Revision == d.Rollout.To {
				s.Failed, s.After = 0, time.Time{}
			}
		}
	}
	return &d, nil
}

// Undo goes back to a revision that is kept; 0: the one before. A rollout that is under way goes back to
// where it came from. Else the old specification is submitted anew, under a new number.
func Undo(old *service.Document, to uint32, by string, now time.Time) (*service.Document, Submitted, error) {
	if err := checkLives(old); err != nil {
		return nil, Submitted{}, err
	}
	target := old.Target()
	r := old.Rollout
	underWay := r != nil && (r.Phase == service.Rolling || r.Phase == service.Paused || r.Phase == service.Halted)
	if underWay && r.From != 0 && (to == 0 || to == r.From) {
		d := copyDocument(old)
		d.Rollout.Phase, d.Rollout.Since, d.Rollout.Ready = service.Undoing, now, 0
		d.Rollout.Why = by + " asked for it"
		return &d, Submitted{Revision: r.From}, nil
	}
	if to == 0 {
		if to = revisionBefore(old, target); to == 0 {
			return nil, Submitted{}, fault.New(fault.Conflict, "there is no revision before %d", target)
		}
	}
	back := old.Revision(to)
	switch {
	case back == nil:
		return nil, Submitted{}, fault.New(fault.NotFound, "there is no revision %d; the service keeps %s", to, listRevisions(old))
	case to == target:
		return nil, Submitted{}, fault.New(fault.Conflict, "revision %d is the one that is wanted already", to)
	}
	spec := back.Spec
	return Submit(old, &spec, by, fmt.Sprintf("undo to revision %d", to), now)
}

// revisionBefore is the revision that served before one; 0: nobody knows.
func revisionBefore(d *service.Document, target uint32) (before uint32) {
	if r := d.Rollout; r != nil && r.Phase == service.Done && r.To == target && r.From != 0 && d.Revision(r.From) != nil {
		return r.From
	}
	for i := range d.Revisions {
		if n := d.Revisions[i].Number; n < target {
			before = n
		}
	}
	return before
}

func listRevisions(d *service.Document) string {
	var numbers []string
	for i := range d.Revisions {
		numbers = append(numbers, strconv.FormatUint(uint64(d.Revisions[i].Number), 10))
	}
	return strings.Join(numbers, ", ")
}

// Stop ends a service; nil: it is being ended.
func Stop(old *service.Document, by string, now time.Time) *service.Document {
	if old.Stopping {
		return nil
	}
	d := copyDocument(old)
	d.Stopping, d.ScaledAt, d.ScaledWhy = true, now, by+" stopped the service"
	return &d
}

func checkLives(d *service.Document) error {
	if d.Stopping {
		return fault.New(fault.Conflict, "the service is being stopped")
	}
	return nil
}
