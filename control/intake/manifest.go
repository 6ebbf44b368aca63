package intake

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/manifest/fields"
	"github.com/coxswain-sched/coxswain/spec/manifest/work"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// manifestOptions are the options of sbatch that go with a manifest: those that do not concern what its
// pods ask for and run.
var manifestOptions = []string{
	"account", "qos", "partition", "time", "time-min", "begin", "deadline", "hold", "nice", "priority", "dependency", "comment", "job-name",
	"mail-type", "mail-user", "licenses", "reservation", "requeue", "no-requeue", "output", "error", "open-mode", "chdir", "exclude", "nodelist", "constraint",
	"switches", "wait", "parsable", "quiet", "test-only", "signal", "array",
}

// Works lists what the documents of a manifest run, as Text.Work takes it. Of a text of another form
// it is empty. The error is Read's.
func Works(t Text) ([]string, error) {
	if t.Form != api.FormManifest {
		return nil, nil
	}
	works, err := work.Read(sourceOf(t).Name, t.Data)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(works))
	for i, w := range works {
		names[i] = workName(w)
	}
	return names, nil
}

func workName(w *work.Work) string { return w.Kind + "/" + w.Name }

// readManifest makes a request of one work of a manifest.
func readManifest(t Text, src spec.Source, o Options) (*Request, error) {
	works, err := work.Read(src.Name, src.Data)
	if err != nil {
		return nil, err
	}
	w, err := chooseWork(works, t.Work)
	if err != nil {
		return nil, err
	}
	if o.Image != "" || len(o.ScriptArgs) > 0 {
		return nil, fault.New(fault.Invalid, "--image and arguments of a script do not go with a manifest: its containers say what they run").Advise("change the manifest")
	}
	around := o.sbatch()
	around.Args, around.Environ, around.ScriptArgs = slices.Concat(w.Options, o.Args), withoutOptions(o.Environ), nil
	got, err := sbatch.ParseAll(spec.Source{Name: path.Base(src.Name), Data: emptyScript}, around)
	if err != nil {
		return nil, err
	}
	sp := got.Job
	for _, name := range slices.Sorted(maps.Keys(sp.Source.Given)) {
		if !slices.Contains(manifestOptions, name) {
			return nil, fault.New(fault.Unsupported, "--%s does not go with a manifest: its pods say what they ask for", name).Advise("change the manifest, or leave the option out")
		}
	}
	sp.Source.Form, sp.Source.File = api.FormManifest, src.Name
	if err := fillManifest(sp, w); err != nil {
		return nil, err
	}
	script, err := w.Script()
	if err != nil {
		return nil, err
	}
	warnings := slices.Concat(w.Warnings, got.Warnings)
	for _, name := range sbatch.SetVariables(o.Environ) {
		warnings = append(warnings, spec.Warning{File: "environment", Option: name, Message: "has no effect here: sbatch's variables are not read with a manifest"})
	}
	r := newRequest(t, &o, sp, script, warnings)
	r.Command, r.work = got.Command, w
	if w.Schedule != nil {
		s := *w.Schedule
		r.Schedule = &s
	}
	if w.Service != nil {
		sv := *w.Service
		sv.Job, sv.Script, sv.Owner, sv.Account, sv.Text = *sp, script, sp.Owner, sp.Account, r.keptText()
		r.Service = &sv
		r.Spec = &sv.Job
	}
	r.keepOwn()
	return r, nil
}

// withoutOptions is an environment without the variables of sbatch's options.
func withoutOptions(environ []string) []string {
	names := sbatch.SetVariables(environ)
	return slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(names, name)
	})
}

// chooseWork is the work of a name; empty: the only one.
func chooseWork(works []*work.Work, name string) (*work.Work, error) {
	var names []string
	for _, w := range works {
		if names = append(names, workName(w)); names[len(names)-1] == name {
			return w, nil
		}
	}
	switch {
	case name != "":
		return nil, fault.New(fault.Invalid, "work: the file has no %.100q, but %s", name, strings.Join(names, ", ")).Advise("name one of these")
	case len(works) > 1:
		return nil, fault.New(fault.Invalid, "the file has %d things to run: %s", len(works), strings.Join(names, ", ")).Advise("say which one (work), or submit each")
	}
	return works[0], nil
}

// fillManifest gives a job what a work asks for. What options say outranks it.
func fillManifest(sp *job.Spec, w *work.Work) error {
	from, given := w.Job, sp.Source.Given
	said := func(name string) bool { _, ok := given[name]; return ok }
	if !said("job-name") {
		sp.Name = from.Name
	}
	if !said("time") {
		sp.TimeLimit = from.TimeLimit
	}
	if said("array") {
		return fault.New(fault.Unsupported, "--array does not go with a manifest").Advise("write a Job with completions and parallelism")
	}
	own := sp.Groups[0] // what options say of nodes
	for _, g := range from.Groups {
		g.Constraint, g.NodeList, g.Exclude, g.Switches = own.Constraint, own.NodeList, own.Exclude, own.Switches
		from.Groups[slices.IndexFunc(from.Groups, func(o job.TaskGroup) bool { return o.Name == g.Name })] = g
	}
	sp.Groups, sp.Program, sp.Array, sp.Retries, sp.Serve, sp.Secrets = from.Groups, from.Program, from.Array, from.Retries, from.Serve, from.Secrets
	sp.Held = sp.Held || from.Held
	sp.Requeue = from.Requeue || sp.Requeue
	if !said("output") {
		sp.Output.Stdout = sp.Name + "-%j.out"
		if sp.Array != nil {
			sp.Output.Stdout = sp.Name + "-%A_%a.out"
		}
	}
	if len(sp.Secrets) > job.MostSecrets {
		return fault.New(fault.Invalid, "its pods name %d keys of secrets; at most %d", len(sp.Secrets), job.MostSecrets).Advise("leave keys out that no container reads")
	}
	return nil
}

// CheckFields refuses the fields of a manifest that the engine of its pool does not honour, by their
// places, and adds a warning for each that has no effect there.
func (r *Request) CheckFields(engine string) error {
	if r.work == nil {
		return nil
	}
	on := fields.Local
	switch {
	case isKubernetes(engine):
		on = fields.Kubernetes
	case engine == "slurm":
		on = fields.Slurm
	}
	warnings, err := r.work.Check(on)
	r.Warnings = append(r.Warnings, warnings...)
	if err != nil {
		return err
	}
	if r.strict {
		return r.refuseWarnings()
	}
	return nil
}

// Secrets are the values of the Secrets that stand in a manifest, by the names under which the job's owner is to
// keep them; nil: there are none.
func (r *Request) Secrets() map[string][]byte {
	if r.work == nil {
		return nil
	}
	return r.work.Secrets
}

// UseKept has the job read the values of Secrets that are in its manifest from a set of kept values.
func (r *Request) UseKept(set string) {
	own := r.Secrets()
	r.Spec.Secrets = slices.Clone(r.Spec.Secrets)
	for i := range r.Spec.Secrets {
		if _, is := own[r.Spec.Secrets[i].Name]; is {
			r.Spec.Secrets[i].Kept = set
		}
	}
}

// DropPullSecrets takes the secrets out of a job by which a cluster of Kubernetes pulls images: elsewhere nobody
// reads them.
func (r *Request) DropPullSecrets(sp *job.Spec) {
	if r.work == nil {
		return
	}
	if names := r.work.PullSecrets(); len(names) > 0 {
		sp.Secrets = slices.DeleteFunc(slices.Clone(sp.Secrets), func(s job.Secret) bool { return slices.Contains(names, s.Name) })
	}
}

// keptText is the text as documents of services and schedules keep it; empty: it has values of Secrets, which the
// journal never holds.
func (r *Request) keptText() string {
	if r.work != nil && r.work.HasSecrets {
		return ""
	}
	return string(r.Text.Data)
}

// ForeignSecrets are the names under which the server's store may have secrets that pods of a manifest name and
// that do not stand in it.
func (r *Request) ForeignSecrets() []string {
	if r.work == nil {
		return nil
	}
	return r.work.ForeignSecrets()
}

// engineOf is the engine of a pool; empty: that of the server's own.
func (s *Site) engineOf(pool string) string {
	for _, v := range s.Plane.Pools() {
		if v.Name == pool || pool == "" && v.Default {
			return v.Engine
		}
	}
	return ""
}

func isKubernetes(engine string) bool { return engine == "kubernetes" || engine == "kube" }

// RunsPods reports whether a pool is a cluster of Kubernetes.
func (s *Site) RunsPods(pool string) bool { return isKubernetes(s.engineOf(pool)) }
