package state

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
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

// PoliciesKept bounds the revisions that can be looked at again.
const PoliciesKept = 100

// docPolicy begins the names of the projection's documents with one revision each.
const docPolicy = "policy-"

// Policies has the revisions of the site's rules.
type Policies struct {
	list      []Policy // ascending; only the last and those that are not projected have Text and Rules
	projected uint64   // revision up to which the store's projection has them
	dropped   []uint64 // revisions of which the projection is to forget the document
}

// CurrentPolicy is the revision in force; nil: there is none.
func (p *Policies) CurrentPolicy() *Policy {
	if len(p.list) == 0 {
		return nil
	}
	return &p.list[len(p.list)-1]
}

// ByRevision returns a copy of a revision; 0: the one in force. nil: there is none.
func (p *Policies) ByRevision(rev uint64) *Policy {
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

// LastRevision is the number of the revision in force; 0: none.
func (p *Policies) LastRevision() uint64 {
	if cur := p.CurrentPolicy(); cur != nil {
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

// WithoutDocuments lists all revisions without their documents.
func (p *Policies) WithoutDocuments() []Policy {
	var out []Policy
	for i := range p.list {
		out = append(out, p.list[i].withoutDocument())
	}
	return out
}

// add puts a new revision in force.
func (p *Policies) add(v Policy) {
	p.list = append(p.list, v)
	if n := len(p.list) - PoliciesKept; n > 0 {
		for i := range n {
			p.dropped = append(p.dropped, p.list[i].Revision)
		}
		p.list = slices.Delete(p.list, 0, n)
	}
}

// pendingDocs adds the documents that the projection lacks; nil takes one away. written has
// to hear that they were written.
func (p *Policies) pendingDocs(into map[string][]byte) (written func()) {
	for i := range p.list {
		if v := &p.list[i]; v.Revision > p.projected {
			into[docPolicy+strconv.FormatUint(v.Revision, 10)] = MustJSON(v)
		}
	}
	for _, rev := range p.dropped {
		into[docPolicy+strconv.FormatUint(rev, 10)] = nil
	}
	rev, gone := p.LastRevision(), len(p.dropped)
	return func() { p.markDocsWritten(rev, gone) }
}

// markDocsWritten notes that the projection has everything up to a revision, and that so many
// documents were taken away.
func (p *Policies) markDocsWritten(rev uint64, gone int) {
	p.projected = rev
	p.dropped = slices.Delete(p.dropped, 0, gone)
	for i := range len(p.list) - 1 {
		if p.list[i].Revision <= p.projected {
			p.list[i] = p.list[i].withoutDocument()
		}
	}
}

func (s *State) applyPolicy(r *store.Record, v Policy) error {
	last := s.Policies.LastRevision()
	if v.Rules == nil || v.Revision <= last {
		return fmt.Errorf("revision %d of the policy after revision %d", v.Revision, last)
	}
	v.At, v.By = r.At, actorOf(r.By)
	s.Policies.add(v)
	s.Events = append(s.Events, sched.PolicySet{Policy: v.Rules})
	return nil
}

// restorePolicies reads the document of the revision in force.
func (s *State) restorePolicies(ctx context.Context, st store.Store, list []Policy) error {
	s.Policies.list = list
	cur := s.Policies.CurrentPolicy()
	if cur == nil {
		return nil
	}
	v, err := PolicyDoc(ctx, st, cur.Revision)
	if err != nil {
		return DamagedError(err)
	}
	*cur, s.Policies.projected = v, cur.Revision
	return nil
}

// PolicyDoc reads a revision from the projection.
func PolicyDoc(ctx context.Context, st store.Store, rev uint64) (Policy, error) {
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
