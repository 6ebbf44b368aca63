package work

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
	"github.com/coxswain-sched/coxswain/spec"
)

// builder collects a work.
type builder struct {
	f *file
	d *Document
	w *Work

	pods int // of all roles
	size int // of their templates, in bytes

	stored map[string]secretKey // of Secrets of the file, by podspec.StoreName
}

// secretKey is a key of a Secret.
type secretKey struct{ secret, key string }

func newBuilder(f *file, i int) *builder {
	d := &f.docs[i]
	w := &Work{Kind: d.Kind, Name: d.Name, Document: i, Job: &job.Spec{Name: d.Name}, pulls: map[string]bool{}}
	w.Job.Program = job.Program{Kind: job.Pods, ScriptName: d.Name}
	w.Set = &podspec.Set{Kind: d.Kind, Name: d.Name, Namespace: d.Namespace}
	for _, key := range slices.Sorted(maps.Keys(d.Annotations)) {
		if name, ok := strings.CutPrefix(key, optionPrefix); ok {
			w.Options = append(w.Options, "--"+name+"="+d.Annotations[key])
		}
	}
	b := &builder{f: f, d: d, w: w, stored: map[string]secretKey{}}
	b.useDocument(i)
	return b
}

// useDocument notes that a document belongs to the work.
func (b *builder) useDocument(i int) {
	b.f.used[i] = true
	if of := b.f.docs[i].of; !slices.Contains(b.w.docs, of) {
		b.w.docs = append(b.w.docs, of)
	}
}

// fail is an error at a path of the builder's document.
func (b *builder) fail(path, remedy, format string, args ...any) *spec.Error {
	return b.d.Fail(path, fmt.Sprintf(format, args...), remedy)
}

// warn notes what the user should know.
func (b *builder) warn(path, format string, args ...any) {
	b.w.Warnings = append(b.w.Warnings, b.d.Warn(path, fmt.Sprintf(format, args...)))
}

// addRole adds a role with the pods of a template, which stands at path of the document.
func (b *builder) addRole(r podspec.Role, path string) (*podspec.PodTemplate, error) {
	p, err := r.Pod()
	if err != nil {
		return nil, b.fail(path, "write spec.containers with one container at least", "%v", err)
	}
	if r.Replicas < 1 {
		return nil, b.fail(path, "leave the role out, or ask for one pod at least", "%s asks for %d pods", r.Name, r.Replicas)
	}
	if b.pods += r.Replicas; b.pods > maxTasks {
		return nil, b.fail(path, fmt.Sprintf("ask for %d at most", maxTasks), "the work has more than %d pods", maxTasks)
	}
	if b.size += len(r.Template); b.size > podspec.MaxSetSize {
		return nil, b.fail(path, "put data into a file or an image, or use fewer roles", "the pod templates of the work are more than %d bytes", podspec.MaxSetSize)
	}
	if !json.Valid(r.Template) {
		return nil, b.fail(path, "", "the pod template of %s is no JSON", r.Name)
	}
	g, err := requestOf(b, p, path)
	if err != nil {
		return nil, err
	}
	g.Name, g.Tasks.Want = r.Name, r.Replicas
	b.w.Job.Groups = append(b.w.Job.Groups, g)
	b.w.Set.Roles = append(b.w.Set.Roles, r)
	return p, b.nameObjects(p, path)
}

// setLimit takes the smallest of the time limits that a document says, in seconds.
func (b *builder) setLimit(seconds *int64) {
	if seconds == nil || *seconds <= 0 {
		return
	}
	limit := time.Duration(*seconds) * time.Second
	if b.w.Job.TimeLimit == 0 || limit < b.w.Job.TimeLimit {
		b.w.Job.TimeLimit = limit
	}
}

// backoff is how long Kubernetes waits before the first pod that takes the place of a failed one.
const backoff = 10 * time.Second

// setRetries says how often the job runs again after a failure.
func (b *builder) setRetries(count int) {
	if count > 0 {
		b.w.Job.Retries = &job.Retries{Count: min(count, job.MaxRetries), Backoff: backoff}
	}
}

// addService gives the pods of the set a name; a Service of the same name in the file is that one.
func (b *builder) addService(name, role string) {
	if i := b.f.findDocument("Service", name); i >= 0 {
		b.useDocument(i)
	}
	if !slices.ContainsFunc(b.w.Set.Services, func(s podspec.Service) bool { return s.Name == name }) {
		b.w.Set.Services = append(b.w.Set.Services, podspec.Service{Name: name, Role: role, Headless: true})
	}
}

// findDocument is the index of a document by kind and name; -1: there is none.
func (f *file) findDocument(kind, name string) int {
	return slices.IndexFunc(f.docs, func(d Document) bool { return d.Kind == kind && d.Name == name })
}

// finish checks the work.
func (b *builder) finish() (*Work, error) {
	if err := b.joinServices(); err != nil {
		return nil, err
	}
	if b.w.Job.Held && b.d.Labels[kueueQueue] != "" {
		b.w.Job.Held = false
		b.warn("spec.suspend", "is Kueue's to lift, whose label %s is there: the work waits in the queue here, and is not held", kueueQueue)
	}
	if err := b.checkForeign(); err != nil {
		return nil, err
	}
	if err := b.w.Set.Check(); err != nil {
		return nil, b.fail("", "", "%v", err)
	}
	if b.w.Service != nil {
		b.w.Service.Job, b.w.Service.Name = *b.w.Job, b.w.Name
	}
	if len(b.w.Set.Roles) > maxRoles {
		return nil, b.fail("spec", "use fewer, larger roles", "it has %d roles of pods; at most %d", len(b.w.Set.Roles), maxRoles)
	}
	return b.w, nil
}

// kueueQueue is the label of Kueue's work, which is made suspended: Kueue lets it go when it is admitted.
const kueueQueue = "kueue.x-k8s.io/queue-name"

// checkForeign refuses a key of a Secret that is not in the file, where one of the file is kept by the same name.
func (b *builder) checkForeign() error {
	for _, s := range b.w.Set.Secrets {
		for _, key := range s.Keys {
			store := podspec.StoreName(s.Name, key)
			if own, is := b.stored[store]; is && s.Foreign {
				return b.fail("", "rename one of them", "the key %s of Secret %s, which is not in the file, and the key %s of Secret %s are both kept as %s", key, s.Name, own.key, own.secret, store)
			}
		}
	}
	return nil
}

// maxRoles bounds the task groups of a job, maxGang the pods of which all names are listed.
const (
	maxRoles = 128
	maxGang  = 10_000
)

// checkGang refuses more pods than a list of their names is made of.
func (b *builder) checkGang(pods int, path string) error {
	if pods > maxGang {
		return b.fail(path, fmt.Sprintf("ask for %d at most", maxGang), "%d pods are too many for one gang", pods)
	}
	return nil
}

// template is a pod template as it was written.
type template struct {
	json.RawMessage
}

// edit changes a pod template as an operator does. change gets the template's pod spec.
func (t template) edit(change func(spec map[string]any) error) (template, error) {
	var all map[string]any
	if err := json.Unmarshal(t.RawMessage, &all); err != nil {
		return t, err
	}
	spec, ok := all["spec"].(map[string]any)
	if !ok {
		return t, fmt.Errorf("the pod template has no spec")
	}
	if err := change(spec); err != nil {
		return t, err
	}
	text, err := json.Marshal(all)
	return template{text}, err
}

// orOne is a count that is 1 where nothing is said.
func orOne(n *int) int {
	if n == nil {
		return 1
	}
	return *n
}

// firstText is the first of some texts that is not empty.
func firstText(texts ...string) string { return cmp.Or(texts...) }
