package intake

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/schedule"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/manifest/work"
	"github.com/coxswain-sched/coxswain/spec/native"
	"github.com/coxswain-sched/coxswain/spec/route"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// Text is the work as it was written.
type Text struct {
	Form    string   // one of api.FormSbatch and its like
	Name    string   // of its file; "-" or empty: standard input
	Data    []byte   // empty with api.FormCommand and api.FormAllocation
	Work    string   // of api.FormManifest: KIND/NAME of what is to run; empty: the one thing
	Command []string // the words of api.FormCommand, which every task runs

	Lease time.Duration // of api.FormAllocation: how long it lives after its client was last heard of; 0: to its limit

	// Of api.FormCommand alone, as api.Submit has them. Client also of api.FormAllocation.
	Step    []string
	Client  string
	KillBad *bool
}

// Options are the circumstances of a text. The zero value is usable.
type Options struct {
	Args       []string    // sbatch's own options from the command line; they outrank everything
	ScriptArgs []string    // the script's arguments
	Environ    []string    // NAME=VALUE of the submitter; the job keeps it
	Set        []string    // NAME=VALUE that the job sees besides; they outrank everything
	Image      string      // container image of the job, which outranks the text's; empty: as the text says
	Rerun      job.Rerun   // where it runs again, which outranks the text's; empty: as the text says
	Notify     *job.Notify // webhook of the job, which outranks the text's; nil: as the text says

	Schedule *api.ScheduleTimes // when the job runs, which outranks the text's; nil: as the text says
	Once     bool               // the job runs once, now, whatever the text says

	Owner job.Owner
	Host  string // where the text is submitted
	Dir   string // directory that it is submitted from, absolute

	Now      time.Time // for begin times and deadlines; zero: time.Now()
	MaxArray uint32    // array indices stay below it; 0: Slurm's own bound
	Strict   bool      // make errors of warnings
	Mail     bool      // somebody sends mail about jobs
	// Webhook says why a job may not have a webhook; nil: nobody sends any.
	Webhook func(url string) error

	// ReadFile opens the files that options name. If nil, such options are refused.
	ReadFile func(name string) ([]byte, error)
}

// Request is a text that was read: the job, and the large things that the job names by hash.
type Request struct {
	Text     Text
	Spec     *job.Spec
	Script   []byte   // of a batch program
	Env      []string // NAME=VALUE of the submitter
	Warnings []spec.Warning
	Command  sbatch.CommandOptions // what was asked of the sbatch command itself

	// Service is what the text asks for if that is no job: Spec and Script are those of a replica.
	Service *service.Spec
	// Schedule says when the job runs; nil: once, now.
	Schedule *schedule.Settings

	args    []string       // of Options, to find the place of what is refused
	environ []string       // of Options, too
	now     time.Time      // of Options
	script  *sbatch.Script // of a text in sbatch's form
	doc     *yaml.Document // of a text in the native form
	work    *work.Work     // of a manifest
	strict  bool           // of Options
	own     *job.Spec      // what the text alone asks for; nil: options around it count
}

// Read makes a request of a text. The error is a *spec.Error with the places of all that was
// found, where the text is wrong.
func Read(t Text, o Options) (*Request, error) {
	src := sourceOf(t)
	if t.isFile() {
		if err := t.Recognise(""); err != nil {
			return nil, err
		}
	}
	if err := t.checkStep(); err != nil {
		return nil, err
	}
	r, err := readForm(t, src, o)
	if err != nil {
		return nil, err
	}
	if err := r.setAround(&o); err != nil {
		return nil, err
	}
	if err := r.setSchedule(&o); err != nil {
		return nil, err
	}
	if o.Strict {
		r.strict = true
		return r, r.refuseWarnings()
	}
	return r, nil
}

// isFile reports whether the text is of a form that files have.
func (t *Text) isFile() bool {
	return t.Form == api.FormSbatch || t.Form == api.FormNative || t.Form == api.FormManifest
}

func sourceOf(t Text) spec.Source { return spec.Source{Name: cmp.Or(t.Name, "-"), Data: t.Data} }

// setAround gives the job the variables and the image that no option of sbatch is for.
func (r *Request) setAround(o *Options) error {
	for _, set := range o.Set {
		name, _, ok := strings.Cut(set, "=")
		if !ok || name == "" || strings.ContainsAny(name, " \t\n\x00\"'") || name[0] >= '0' && name[0] <= '9' {
			return fault.New(fault.Invalid, "--env %.70q is not NAME=VALUE", set).Advise("write --env NAME=VALUE, once for each variable")
		}
	}
	r.Spec.Env.Set = append(slices.Clip(r.Spec.Env.Set), o.Set...)
	if o.Image != "" {
		r.Spec.Image = o.Image
		delete(r.Spec.Source.Given, "container-image") // it is asked for here, not of a plugin
	}
	if err := o.Rerun.Check(); err != nil {
		return fault.New(fault.Invalid, "%w", err).Advise("write same-nodes or exclude-failed, or leave it out")
	}
	if o.Rerun != job.RerunAnywhere && r.Service != nil {
		return fault.New(fault.Invalid, "--%s: each new replica of a service is placed anew", o.Rerun).Advise("leave it out, or say nodelist or exclude in the file")
	}
	r.Spec.Rerun = cmp.Or(o.Rerun, r.Spec.Rerun)
	return r.setNotify(o)
}

// setNotify gives the job the webhook that stands beside its text.
func (r *Request) setNotify(o *Options) error {
	if o.Notify == nil {
		return nil
	}
	on, err := job.NotifyOn(o.Notify.On)
	if err != nil {
		return fault.New(fault.Invalid, "--notify-on: %w", err).Advise("events: %s, all", strings.Join(job.NotifyEvents, ", "))
	}
	if err := job.CheckWebhook(o.Notify.Webhook); err != nil {
		return fault.New(fault.Invalid, "--notify-url %w", err).Advise("write the URL whole: --notify-url https://hooks.example.org/…")
	}
	if o.Webhook == nil {
		return fault.New(fault.Unsupported, "--notify-url: no server runs this job, and a server sends the webhooks").Advise("cox up -d, then cox submit; or leave --notify-url out")
	}
	if err := o.Webhook(o.Notify.Webhook); err != nil {
		return fault.New(fault.KindOf(err), "--notify-url: %w", err).Advise("%s", fault.Remedy(err))
	}
	r.Spec.Notify = &job.Notify{Webhook: o.Notify.Webhook, On: on}
	return nil
}

func readForm(t Text, src spec.Source, o Options) (*Request, error) {
	switch t.Form {
	case api.FormSbatch:
		return readBatch(t, src, o)
	case api.FormNative:
		doc, err := yaml.Parse(src)
		if err != nil {
			return nil, err
		}
		return readNative(t, doc, src.Name, o)
	case api.FormManifest:
		return readManifest(t, src, o)
	case api.FormCommand:
		return readCommand(t, o)
	case api.FormAllocation:
		return readAllocation(t, o)
	}
	return nil, fault.New(fault.Invalid, "form: %q is none of sbatch, native, manifest, command, allocation", t.Form)
}

// refuseWarnings makes errors of the warnings, for a submission that is strict.
func (r *Request) refuseWarnings() error {
	var errs []*spec.Error
	for _, w := range r.Warnings {
		errs = append(errs, &spec.Error{
			File: w.File, Line: w.Line, Col: w.Col, Message: strings.TrimSpace(w.Option + " " + w.Message),
			Remedy: "change it, or leave --strict out: then it is only a warning",
		})
	}
	return spec.Join(errs)
}

// checkStep refuses what belongs to a command beside a text that is none.
func (t *Text) checkStep() error {
	switch {
	case t.Form != api.FormCommand && (len(t.Step) > 0 || t.KillBad != nil), t.Form != api.FormCommand && t.Form != api.FormAllocation && t.Client != "":
		return fault.New(fault.Invalid, "step, client and kill_on_bad_exit go with the form command, not with %s", t.Form).
			Advise("let the script call srun with these options")
	case t.Form != api.FormAllocation && t.Lease != 0:
		return fault.New(fault.Invalid, "lease goes with the form allocation, not with %s", t.Form).Advise("leave it out")
	case t.Form == api.FormAllocation && len(t.Command) > 0:
		return fault.New(fault.Invalid, "an allocation runs no command").Advise("leave the command out, or use the form command")
	case t.Lease != 0 && (t.Lease < leastLease || t.Lease > mostLease):
		return fault.New(fault.Invalid, "lease: %s is not between %s and %s", t.Lease, leastLease, mostLease).Advise("60 seconds suit most clients")
	case t.Client != "" && !path.IsAbs(t.Client):
		return fault.New(fault.Invalid, "client: %q is not an absolute path", t.Client).Advise("name the socket by its whole path")
	}
	return nil
}

// ReadAlone reads a text without options, environment and site, for advice on it.
func ReadAlone(t Text, now time.Time) (*Request, error) {
	o, src := optionsAlone(now), spec.Source{Name: t.Name, Data: t.Data}
	if err := t.Recognise("say the facts by flags instead: cox advise --nodes 2 --containers"); err != nil {
		return nil, err
	}
	switch t.Form {
	case api.FormManifest:
		return readManifest(t, src, o)
	case api.FormSbatch:
		return readBatch(t, src, o)
	}
	doc, err := yaml.Parse(src)
	if err != nil {
		return nil, err
	}
	return readNative(t, doc, t.Name, o)
}

// optionsAlone are the options of a text that nothing stands around. Files that the text names count
// as empty.
func optionsAlone(now time.Time) Options {
	return Options{Dir: "/", Now: now, Mail: true, Webhook: func(string) error { return nil }, ReadFile: func(string) ([]byte, error) { return nil, nil }}
}

func (o *Options) sbatch() sbatch.Options {
	return sbatch.Options{
		Args: o.Args, Environ: o.Environ, ScriptArgs: o.ScriptArgs, Owner: o.Owner, Host: o.Host, Dir: o.Dir,
		Now: o.Now, Strict: o.Strict, Mail: o.Mail, MaxArraySize: o.MaxArray, ReadFile: o.ReadFile,
	}
}

func newRequest(t Text, o *Options, sp *job.Spec, script []byte, warnings []spec.Warning) *Request {
	return &Request{Text: t, Spec: sp, Script: script, Env: o.Environ, Warnings: warnings, args: o.Args, environ: o.Environ, now: o.Now}
}

func readBatch(t Text, src spec.Source, o Options) (*Request, error) {
	script, err := sbatch.Read(src)
	if err != nil {
		return nil, err
	}
	got, err := sbatch.ParseScript(script, o.sbatch())
	if err != nil {
		return nil, err
	}
	r := newRequest(t, &o, got.Job, t.Data, got.Warnings)
	r.Command, r.script = got.Command, script
	if !got.Outside {
		r.keepOwn()
	}
	return r, nil
}

// readNative makes a request of a document.
func readNative(t Text, doc *yaml.Document, name string, o Options) (*Request, error) {
	around := native.Options{
		Owner: o.Owner, Host: o.Host, Dir: o.Dir, Now: o.Now, MaxArraySize: o.MaxArray, Mail: o.Mail, Webhook: o.Webhook, ScriptArgs: o.ScriptArgs, ReadFile: o.ReadFile,
	}
	if native.IsService(doc) {
		return readService(t, doc, name, around, o)
	}
	own, script, warnings, err := native.ParseDocument(doc, name, around)
	sp := own
	if len(o.Args) > 0 { // the text alone may lack what the options add
		around.Args = o.Args
		sp, script, warnings, err = native.ParseDocument(doc, name, around)
	}
	if err != nil {
		return nil, err
	}
	for _, name := range sbatch.SetVariables(o.Environ) {
		warnings = append(warnings, spec.Warning{File: "environment", Option: name, Message: "has no effect here: sbatch's variables are not read with the native form"})
	}
	r := newRequest(t, &o, sp, script, warnings)
	r.doc = doc
	if r.Schedule, err = native.ScheduleOf(doc, name, around); err != nil {
		return nil, err
	}
	if own != nil {
		copied := *own
		r.own = &copied
	} else {
		r.keepOwn()
	}
	return r, nil
}

// readService makes a request of a document that describes a service.
func readService(t Text, doc *yaml.Document, name string, around native.Options, o Options) (*Request, error) {
	around.Args = o.Args
	sv, warnings, err := native.ParseService(doc, name, around)
	if err != nil {
		return nil, err
	}
	sv.Text = string(t.Data)
	r := newRequest(t, &o, &sv.Job, sv.Script, warnings)
	r.doc, r.Service = doc, sv
	r.keepOwn()
	return r, nil
}

// Replicas is the service with what the site's rules made of the job of a replica; nil for a job.
func (r *Request) Replicas() *service.Spec {
	if r.Service == nil {
		return nil
	}
	out := *r.Service
	out.Account, out.Script, out.Env = r.Spec.Account, r.Script, r.Env
	out.Job = *r.Spec
	return &out
}

// readCommand makes a job of a command that runs in every task; options of sbatch say its shape.
func readCommand(t Text, o Options) (*Request, error) {
	if len(t.Command) == 0 || t.Command[0] == "" {
		return nil, fault.New(fault.Invalid, "there is no command to run").Advise("put it behind the options: cox submit -N2 -- hostname")
	}
	o.ScriptArgs = nil
	sp, warnings, err := sbatch.Parse(spec.Source{Name: path.Base(t.Command[0]), Data: emptyScript}, o.sbatch())
	if err != nil {
		return nil, err
	}
	sp.Program = job.Program{Kind: job.Direct, Args: t.Command, Step: t.Step, Client: t.Client}
	sp.Source.Form, sp.Source.File, sp.KillOnBadExit = api.FormCommand, "", t.KillBad == nil || *t.KillBad
	_, sp.Requeue = sp.Source.Given["requeue"] // a command is no batch script: it runs once
	return newRequest(t, &o, sp, nil, warnings), nil
}

// The bounds of a lease: shorter ones would burden the server, longer ones leave nodes idle.
const (
	leastLease = time.Second
	mostLease  = 24 * time.Hour
)

// readAllocation makes a job of options alone, in which nothing runs.
func readAllocation(t Text, o Options) (*Request, error) {
	o.ScriptArgs = nil
	sp, warnings, err := sbatch.Parse(spec.Source{Name: "interactive", Data: emptyScript}, o.sbatch())
	if err != nil {
		return nil, err
	}
	if sp.Array != nil {
		return nil, fault.New(fault.Invalid, "an allocation cannot be an array").Advise("ask for each allocation by itself")
	}
	sp.Program = job.Program{Kind: job.BareAllocation, Client: t.Client, Lease: t.Lease}
	sp.Source.Form, sp.Source.File = api.FormAllocation, ""
	sp.Requeue = false // its client is there once
	sp.Output = job.Output{}
	return newRequest(t, &o, sp, nil, warnings), nil
}

// emptyScript stands for a command where sbatch's options are read without a script.
var emptyScript = []byte("#!/bin/sh\n")

// keepOwn notes what the text asks for before anything else is laid over it.
func (r *Request) keepOwn() {
	own := *r.Spec
	r.own = &own
}

// Facts are what the text says about the work, for the advice on pools. Options of the
// submission are not among them. The error says why the text alone is no job.
func (r *Request) Facts() (*route.Facts, error) {
	src := spec.Source{Name: r.Text.Name, Data: r.Text.Data}
	switch {
	case r.doc != nil:
		return route.DocumentFacts(src.Name, r.doc, r.own), nil
	case r.work != nil:
		return route.ManifestFacts(route.Evidence{File: src.Name, Line: r.work.Line(), Text: "kind: " + r.work.Kind}, r.work.Kind, r.own), nil
	case r.script == nil:
		return &route.Facts{}, nil
	}
	own := r.own
	if own == nil {
		o := optionsAlone(r.now)
		got, err := sbatch.ParseScript(r.script, o.sbatch())
		if err != nil {
			return nil, err
		}
		own = got.Job
	}
	return route.ScriptFacts(src, r.script, own), nil
}
