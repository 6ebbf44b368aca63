package load

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// patience ends a test that hangs; nothing is expected to take a part of it.
const patience = 3 * time.Minute

// crew are the clients.
type crew struct {
	t     *testing.T
	admin *client.Client
	users []*client.Client
	watch *watchers

	mu       sync.Mutex
	took     map[string][]time.Duration
	mine     [][]string          // names of the jobs of each user, the newest last
	accepted map[job.ID]struct{} // every number that was given out
	drained  map[string]bool
	failed   int

	guests sync.WaitGroup // who stays for a while
}

// remembered is how many jobs of a user are asked about.
const remembered = 300

// enlist makes the clients: the administrator by the socket, the users by tokens.
func enlist(t *testing.T, socket, tcp string) *crew {
	c := &crew{t: t, took: map[string][]time.Duration{}, mine: make([][]string, userCount), accepted: map[job.ID]struct{}{}, drained: map[string]bool{}}
	var err error
	if c.admin, err = client.New(client.Options{Socket: socket, Timeout: patience}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.admin.Close)
	for i := range userCount {
		made, err := c.admin.NewToken(t.Context(), &api.NewToken{User: userName(i)})
		if err != nil {
			t.Fatal(err)
		}
		u, err := client.New(client.Options{URL: "http://" + tcp, Token: made.Secret, Timeout: patience})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(u.Close)
		c.users = append(c.users, u)
	}
	return c
}

// timed runs one request and notes how long it took and whether it went wrong. That a
// job is in no state for it, or is no longer known, is part of the day.
func (c *crew) timed(verb string, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	from := time.Now()
	err := do(ctx)
	past := time.Since(from)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took[verb] = append(c.took[verb], past)
	if k := fault.KindOf(err); err != nil && k != fault.Conflict && k != fault.NotFound {
		if c.failed++; c.failed <= 20 {
			c.t.Errorf("%s: %v", verb, err)
		}
	}
	return err
}

// do carries out an operation.
func (c *crew) do(o *op) {
	r := rand.New(rand.NewPCG(o.draw, 1))
	switch o.verb {
	case "submit", "array", "gang":
		c.submit(o, o.verb, o.text)
	case "chain":
		if id := c.submit(o, "submit", o.text); id != 0 {
			c.submit(o, "submit", o.more, fmt.Sprintf("--dependency=afterany:%d", id))
		}
	case "cancel-all":
		_ = c.timed("cancel-all", func(ctx context.Context) error {
			_, err := c.admin.Change(ctx, &api.Change{Verb: api.VerbCancel, Select: api.Select{All: true}})
			return err
		})
	case "drain":
		c.drain(r)
	case "cancel", "hold", "update", "requeue", "signal":
		c.change(o, r)
	case "watch", "wait", "follow":
		c.guests.Go(func() { c.stay(o, r) })
	default:
		c.look(o, r)
	}
}

func (c *crew) submit(o *op, verb, text string, args ...string) job.ID {
	var got *api.Submitted
	err := c.timed(verb, func(ctx context.Context) (err error) {
		got, err = c.users[o.user].Submit(ctx, &api.Submit{Form: api.FormSbatch, File: "job.sh", Text: text, Args: args, Environ: environ(o), Dir: "/home/" + userName(o.user)})
		return err
	})
	if err != nil {
		c.t.Errorf("not submitted: %v", err)
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range max(got.Tasks, 1) {
		c.accepted[got.ID+job.ID(i)] = struct{}{}
	}
	list := append(c.mine[o.user], got.ID.String())
	c.mine[o.user] = list[max(0, len(list)-remembered):]
	return got.ID
}

// pick names one of a user's jobs, mostly a young one; empty: he has none.
func (c *crew) pick(user int, r *rand.Rand) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.mine[user]
	if len(list) == 0 {
		return ""
	}
	back := int(float64(len(list)) * r.Float64() * r.Float64() * r.Float64())
	return list[len(list)-1-back]
}

func (c *crew) change(o *op, r *rand.Rand) {
	name := c.pick(o.user, r)
	if name == "" {
		return
	}
	ch := api.Change{Verb: o.verb, Select: api.Select{IDs: []string{name}}}
	switch o.verb {
	case "update":
		comment, limit := fmt.Sprintf("looked at %x", o.draw), 600.0+float64(r.IntN(3600))
		ch.Update = &api.Update{Comment: &comment}
		if r.IntN(2) == 0 {
			ch.Update.TimeLimit = &limit
		}
	case "signal":
		ch.Signal = "USR1"
	}
	who := c.users[o.user]
	if o.verb == "requeue" {
		who = c.admin
	}
	_ = c.timed(o.verb, func(ctx context.Context) error {
		_, err := who.Change(ctx, &ch)
		return err
	})
	if o.verb == "hold" && r.IntN(10) > 0 { // the others stay held until the shift ends
		_ = c.timed("release", func(ctx context.Context) error {
			_, err := who.Change(ctx, &api.Change{Verb: api.VerbRelease, Select: ch.Select})
			return err
		})
	}
}

// drain takes a node away, or gives the last one back.
func (c *crew) drain(r *rand.Rand) {
	name := fmt.Sprintf("n%02d", 1+r.IntN(nodeCount))
	c.mu.Lock()
	back := c.drained
	c.drained = map[string]bool{}
	if len(back) == 0 {
		c.drained[name] = true
	}
	c.mu.Unlock()
	ch := api.NodeChange{Verb: "drain", Nodes: []string{name}, Reason: "fan 3"}
	for n := range back {
		ch = api.NodeChange{Verb: "resume", Nodes: []string{n}}
	}
	_ = c.timed("drain", func(ctx context.Context) error {
		_, err := c.admin.ChangeNodes(ctx, &ch)
		return err
	})
}

// look asks and changes nothing but tokens.
func (c *crew) look(o *op, r *rand.Rand) {
	who, name := c.users[o.user], c.pick(o.user, r)
	if r.IntN(20) == 0 {
		who = c.admin
	}
	if name == "" && slices.Contains([]string{"job", "why", "logs", "script"}, o.verb) {
		return
	}
	_ = c.timed(o.verb, func(ctx context.Context) error {
		switch o.verb {
		case "list":
			return c.list(ctx, who, o, r)
		case "columns":
			return readAll(who.JobsTSV(ctx, client.Query{}, "id", "name", "user", "state", "reason", "node_list"))
		case "job":
			_, err := who.Job(ctx, name)
			return err
		case "why":
			_, err := who.Why(ctx, name)
			return err
		case "logs":
			return readAll(c.users[o.user].Logs(ctx, name, client.LogOptions{Tail: r.IntN(30)}))
		case "script":
			_, err := c.users[o.user].Script(ctx, name)
			return err
		case "history":
			_, err := who.HistoryPage(ctx, client.HistoryQuery{Limit: 50, Select: api.Select{Users: []string{userName(o.user)}}})
			return err
		case "nodes":
			_, err := who.Nodes(ctx)
			return err
		case "estimate":
			_, err := who.Submit(ctx, &api.Submit{Form: api.FormSbatch, File: "job.sh", Text: o.text, Dir: "/home", TestOnly: true})
			return err
		case "metrics":
			return c.metrics(ctx)
		case "audit":
			_, err := c.admin.Audit(ctx, 0, 100)
			return err
		case "token":
			made, err := who.NewToken(ctx, &api.NewToken{TTL: 60})
			if err == nil {
				err = who.RevokeToken(ctx, made.Token.ID)
			}
			return err
		}
		return fmt.Errorf("the trace has a verb %q that nobody knows", o.verb)
	})
}

// list walks over the jobs of one user, or over everybody's page by page.
func (c *crew) list(ctx context.Context, who *client.Client, o *op, r *rand.Rand) error {
	q := client.Query{Select: api.Select{Users: []string{userName(o.user)}, States: []string{"all"}}}
	if r.IntN(4) == 0 {
		q = client.Query{Limit: 100, Collapse: r.IntN(2) == 0}
	}
	for _, err := range who.Jobs(ctx, q) {
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *crew) metrics(ctx context.Context) error {
	resp, err := c.watch.get(ctx, "/metrics", 0)
	if err != nil {
		return err
	}
	return readAll(resp.Body, nil)
}

func readAll(r io.ReadCloser, err error) error {
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return firstOf(err, r.Close())
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// stay is a request that lasts until the job ends, or some events have come.
func (c *crew) stay(o *op, r *rand.Rand) {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	who, name := c.users[o.user], c.pick(o.user, r)
	var err error
	switch {
	case o.verb == "watch":
		err = c.watch.visit(ctx, who, userName(o.user), 20+r.IntN(100))
	case name == "":
	case o.verb == "wait":
		_, err = who.Wait(ctx, name)
	default:
		err = readAll(who.Logs(ctx, name, client.LogOptions{Follow: true}))
	}
	if k := fault.KindOf(err); err != nil && k != fault.NotFound {
		c.t.Errorf("%s of %s: %v", o.verb, strings.TrimSpace(name+" "+userName(o.user)), err)
	}
}
