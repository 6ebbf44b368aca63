package snapshot

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
)

// event is how an event is written: its name, and its fields without the
// specification, which is a number.
type event struct {
	Kind string          `json:"kind"`
	Spec *int            `json:"spec,omitempty"`
	Of   json.RawMessage `json:"of"`
}

// kinds are the events by name.
var kinds = func() map[string]reflect.Type {
	m := map[string]reflect.Type{}
	for _, e := range sched.Events() {
		t := reflect.TypeOf(e)
		m[t.Name()] = t
	}
	return m
}()

// pool numbers the specifications: those that say the same to the core are one.
type pool struct {
	specs []job.Spec
	known map[*job.Spec]int
	alike map[string]int
}

func newPool() *pool { return &pool{known: map[*job.Spec]int{}, alike: map[string]int{}} }

func (p *pool) specIndex(spec *job.Spec) int {
	if spec == nil {
		return -1
	}
	if i, ok := p.known[spec]; ok {
		return i
	}
	bare := Bare(spec)
	b, err := json.Marshal(bare)
	if err != nil {
		panic(fmt.Sprintf("snapshot: a specification cannot be written as JSON: %v", err)) // plain data: cannot happen
	}
	i, ok := p.alike[string(b)]
	if !ok {
		i = len(p.specs)
		p.specs = append(p.specs, *bare)
		p.alike[string(b)] = i
	}
	p.known[spec] = i
	return i
}

// Bare is what the core looks at in a specification, and the job's name.
func Bare(s *job.Spec) *job.Spec {
	b := *s
	b.Comment, b.WorkDir, b.Image = "", "", ""
	b.Program, b.Output, b.Env, b.Source = job.Program{}, job.Output{}, job.Environment{}, job.Source{}
	b.Pod = nil
	b.Signal, b.Mail, b.Notify, b.Provenance, b.Array = nil, nil, nil, nil, nil
	b.Depends = job.Dependency{}
	return &b
}

func (p *pool) encodeEvent(e sched.Event) (event, error) {
	t := reflect.TypeOf(e)
	if kinds[t.Name()] != t {
		return event{}, fmt.Errorf("snapshot: sched.Events does not have %s", t.Name())
	}
	out := event{Kind: t.Name()}
	v := reflect.New(t).Elem()
	v.Set(reflect.ValueOf(e))
	if f := v.FieldByName("Spec"); f.IsValid() {
		i := p.specIndex(f.Interface().(*job.Spec))
		out.Spec = &i
		f.SetZero()
	}
	b, err := json.Marshal(v.Interface())
	out.Of = b
	return out, err
}

func (x *event) decodeEvent(spec func(int) (*job.Spec, error)) (sched.Event, error) {
	t := kinds[x.Kind]
	if t == nil {
		return nil, fmt.Errorf("there is no event %q", x.Kind)
	}
	v := reflect.New(t)
	if err := json.Unmarshal(x.Of, v.Interface()); err != nil {
		return nil, fmt.Errorf("event %s: %w", x.Kind, err)
	}
	if f := v.Elem().FieldByName("Spec"); f.IsValid() && x.Spec != nil {
		s, err := spec(*x.Spec)
		if err != nil {
			return nil, err
		}
		f.Set(reflect.ValueOf(s))
	}
	return v.Elem().Interface().(sched.Event), nil
}
