package admin

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/policy"
	"github.com/coxswain-sched/coxswain/server/transport"
)

// Reservations in advance stand in the site's rules. These routes change that part of
// the document and leave the rest of it as it is.

// ReservationPath names one.
type ReservationPath struct {
	Name string `path:"name"`
}

func (s *service) registerReservations() {
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/reservations", Verb: auth.SeePolicy, ID: "listReservations", Tag: "policy",
		Summary: "List the reservations in advance",
	}, func(c *call, _ *transport.Nothing) (*api.Reservations, error) { return c.listReservations() })
	example := &api.SetReservation{Reservation: api.Reservation{Name: "power", Start: "2026-12-01T08:00:00Z", Duration: 14400}}
	addRoute(s, transport.Route{
		Method: http.MethodPost, Path: "/v1/reservations", Verb: auth.SetPolicy, ID: "newReservation", Tag: "policy", Body: transport.TypeOf[api.SetReservation](), Status: http.StatusCreated, Example: example,
		Summary: "Make a reservation", About: "With count, that many nodes are chosen. Refused where jobs run on its nodes beyond its beginning, with their numbers, unless ignore_jobs is said, and where another reservation has a node of it.",
	}, func(c *call, _ *transport.Nothing) (*api.ReservationDone, error) { return c.setReservation("") })
	addRoute(s, transport.Route{
		Method: http.MethodPut, Path: "/v1/reservations/{name}", Verb: auth.SetPolicy, ID: "setReservation", Tag: "policy", Body: transport.TypeOf[api.SetReservation](), Example: example,
		Summary: "Change a reservation", About: "All of it is replaced. What is refused is as when one is made; jobs that run in it are in nobody's way.",
	}, func(c *call, in *ReservationPath) (*api.ReservationDone, error) { return c.setReservation(in.Name) })
	addRoute(s, transport.Route{
		Method: http.MethodDelete, Path: "/v1/reservations/{name}", Verb: auth.SetPolicy, ID: "deleteReservation", Tag: "policy",
		Summary: "End a reservation", About: "What runs in it goes on; what waits for it goes on waiting, and says so.",
	}, func(c *call, in *ReservationPath) (*api.ReservationDone, error) { return c.removeReservation(in.Name) })
}

func (c *call) listReservations() (*api.Reservations, error) {
	now, err := c.s.cfg.Plane.Policy(c.Ctx(), 0)
	if err != nil {
		return nil, err
	}
	out := &api.Reservations{Revision: now.Revision, Reservations: []api.Reservation{}}
	views, _ := c.s.cfg.Plane.NodeViews(c.Ctx()) // without them there are no counts
	for i := range now.Rules.Reservations {
		out.Reservations = append(out.Reservations, shownReservation(&now.Rules.Reservations[i], views))
	}
	return out, nil
}

// shownReservation is a reservation as the API shows it, with counts of the nodes in views.
func shownReservation(r *account.Reservation, views []query.NodeView) api.Reservation {
	out := api.Reservation{
		Name: r.Name, Note: r.Note, Nodes: r.Nodes, Start: r.Start, Duration: time.Duration(r.Duration).Seconds(), Every: r.Every,
		Ahead: time.Duration(r.Ahead).Seconds(), Accounts: r.Accounts, Users: r.Users, Flex: r.Flex, Overlap: r.Overlap, Ignore: r.Ignore,
	}
	now := time.Now()
	if w, ok := r.Window(); ok {
		if begin, end, ok := w.Next(now.UnixNano()); ok {
			from, until := time.Unix(0, begin).UTC(), time.Unix(0, end).UTC()
			out.From, out.Until, out.Active = &from, &until, !from.After(now)
		}
	}
	for i := range views {
		if n := &views[i].Node; len(r.Nodes) == 0 || slices.ContainsFunc(r.Nodes, n.Is) {
			out.Count++
			out.CPUs += int64(n.Capacity.CPU) / 1000
		}
	}
	return out
}

// setReservation makes a reservation, or changes the one of that name.
func (c *call) setReservation(name string) (*api.ReservationDone, error) {
	req, err := transport.DecodeBody[api.SetReservation](c.Call)
	if err != nil {
		return nil, err
	}
	if err := checkReservation(req); err != nil {
		return nil, err
	}
	now, err := c.s.cfg.Plane.Policy(c.Ctx(), 0)
	if err != nil {
		return nil, err
	}
	list := slices.Clone(now.Rules.Reservations)
	at := slices.IndexFunc(list, func(r account.Reservation) bool { return r.Name == cmp.Or(name, req.Name) })
	switch {
	case name != "" && at < 0:
		return nil, noReservation(name)
	case name == "" && at >= 0:
		return nil, fault.New(fault.Conflict, "there is a reservation %s already", req.Name).Advise("change it (cox reserve update), or choose another name")
	case name == "":
		at = len(list)
		list = append(list, account.Reservation{Name: cmp.Or(req.Name, freeName(list, &req.Reservation))})
	}
	r := reservationOf(&req.Reservation, list[at].Name)
	if err := c.namesOneEach(r.Nodes); err != nil {
		return nil, err
	}
	ask := &query.ReserveAsk{Reservation: r, Count: req.Count, Partition: req.Partition, Features: req.Features}
	nodes, way, late := c.s.cfg.Plane.Reservable(c.Ctx(), ask)
	if req.Count > 0 {
		if nodes == nil {
			return nil, c.tooFew(req, way)
		}
		r.Nodes = nodes
	} else if err := c.inTheWay(&r, way); err != nil {
		return nil, err
	}
	list[at] = r
	views, _ := c.s.cfg.Plane.NodeViews(c.Ctx())
	out := &api.ReservationDone{Reservation: shownReservation(&r, views), Late: c.belatedJobs(late)}
	verb := "reservation "
	if name != "" {
		verb = "change reservation "
	}
	return out, c.setReservations(out, &now, list, verb+r.Name, req.Base, req.DryRun)
}

// namesOneEach refuses a bare name that nodes of several pools have. Names of no node may be
// those of nodes to come.
func (c *call) namesOneEach(names []string) error {
	if len(names) == 0 {
		return nil
	}
	views, _ := c.s.cfg.Plane.NodeViews(c.Ctx())
	known := fleet.NewByNode[bool]()
	for i := range views {
		known.Set(views[i].Node.Key(), true)
	}
	for _, name := range names {
		if _, err := known.Named(name); fault.KindOf(err) == fault.Invalid {
			return err
		}
	}
	return nil
}

// checkReservation finds numbers that mean nothing: without it a negative count would be none, and
// the reservation one of all nodes.
func checkReservation(req *api.SetReservation) error {
	const most = account.LongestReservation / account.Duration(time.Second)
	wrong := func(field, remedy, format string, args ...any) error {
		return fault.New(fault.Invalid, "%s: %s", field, fmt.Sprintf(format, args...)).Advise("%s", remedy)
	}
	switch {
	case req.Count < 0:
		return wrong("count", "write 1 or more; leave it out for all nodes, or for those in nodes", "%d is not a number of nodes", req.Count)
	case req.Count > 0 && len(req.Nodes) > 0:
		return wrong("count", "name the nodes, or say how many", "the nodes are named already")
	case req.Duration == 0:
		return fault.New(fault.Invalid, "a reservation needs a duration: how long it lasts").Advise("for example: --duration 2h")
	case !(req.Duration > 0) || req.Duration > float64(most):
		return wrong("duration", "write more than 0 seconds and at most 50 years", "a reservation cannot last %g seconds", req.Duration)
	case !(req.Ahead >= 0) || req.Ahead > float64(most):
		return wrong("ahead", "write 0 seconds or more and at most 50 years", "a reservation cannot begin %g seconds ahead", req.Ahead)
	case req.Ahead == 0 && req.Start == "":
		return fault.New(fault.Invalid, "a reservation needs a start").Advise("for example: --start now, --start 20:00 or --start 2026-12-01T08:00")
	case req.Ahead == 0:
		if _, err := time.Parse(time.RFC3339, req.Start); err != nil {
			return wrong("start", "write it as 2026-12-01T08:00:00Z", "%q is not a time", transport.WithoutTokens(req.Start))
		}
	}
	return nil
}

func (c *call) removeReservation(name string) (*api.ReservationDone, error) {
	now, err := c.s.cfg.Plane.Policy(c.Ctx(), 0)
	if err != nil {
		return nil, err
	}
	list := slices.Clone(now.Rules.Reservations)
	at := slices.IndexFunc(list, func(r account.Reservation) bool { return r.Name == name })
	if at < 0 {
		return nil, noReservation(name)
	}
	views, _ := c.s.cfg.Plane.NodeViews(c.Ctx())
	out := &api.ReservationDone{Reservation: shownReservation(&list[at], views)}
	return out, c.setReservations(out, &now, slices.Delete(list, at, at+1), "no reservation "+name, nil, false)
}

func noReservation(name string) error {
	return fault.New(fault.NotFound, "there is no reservation %s", transport.WithoutTokens(name)).Advise("cox reserve list shows them")
}

// setReservations puts the document with other reservations in force. It is the one
// that was looked at: another one in force meanwhile is a conflict.
func (c *call) setReservations(out *api.ReservationDone, now *state.Policy, list []account.Reservation, note string, base *uint64, dry bool) error {
	text, file := policy.WithReservations(now.Text, list), cmp.Or(now.File, "queues.yaml")
	rules, err := policy.Parse(file, []byte(text))
	if err != nil {
		return err
	}
	if base == nil {
		base = &now.Revision
	}
	out.Warnings, out.Revision = c.s.cfg.Rules.Beside(rules), now.Revision
	if dry && *base == now.Revision {
		return nil
	}
	v, err := c.s.cfg.Plane.SetPolicy(c.Ctx(), c.ID.Actor(), control.PolicyChange{Rules: rules, Text: text, File: now.File, Note: note, Base: base})
	out.Revision = v.Revision
	return err
}

func reservationOf(r *api.Reservation, name string) account.Reservation {
	span := func(seconds float64) account.Duration { return account.Duration(seconds * float64(time.Second)) }
	return account.Reservation{
		Name: name, Note: r.Note, Nodes: r.Nodes, Start: r.Start, Duration: span(r.Duration), Every: r.Every, Ahead: span(r.Ahead),
		Accounts: r.Accounts, Users: r.Users, Flex: r.Flex, Overlap: r.Overlap, Ignore: r.Ignore,
	}
}

// freeName is the name of a reservation that is given none: its first user or account,
// and a number, as Slurm makes it.
func freeName(list []account.Reservation, r *api.Reservation) string {
	whose := "maintenance"
	if all := slices.Concat(r.Users, r.Accounts); len(all) > 0 {
		whose = all[0]
	}
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s_%d", whose, n)
		if !slices.ContainsFunc(list, func(o account.Reservation) bool { return o.Name == name }) {
			return name
		}
	}
}

// inTheWay refuses a reservation on nodes that jobs have beyond its beginning.
// Reservations that have them are named where the document is read.
func (c *call) inTheWay(r *account.Reservation, way []query.Obstacle) error {
	var told []string
	for i := range way {
		if way[i].Job != 0 {
			told = append(told, c.obstacleText(&way[i]))
		}
	}
	if len(told) == 0 {
		return nil
	}
	return fault.New(fault.Conflict, "reservation %s: %s", r.Name, firstFew(told)).
		Advise("choose other nodes or a later start, say how many nodes and let them be chosen, or say ignore_jobs: what runs there goes on")
}

func (c *call) tooFew(req *api.SetReservation, way []query.Obstacle) error {
	var told []string
	for i := range way {
		told = append(told, c.obstacleText(&way[i]))
	}
	e := fault.New(fault.Conflict, "there are not %d nodes that are free all that time", req.Count)
	if len(told) > 0 {
		e = fault.New(fault.Conflict, "there are not %d nodes that are free all that time: %s", req.Count, firstFew(told))
	}
	return e.Advise("ask for fewer nodes or a later start, or say ignore_jobs: what runs there goes on")
}

// obstacleText is what keeps a node, in words. A job that the caller may not see has no number.
func (c *call) obstacleText(o *query.Obstacle) string {
	switch {
	case o.Reservation != "":
		return fmt.Sprintf("%s is reserved by %s", o.Node, o.Reservation)
	case o.Job == 0:
		return o.Node + " is not up"
	}
	who, until := "a job", "without a time limit"
	if v, err := c.s.cfg.Plane.Job(c.Ctx(), o.Job); err == nil && c.MaySee(&v) {
		who = fmt.Sprintf("job %s of %s", v.Job.Name(), v.Job.Spec.Owner.User)
	}
	if o.Until != 0 {
		until = "until " + time.Unix(0, int64(o.Until)).UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s runs on %s %s", who, o.Node, until)
}

// obstaclesShown bounds what is listed in one sentence.
const obstaclesShown = 5

func firstFew(list []string) string {
	if n := len(list) - obstaclesShown; n > 0 {
		return strings.Join(list[:obstaclesShown], "; ") + fmt.Sprintf("; and %d more", n)
	}
	return strings.Join(list, "; ")
}

// belatedJobs are the jobs whose promised start is not kept, as far as the caller may see them.
func (c *call) belatedJobs(late []query.Promised) (out []api.Belated) {
	for _, p := range late {
		v, err := c.s.cfg.Plane.Job(c.Ctx(), p.Job)
		if err != nil || !c.MaySee(&v) {
			continue
		}
		b := api.Belated{Job: v.Job.Name(), User: v.Job.Spec.Owner.User}
		if p.At != 0 {
			at := time.Unix(0, int64(p.At)).UTC()
			b.Start = &at
		}
		out = append(out, b)
	}
	return out
}

// reservationEffects says of a document what its new reservations meet, and refuses it
// where that are jobs.
func (c *call) reservationEffects(old, next *account.Policy) (effects []string, err error) {
	for i := range next.Reservations {
		r := &next.Reservations[i]
		if slices.ContainsFunc(old.Reservations, func(o account.Reservation) bool { return sameSpan(&o, r) }) {
			continue
		}
		_, way, late := c.s.cfg.Plane.Reservable(c.Ctx(), &query.ReserveAsk{Reservation: *r})
		if err := c.inTheWay(r, way); err != nil {
			return nil, err
		}
		for _, b := range c.belatedJobs(late) {
			effects = append(effects, fmt.Sprintf("job %s of %s may start later than it was promised: reservation %s has nodes of it then", b.Job, b.User, r.Name))
		}
	}
	return effects, nil
}

// sameSpan reports whether a reservation has the nodes and times that it had.
func sameSpan(o, r *account.Reservation) bool {
	return o.Name == r.Name && slices.Equal(o.Nodes, r.Nodes) && o.Start == r.Start && o.Duration == r.Duration && o.Every == r.Every && o.Ahead == r.Ahead
}
