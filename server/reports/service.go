package reports

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/report"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/store"
)

// Plane is what reports need of a control plane; *control.Control is one.
type Plane interface {
	Scan(query.Filter, func(*state.View) bool)
	// HistoryInBrief calls f with what reports need of the jobs of the store.
	HistoryInBrief(ctx context.Context, q store.Query, f func(*state.View) bool) error
	Shares(context.Context) (list []query.Standing, tres []string)
	Policy(ctx context.Context, revision uint64) (state.Policy, error)
	NodeViews(context.Context) ([]query.NodeView, error)
	Pools() []pools.View
	Seen(pool string) ([]fleet.Node, bool)
}

// Config has the parts that the route needs. All but Wait are needed.
type Config struct {
	Plane  Plane
	Policy auth.Policy
	Now    func() time.Time
	Wait   time.Duration // how long a report waits for others at most; 0: 20 s
}

// Service makes reports. It is safe for concurrent use.
type Service struct {
	cfg   Config
	turns *turns

	ctx  context.Context // of the goroutine that adds up what is spent
	stop context.CancelFunc
	work sync.WaitGroup

	mu    sync.Mutex
	spent spent
}

// defaultWindow is the length of a window without a beginning.
const defaultWindow = 30 * 24 * time.Hour

// input is a request.
type input struct {
	Kind     string   `path:"kind" enum:"usage,waits,fairness,efficiency,cost"`
	From     string   `query:"from" doc:"RFC 3339: beginning of the window, inclusive; left out: 30 days before its end"`
	To       string   `query:"to" doc:"RFC 3339: end of the window, exclusive; left out: now"`
	By       []string `query:"by" doc:"what rows are by: account, user, qos, pool, service, or several; left out: account"`
	Users    []string `query:"users" doc:"count jobs of these users alone; not for fairness"`
	Accounts []string `query:"accounts" doc:"count jobs of these accounts alone; not for fairness"`
	Format   string   `query:"format" doc:"json, csv, md or html; left out: json"`
}

// Register adds the route to a server. Close ends its goroutine.
func Register(t *transport.Server, cfg Config) *Service {
	s := &Service{cfg: cfg, turns: newTurns(cfg.Wait)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	transport.AddStreamRoute(t, transport.Route{
		Method: http.MethodGet, Path: "/v1/reports/{kind}", Verb: auth.SeeJob, ID: "report", Tag: "reports", Owned: true,
		Answer: transport.TypeOf[report.Report](), Media: []string{mediaCSV, mediaMarkdown, mediaHTML},
		Summary: "Report usage, waits, fairness, efficiency or cost of a time",
		About: "Counts the jobs that the caller may see: where jobs are private, their own. The numbers are those of sacct. html is a page that needs nothing else. " +
			"Each user has one report at a time: another one is answered with 429 and Retry-After if the first takes longer than a moment.",
	}, s.answer)
	return s
}

// Close ends the service's goroutine. The server of the route is closed first.
func (s *Service) Close() {
	s.stop()
	s.work.Wait()
}

// answer makes a report and writes it in the form that is asked for.
func (s *Service) answer(c *transport.Call, in *input) error {
	write, ok := forms[in.Format]
	if !ok {
		return fault.New(fault.Invalid, "format: there is no form %q of a report", in.Format).Advise("write json, csv, md or html")
	}
	q, err := s.queryOf(c, in)
	if err != nil {
		return err
	}
	r, err := s.makeInTurn(c, q)
	if err != nil {
		return err
	}
	media, body, err := write(r)
	if err != nil {
		return err
	}
	h := c.W.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if media == mediaHTML {
		h.Set("Content-Security-Policy", pagePolicy)
	}
	if media == mediaCSV {
		h.Set("Content-Disposition", `attachment; filename="`+string(r.Kind)+`.csv"`)
	}
	c.WriteBody(http.StatusOK, media+"; charset=utf-8", body)
	return nil
}

// question is a report with the jobs that it may count.
type question struct {
	report.Query

	users, accounts []string
	uid             uint32 // with own: the number of the user
	own             bool   // only jobs of the user who asks
	rules           *account.Policy
}

func (s *Service) queryOf(c *transport.Call, in *input) (*question, error) {
	now := s.cfg.Now()
	// As in sacct, the present second counts.
	q := &question{Query: report.Query{Now: now, To: now.Truncate(time.Second).Add(time.Second), Scope: report.ScopeAll}, users: in.Users, accounts: in.Accounts}
	var err error
	if q.Kind, err = report.ParseKind(in.Kind); err != nil {
		return nil, err
	}
	if q.By, err = report.ParseKeys(q.Kind, in.By); err != nil {
		return nil, err
	}
	if in.To != "" {
		if q.To, err = parseTime("to", in.To); err != nil {
			return nil, err
		}
	}
	q.From = q.To.Add(-defaultWindow)
	if in.From != "" {
		if q.From, err = parseTime("from", in.From); err != nil {
			return nil, err
		}
	}
	if !q.From.Before(q.To) {
		return nil, fault.New(fault.Invalid, "from: the window begins at %s and ends at %s, which is not later", q.From.UTC().Format(time.RFC3339), q.To.UTC().Format(time.RFC3339)).
			Advise("let from be earlier than to")
	}
	if q.Kind == report.Fairness && len(q.users)+len(q.accounts) > 0 {
		return nil, fault.New(fault.Invalid, "users: a report of fairness sets everybody's use against their shares").Advise("leave out users and accounts")
	}
	if s.cfg.Policy.Private && !c.ID.Admin {
		q.own, q.uid, q.Scope = true, c.ID.UID, report.ScopeOwn
		q.users = []string{c.ID.Name}
	}
	p, err := s.cfg.Plane.Policy(c.Ctx(), 0)
	if err != nil {
		return nil, err
	}
	if q.rules = p.Rules; q.rules == nil {
		q.rules = &account.Policy{}
	}
	q.Prices = q.rules.Prices
	switch {
	case q.Kind == report.Fairness:
		q.Shares = s.sharesFor(c)
	case q.Kind == report.Efficiency && !q.own && len(q.users)+len(q.accounts) == 0:
		q.Devices = map[string]int{}
		for _, p := range s.cfg.Plane.Pools() {
			q.Devices[p.Name] = p.Devices
		}
	}
	return q, nil
}

func parseTime(name, text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, fault.New(fault.Invalid, "%s: %q is no time", name, text).Advise("write it as 2006-01-02T15:04:05Z")
	}
	return t, nil
}

// sharesFor are the shares that a caller may see: of accounts, and of users whose jobs they may see.
func (s *Service) sharesFor(c *transport.Call) (out []report.Share) {
	list, _ := s.cfg.Plane.Shares(c.Ctx())
	below := make([][]int, len(list))
	for i := range list {
		if p := list[i].Parent; p >= 0 {
			below[p] = append(below[p], i)
		}
	}
	var walk func(i, depth int)
	walk = func(i, depth int) {
		x := &list[i]
		if x.User == "" || !s.cfg.Policy.Private || c.ID.Admin || x.User == c.ID.Name {
			share := report.Share{Account: x.Account, User: x.User, Depth: depth, Raw: int64(x.Shares), Norm: x.Standing.Shares}
			switch x.Shares {
			case 0:
				share.Raw = 1
			case account.NoShares:
				share.Raw = 0
			}
			if x.Parent >= 0 {
				share.Parent = list[x.Parent].Account
			}
			if all := list[0].Raw; all > 0 {
				share.UsedPart = x.Raw / all
			}
			if x.User != "" {
				factor := x.Factor
				share.Factor = &factor
			}
			out = append(out, share)
		}
		slices.SortStableFunc(below[i], func(a, b int) int { // users before accounts
			return boolOrder(list[a].User == "") - boolOrder(list[b].User == "")
		})
		for _, k := range below[i] {
			walk(k, depth+1)
		}
	}
	if len(list) > 0 {
		walk(0, 0)
	}
	return out
}

func boolOrder(b bool) int {
	if b {
		return 1
	}
	return 0
}

// makeInTurn makes a report once it is the caller's turn, which ends with it whatever happens.
func (s *Service) makeInTurn(c *transport.Call, q *question) (*report.Report, error) {
	end, err := s.turns.takeTurn(c)
	if err != nil {
		return nil, err
	}
	defer end()
	return s.makeReport(c.Ctx(), q)
}

// makeReport reads the jobs and counts them.
func (s *Service) makeReport(ctx context.Context, q *question) (*report.Report, error) {
	b := report.NewBuilder(q.Query)
	read := reading{from: q.From, to: q.To, users: q.users, accounts: q.accounts, own: q.own, uid: q.uid}
	var spent *report.Spending
	if q.Kind == report.Cost && !q.own && len(q.users)+len(q.accounts) == 0 {
		spent = report.NewSpending(q.rules, q.To, q.Now)
		if since, ok := spent.Since(); ok && since.Before(read.from) {
			read.from = since
		}
	}
	err := s.readJobs(ctx, &read, q.Kind == report.Cost, func(x *report.Record) {
		b.Add(x)
		if spent != nil {
			spent.Add(x)
		}
	})
	if err != nil {
		return nil, err
	}
	r := b.Report()
	if spent != nil {
		r.Budgets = spent.Budgets()
	}
	return r, nil
}

// reading says which jobs are read: those that lived in a time.
type reading struct {
	from, to        time.Time
	users, accounts []string
	own             bool
	uid             uint32
}

// matches reports whether a job is read. History has looked at most of it already.
func (q *reading) matches(v *state.View) bool {
	j, s := &v.Job, v.Job.Spec
	return (!q.own || s.Owner.UID == q.uid) && (q.own || isAmong(q.users, s.Owner.User)) && isAmong(q.accounts, s.Account) &&
		(j.Ended.IsZero() || !j.Ended.Before(q.from)) && j.Submitted.Before(q.to)
}

func isAmong(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }

// readJobs calls f for each job of a time, once. kinds: records say which kinds of device are held.
func (s *Service) readJobs(ctx context.Context, q *reading, kinds bool, f func(*report.Record)) error {
	rec := recorder{home: pools.DefaultPool(s.cfg.Plane.Pools()), now: s.cfg.Now().Unix()}
	if kinds {
		var err error
		if rec.kinds, err = s.deviceKinds(ctx); err != nil {
			return err
		}
	}
	var inMemory []uint64 // ascending
	s.cfg.Plane.Scan(query.Filter{}, func(v *state.View) bool {
		inMemory = append(inMemory, uint64(v.Job.ID))
		if q.matches(v) {
			f(rec.recordOf(v))
		}
		return ctx.Err() == nil
	})
	err := s.cfg.Plane.HistoryInBrief(ctx, store.Query{Users: q.users, Accounts: q.accounts, From: q.from, To: q.to}, func(v *state.View) bool {
		if _, counted := slices.BinarySearch(inMemory, uint64(v.Job.ID)); !counted && q.matches(v) {
			f(rec.recordOf(v))
		}
		return ctx.Err() == nil
	})
	return errors.Join(err, ctx.Err())
}

// deviceKinds are the kinds of the devices that pools have now.
func (s *Service) deviceKinds(ctx context.Context) (map[fleet.NodeKey]map[int]string, error) {
	out := map[fleet.NodeKey]map[int]string{}
	note := func(n *fleet.Node) {
		if len(n.Devices) == 0 {
			return
		}
		kinds := make(map[int]string, len(n.Devices))
		for i := range n.Devices {
			d := &n.Devices[i]
			if kinds[d.Index] = d.Type; d.Profile != "" {
				kinds[d.Index] += "/" + d.Profile
			}
		}
		kinds[unknownIndex] = kinds[n.Devices[0].Index]
		for _, kind := range kinds {
			if kind != kinds[unknownIndex] {
				delete(kinds, unknownIndex) // of several kinds: which it is, nobody knows
				break
			}
		}
		out[n.Key()] = kinds
	}
	views, err := s.cfg.Plane.NodeViews(ctx)
	if err != nil {
		return nil, err
	}
	for i := range views {
		note(&views[i].Node)
	}
	for _, p := range s.cfg.Plane.Pools() {
		if nodes, ok := s.cfg.Plane.Seen(p.Name); ok {
			for i := range nodes {
				note(&nodes[i])
			}
		}
	}
	return out, nil
}
