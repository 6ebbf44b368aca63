package work

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
	"github.com/coxswain-sched/coxswain/model/schedule"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/manifest"
	"github.com/coxswain-sched/coxswain/spec/manifest/fields"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// Work is what one workload document asks for.
type Work struct {
	Kind, Name string
	Document   int // in the file, from 0

	Job     *job.Spec     // what runs; of a service, one replica. Owner, name and groups alone are set, and what the document says
	Set     *podspec.Set  // its pods
	Service *service.Spec // nil: it is a job

	Schedule *schedule.Settings // nil: it runs once

	Options    []string          // of sbatch, as --NAME=VALUE, from annotations coxswain.sh/NAME
	Secrets    map[string][]byte // values of Secrets that stand in the file, by podspec.StoreName
	HasSecrets bool              // a Secret stands in the file, even if this work names none: its text is not kept
	Warnings   []spec.Warning

	docs  []*manifest.Document // its own, then those that belong to it
	pulls map[string]bool      // by the name of a Secret: images are pulled by it, and nothing else reads it
}

// Script is the script of the work's job: its Set in JSON.
func (w *Work) Script() ([]byte, error) {
	text, err := json.Marshal(w.Set)
	if err == nil && len(text) > podspec.MaxSetSize {
		return nil, fault.New(fault.Invalid, "the pods of %s %s are %d bytes with their ConfigMaps; at most %d", w.Kind, w.Name, len(text), podspec.MaxSetSize).
			Advise("put data into a file or an image")
	}
	return text, err
}

// optionPrefix begins the annotations that are options of sbatch: coxswain.sh/account.
const optionPrefix = "coxswain.sh/"

// file is all that is compiled together.
type file struct {
	docs []Document
	used []bool // by document: a work has it
	errs []*spec.Error
}

// makers compile the workload kinds.
var makers = map[string]func(*file, *builder) error{
	"Pod": (*file).compilePod, "Job": (*file).compileJob, "CronJob": (*file).compileCron, "JobSet": (*file).compileJobSet,
	"VolcanoJob": (*file).compileVolcano, "PyTorchJob": (*file).compilePyTorch, "MPIJob": (*file).compileMPI,
	"RayJob": (*file).compileRayJob, "RayCluster": (*file).compileRayCluster,
	"LeaderWorkerSet": (*file).compileLeaderWorker, "Deployment": (*file).compileDeployment, "StatefulSet": (*file).compileStateful,
}

// kindOf is a document's kind; Job of Volcano is VolcanoJob.
func kindOf(d *Document) string {
	if d.Kind == "Job" && strings.HasPrefix(d.APIVersion, "batch.volcano.sh/") {
		return "VolcanoJob"
	}
	return d.Kind
}

// Read makes the works of a text, in the order of its documents. The name is that of its file. The error
// is a *spec.Error with all that was found.
func Read(name string, data []byte) ([]*Work, error) {
	m, err := manifest.Read(name, data)
	if err != nil {
		return nil, err
	}
	return Compile(m)
}

// Compile makes the works of a file's documents, in their order. The error is a *spec.Error with all that
// was found.
func Compile(m *manifest.File) ([]*Work, error) {
	docs, err := documentsOf(m)
	if err != nil {
		return nil, err
	}
	f := &file{docs: docs, used: make([]bool, len(docs))}
	f.refuseDoubled()
	var out []*Work
	hasSecrets := slices.ContainsFunc(docs, func(d Document) bool { return d.Kind == "Secret" })
	for i := range docs {
		compile, ok := makers[kindOf(&docs[i])]
		if !ok || docs[i].Name == "" {
			continue
		}
		b := newBuilder(f, i)
		if err := compile(f, b); err != nil {
			f.failDocument(&docs[i], err)
			continue
		}
		if w, err := b.finish(); err != nil {
			f.failDocument(&docs[i], err)
		} else {
			w.HasSecrets = hasSecrets
			out = append(out, w)
		}
	}
	if err := spec.Join(f.errs); err != nil {
		return nil, err
	}
	return out, f.checkLeftOver(out)
}

// refuseDoubled keeps an error of each document that has no name, or that of another one of its kind: works and
// what they use are found by kind and name.
func (f *file) refuseDoubled() {
	first := map[string]*Document{}
	for i := range f.docs {
		d := &f.docs[i]
		if d.aside != "" {
			continue
		}
		if d.Name == "" {
			f.errs = append(f.errs, d.Fail("", "metadata.name is missing", "add metadata: {name: NAME}"))
			continue
		}
		key := kindOf(d) + "/" + d.Name
		if before := first[key]; before != nil {
			f.errs = append(f.errs, d.Fail("metadata.name", fmt.Sprintf("line %d has another %s of the name %.70q", before.of.Line, d.of.Kind.Label(), d.Name), "give each one a name of its own, or make several files"))
			continue
		}
		first[key] = d
	}
}

// failDocument keeps an error, with a place if it has none.
func (f *file) failDocument(d *Document, err error) {
	if at, ok := err.(*spec.Error); ok { //nolint:errorlint // made here, never wrapped
		f.errs = append(f.errs, at)
		return
	}
	f.errs = append(f.errs, d.Fail("", err.Error(), fault.Remedy(err)))
}

// checkLeftOver refuses a file without work, and objects that no work of the file names.
func (f *file) checkLeftOver(works []*Work) error {
	if len(works) > 0 {
		for i := range f.docs {
			if d := &f.docs[i]; !f.used[i] && makers[kindOf(d)] == nil {
				w, why := works[0], "no work of this file names it"
				if d.aside != "" {
					why = d.aside
				}
				w.Warnings = append(w.Warnings, d.Warn("", fmt.Sprintf("is not made: %s", why)))
			}
		}
		return nil
	}
	if len(f.docs) == 0 {
		return fault.New(fault.Invalid, "the file has no document").Advise("write a Job, a Deployment, or another kind that runs something")
	}
	var kinds []string
	for i := range f.docs {
		if k := f.docs[i].Kind; !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	return f.docs[0].Fail("", fmt.Sprintf("nothing in the file runs: it has %s alone", strings.Join(kinds, ", ")),
		"put the Job or Deployment that uses it into the same file; kubectl apply makes objects by themselves")
}

// Line is the first line of the work's own document.
func (w *Work) Line() int { return w.docs[0].Line }

// Check refuses the fields of the work's documents that an engine does not honour, and lists those that have
// no effect there.
func (w *Work) Check(on fields.Engine) (warnings []spec.Warning, err error) {
	var errs []error
	for _, d := range w.docs {
		ws, err := d.Check(on)
		warnings = append(warnings, ws...)
		errs = append(errs, err)
	}
	return warnings, errors.Join(errs...)
}

// Blame is an error about what some options of sbatch would say, at the option that says it, or at the work's
// document.
func (w *Work) Blame(message, remedy string, args, options []string) *spec.Error {
	if d, ok := sbatch.FindOption(args, options...); ok {
		return d.Blame(message, remedy)
	}
	return w.docs[0].Fail("", remedy, "%s", message)
}

// PullSecrets are the names in Secrets of values by which a cluster pulls images, and which no container reads.
func (w *Work) PullSecrets() (names []string) {
	for _, s := range w.Set.Secrets {
		for _, key := range s.Keys {
			if w.pulls[s.Name] {
				names = append(names, podspec.StoreName(s.Name, key))
			}
		}
	}
	return names
}

// ForeignSecrets are the names in the server's store of keys that pods name, of Secrets that do not stand in the
// file. Where all keys of a Secret are meant there are none.
func (w *Work) ForeignSecrets() (names []string) {
	for _, s := range w.Set.Secrets {
		for _, key := range s.Keys {
			if s.Foreign {
				names = append(names, podspec.StoreName(s.Name, key))
			}
		}
	}
	return names
}
