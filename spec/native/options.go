package native

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// Fields that exclude each other: an option for one of them takes the place of them all.
var alternatives = [][]string{
	{"gpus", "gpus_per_node", "gpus_per_task", "gpu_types"},
	{"memory", "memory_per_task", "memory_per_cpu", "memory_per_gpu"},
	{"cpus", "cpus_per_gpu"},
	{"switches", "switches_for"},
}

// optionForms make a field's value of an option's, where the two are written in different
// ways. The error completes a sentence that begins with the option.
var optionForms = map[string]func(v string) (string, error){
	"time": timeForm, "time-min": timeForm,
	"mem": memoryForm, "mem-per-cpu": memoryForm, "mem-per-gpu": memoryForm, "tmp": memoryForm,
	"nice":                func(v string) (string, error) { return cmp.Or(v, "100"), nil },
	"open-mode":           wordForm(map[string]string{"append": "true", "a": "true", "truncate": "false", "t": "false"}),
	"kill-on-invalid-dep": wordForm(map[string]string{"yes": "true", "y": "true", "no": "false", "n": "false"}),
}

func timeForm(v string) (string, error) {
	d, err := slurmfmt.ParseTimeLimit(v)
	if err != nil {
		return "", err
	}
	return cmp.Or(formatDuration(d), "unlimited"), nil
}

func memoryForm(v string) (string, error) {
	n, err := slurmfmt.ParseMemory(v)
	if err != nil {
		return "", err
	}
	if n == 0 {
		return "all", nil
	}
	return slurmfmt.FormatMemory(n), nil
}

func wordForm(words map[string]string) func(string) (string, error) {
	return func(v string) (string, error) {
		if w, ok := words[strings.ToLower(v)]; ok {
			return w, nil
		}
		return v, nil // the field refuses it
	}
}

// overlay lays options of sbatch over a document.
type overlay struct {
	p      *parser
	root   *yaml.Node
	groups bool            // the document has a list of groups
	laid   map[string]bool // fields that come from an option
}

// layOptions returns the document with what options of sbatch say in the place of its fields.
// The document that is given stays as it is.
func (p *parser) layOptions(doc *yaml.Document, args []string) *yaml.Document {
	given, warnings, err := sbatch.ReadOptions(args)
	p.warnings = append(p.warnings, warnings...)
	if err != nil {
		p.keepErrors(err)
		return doc
	}
	out := *doc
	root := *doc.Root
	root.Fields = slices.Clone(root.Fields)
	out.Root = &root
	o := &overlay{p: p, root: &root, groups: root.Get("groups") != nil, laid: map[string]bool{}}
	for i := range given {
		o.layOption(&given[i])
	}
	return &out
}

func (p *parser) keepErrors(err error) {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range several.Unwrap() {
			p.keepErrors(e)
		}
		return
	}
	if e, ok := err.(*spec.Error); ok {
		p.errs = append(p.errs, e)
	}
}

func (o *overlay) layOption(d *sbatch.Directive) {
	switch d.Option {
	case "container-image":
		o.putText(d, "image", d.Value)
		return
	case "container-mounts", "container-workdir", "container-env", "container-name",
		"container-mount-home", "no-container-mount-home", "container-remap-root", "no-container-remap-root",
		"container-entrypoint", "no-container-entrypoint", "container-writable", "container-readonly":
		o.p.container = append(o.p.container, d)
		return
	case "no-requeue":
		o.putText(d, "requeue", "false")
		return
	case "mail-type", "mail-user":
		o.layMail(d)
		return
	case "gres", "distribution", "switches", "nodefile":
		o.layRendered(d)
		return
	}
	name, flag := fieldOfOption(d.Option)
	switch {
	case name == "" && d.Plugin: // a warning says that it is not read
	case name == "":
		o.refuseOption(d)
	case flag && !d.HasValue:
		o.putText(d, name, "true")
	case flag && d.Option != "open-mode" && d.Option != "kill-on-invalid-dep":
		o.p.errs = append(o.p.errs, d.Refuse(errors.New("takes no value beside the native form"), "write --"+d.Option))
	default:
		text := d.Value
		if f := optionForms[d.Option]; f != nil {
			var err error
			if text, err = f(d.Value); err != nil {
				o.p.errs = append(o.p.errs, d.Refuse(err, ""))
				return
			}
		}
		o.putText(d, name, text)
	}
}

// fieldOfOption is the field that says the same as an option, empty if there is none; flag says
// that it is true or false.
func fieldOfOption(option string) (name string, flag bool) {
	for _, f := range topFields {
		if f.sbatch == option && option != "wrap" {
			return f.name, f.form.text == aBool.text
		}
	}
	return "", false
}

func isGroupField(name string) bool {
	return slices.ContainsFunc(groupFields, func(f field[groupDraft]) bool { return f.name == name && name != "name" })
}

// place is that of an option: lines below zero count the options.
func (o *overlay) place(d *sbatch.Directive) yaml.Place {
	o.p.options = append(o.p.options, d)
	return yaml.Place{Line: -len(o.p.options)}
}

func (o *overlay) putText(d *sbatch.Directive, name, text string) {
	at := o.place(d)
	o.put(d, name, &yaml.Node{Kind: yaml.Scalar, Place: at, Text: text})
}

// put gives a field the value of an option.
func (o *overlay) put(d *sbatch.Directive, name string, v *yaml.Node) {
	if o.groups && isGroupField(name) {
		o.p.errs = append(o.p.errs, d.Refuse(errors.New("does not say for which of the groups of the file"), "write "+name+" into the group that it is for"))
		return
	}
	others := []string{name}
	for _, set := range alternatives {
		if slices.Contains(set, name) {
			others = set
		}
	}
	o.root.Fields = slices.DeleteFunc(o.root.Fields, func(f yaml.Field) bool { return slices.Contains(others, f.Name) && !o.laid[f.Name] })
	o.laid[name] = true
	o.root.Fields = append(o.root.Fields, yaml.Field{Name: name, Place: v.Place, Value: v})
}

// layMail lays one of the two options of mail over the field that has both.
func (o *overlay) layMail(d *sbatch.Directive) {
	at := o.place(d)
	mail := &yaml.Node{Kind: yaml.Mapping, Place: at}
	switch old := o.root.Get("mail"); {
	case old == nil:
	case old.Kind == yaml.Mapping:
		mail.Fields = slices.Clone(old.Fields)
	default:
		mail.Fields = []yaml.Field{{Name: "types", Place: old.Place, Value: old}}
	}
	name := "types"
	if d.Option == "mail-user" {
		name = "to"
	}
	mail.Fields = slices.DeleteFunc(mail.Fields, func(f yaml.Field) bool { return f.Name == name })
	mail.Fields = append(mail.Fields, yaml.Field{Name: name, Place: at, Value: &yaml.Node{Kind: yaml.Scalar, Place: at, Text: d.Value}})
	delete(o.laid, "mail")
	o.put(d, "mail", mail)
}

// layRendered lays an option over the document that no one field says: sbatch's reader makes a
// job of it alone, and what that job has in this form are the fields.
func (o *overlay) layRendered(d *sbatch.Directive) {
	src := spec.Source{Name: "command line", Data: []byte("#!/bin/sh\ntrue\n")}
	opts := sbatch.Options{Owner: o.p.opts.Owner, Dir: o.p.opts.Dir, Now: o.p.opts.Now, ReadFile: o.p.opts.ReadFile}
	plain, _, err := sbatch.Parse(src, opts)
	if err != nil {
		o.p.keepErrors(err)
		return
	}
	before, _ := Render(plain, src.Data)
	opts.Args = []string{"--" + d.Option}
	if d.HasValue {
		opts.Args[0] += "=" + d.Value
	}
	got, _, err := sbatch.Parse(src, opts)
	if err != nil {
		o.p.keepErrors(err)
		return
	}
	after, missing := Render(got, src.Data)
	a, errA := yaml.Parse(spec.Source{Data: before})
	b, errB := yaml.Parse(spec.Source{Data: after})
	if errA != nil || errB != nil || len(missing) > 0 {
		o.refuseOption(d)
		return
	}
	found := false
	for _, f := range b.Root.Fields {
		if old := a.Root.Get(f.Name); old != nil && sameNode(old, f.Value) {
			continue
		}
		found = true
		movePlaces(f.Value, o.place(d))
		o.put(d, f.Name, f.Value)
	}
	if !found {
		o.refuseOption(d)
	}
}

func (o *overlay) refuseOption(d *sbatch.Directive) {
	o.p.errs = append(o.p.errs, d.Refuse(errors.New("has no counterpart in the native form"),
		"leave it out, or turn the file into a script first: cox convert "+cmp.Or(o.p.file, "FILE")+" --to sbatch"))
}

func sameNode(a, b *yaml.Node) bool {
	return a.Kind == b.Kind && a.Text == b.Text &&
		slices.EqualFunc(a.Items, b.Items, sameNode) &&
		slices.EqualFunc(a.Fields, b.Fields, func(x, y yaml.Field) bool { return x.Name == y.Name && sameNode(x.Value, y.Value) })
}

// movePlaces gives all of a value one place.
func movePlaces(n *yaml.Node, at yaml.Place) {
	n.Place = at
	for _, i := range n.Items {
		movePlaces(i, at)
	}
	for i := range n.Fields {
		n.Fields[i].Place = at
		movePlaces(n.Fields[i].Value, at)
	}
}
