package control

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/store"
)

// Policy is one revision of the site's rules: who set them, when, the document as it
// was written, and what it says. A revision is never changed.
type Policy struct {
	Revision uint64          `json:"revision"` // 1, 2, …; 0: none was ever set
	At       time.Time       `json:"at,omitzero"`
	By       job.Actor       `json:"by,omitzero"`
	File     string          `json:"file,omitempty"` // where the document came from
	Note     string          `json:"note,omitempty"` // why, for people
	Back     uint64          `json:"back,omitempty"` // the revision whose document was put back; 0: none
	Hash     string          `json:"hash"`           // of Text
	Text     string          `json:"text,omitempty"`
	Rules    *account.Policy `json:"rules,omitempty"` // shared, never written
}

// PolicyChange is a document to be set.
type PolicyChange struct {
	Rules      *account.Policy // what Text says; never written again
	Text       string
	File, Note string
	Back       uint64
	Base       *uint64 // the revision that is to be replaced; nil: whichever
}

// policiesKept bounds the revisions that can be looked at again.
const policiesKept = 100

// docPolicy begins the names of the projection's documents with one revision each.
const docPolicy = "policy-"

// policies is the site's rules and what they were before.
type policies struct {
	list      []Policy // ascending; only the last and those that are not projected have Text and Rules
	projected uint64   // revision up to which the store's projection has them
	dropped   []uint64 // revisions of which the projection is to forget the document
}

// currentPolicy is the revision in force; nil: none.
func (p *policies) currentPolicy() *Policy {
	if len(p.list) == 0 {
		return nil
	}
	return &p.list[len(p.list)-1]
}

// byRevision returns a copy of a revision; 0: the one in force. nil: there is none.
func (p *policies) byRevision(rev uint64) *Policy {
	i := len(p.list) - 1
	if rev > 0 {
		i = slices.IndexFunc(p.list, func(v Policy) bool { return v.Revision == rev })
	}
	if i < 0 {
		return nil
	}
	v := p.list[i]
	return &v
}

// lastRevision is the number of the revision in force; 0: none.
func (p *policies) lastRevision() uint64 {
	if cur := p.currentPolicy(); cur != nil {
		return cur.Revision
	}
	return 0
}

// withoutDocument is a revision without its document.
func (p *Policy) withoutDocument() Policy {
	out := *p
	out.Text, out.Rules = "", nil
	return out
}

// withoutDocuments lists all revisions without their documents.
func (p *policies) withoutDocuments() []Policy {
	var out []Policy
	for i := range p.list {
		out = append(out, p.list[i].withoutDocument())
	}
	return out
}

// add puts a new revision in force.
func (p *policies) add(v Policy) {
	p.list = append(p.list, v)
	if n := len(p.list) - policiesKept; n > 0 {
		for i := range n {
			p.dropped = append(p.dropped, p.list[i].Revision)
		}
		p.list = slices.Delete(p.list, 0, n)
	}
}

// pendingDocs adds the documents that the projection lacks; nil takes one away. written has
// to hear that they were written.
func (p *policies) pendingDocs(into map[string][]byte) (written func()) {
	for i := range p.list {
		if v := &p.list[i]; v.Revision > p.projected {
			into[docPolicy+strconv.FormatUint(v.Revision, 10)] = mustJSON(v)
		}
	}
	for _, rev := range p.dropped {
		into[docPolicy+strconv.FormatUint(rev, 10)] = nil
	}
	rev, gone := p.lastRevision(), len(p.dropped)
	return func() { p.markDocsWritten(rev, gone) }
}

// markDocsWritten notes that the projection has everything up to a revision, and that so many
// documents were taken away.
func (p *policies) markDocsWritten(rev uint64, gone int) {
	p.projected = rev
	p.dropped = slices.Delete(p.dropped, 0, gone)
	for i := range len(p.list) - 1 {
		if p.list[i].Revision <= p.projected {
			p.list[i] = p.list[i].withoutDocument()
		}
	}
}

func (s *state) applyPolicy(r *store.Record, staged any) error {
	v, err := payloadOf[Policy](r, staged)
	if err != nil {
		return err
	}
	last := s.policies.lastRevision()
	if v.Rules == nil || v.Revision <= last {
		return fmt.Errorf("revision %d of the policy after revision %d", v.Revision, last)
	}
	v.At, v.By = r.At, actorOf(r.By)
	s.policies.add(v)
	s.events = append(s.events, sched.PolicySet{Policy: v.Rules})
	return nil
}

// restorePolicies reads the document of the revision in force.
func (s *state) restorePolicies(ctx context.Context, st store.Store, list []Policy) error {
	s.policies.list = list
	cur := s.policies.currentPolicy()
	if cur == nil {
		return nil
	}
	v, err := policyDoc(ctx, st, cur.Revision)
	if err != nil {
		return damagedError(err)
	}
	*cur, s.policies.projected = v, cur.Revision
	return nil
}

// policyDoc reads a revision out of the projection.
func policyDoc(ctx context.Context, st store.Store, rev uint64) (Policy, error) {
	name := docPolicy + strconv.FormatUint(rev, 10)
	doc, err := st.Doc(ctx, name)
	if err != nil {
		return Policy{}, err
	}
	var v Policy
	if err := json.Unmarshal(doc, &v); err != nil {
		return v, fmt.Errorf("document %s: %w", name, err)
	}
	if v.Revision != rev || v.Rules == nil {
		return v, fmt.Errorf("document %s: it has revision %d of the policy, or no rules", name, v.Revision)
	}
	return v, nil
}

// SetPolicy puts a document in force, for what waits and what runs. It is durable
// when it returns, and all of it holds or nothing. A document that is in force
// already makes no new revision. Base guards against two who write at the same time:
// the second is refused.
func (c *Control) SetPolicy(ctx context.Context, by job.Actor, ch PolicyChange) (Policy, error) {
	if ch.Rules == nil {
		return Policy{}, fault.New(fault.Invalid, "a policy needs rules")
	}
	if err := c.checkSuspendMode(ch.Rules); err != nil {
		return Policy{}, err
	}
	v := Policy{File: ch.File, Note: ch.Note, Back: ch.Back, Hash: store.Hash([]byte(ch.Text)), Text: ch.Text, Rules: ch.Rules}
	err := c.askLoop(ctx, message{bulk: true}, func(l *loop, answer func(error)) { // alone in its batch
		at, cur := l.state.policies.lastRevision(), l.state.policies.currentPolicy()
		switch {
		case ch.Base != nil && *ch.Base != at:
			l.refuseWhenLeading(answer, fault.New(fault.Conflict, "the policy is at revision %d, not at %d: it was changed meanwhile", at, *ch.Base).
				Advise("cox policy show prints it: make your change in that, and apply it again"))
			return
		case cur != nil && cur.Hash == v.Hash:
			v = *cur
			l.answerWhenLeading(answer)
			return
		}
		v.Revision = at + 1
		l.stageFor(&request{answer: answer}, kindPolicy, 0, by, v, func() { v = *l.state.policies.currentPolicy() })
	})
	if err != nil {
		return Policy{}, err
	}
	return v, nil
}

// Policy returns a revision of the site's rules; 0: the one in force, which is
// revision 0 where none was ever set.
func (c *Control) Policy(ctx context.Context, rev uint64) (Policy, error) {
	c.state.RLock()
	found := c.state.policies.byRevision(rev)
	c.state.RUnlock()
	switch {
	case found == nil && rev == 0:
		return Policy{Rules: &account.Policy{}}, nil
	case found == nil:
		return Policy{}, fault.New(fault.NotFound, "there is no revision %d of the policy", rev).
			Advise("cox policy history lists those that are kept (the last %d)", policiesKept)
	case found.Rules != nil:
		return *found, nil
	}
	return policyDoc(ctx, c.cfg.Store, rev)
}

// Policies lists the revisions that are kept, the oldest first, without documents.
func (c *Control) Policies(context.Context) ([]Policy, error) {
	c.state.RLock()
	defer c.state.RUnlock()
	return c.state.policies.withoutDocuments(), nil
}
