package intake

import (
	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/spec/input"
)

// Detect says which form a text has: api.FormSbatch, api.FormNative or api.FormManifest. Of a text that is none
// (see spec/input) it names the form whose reader refuses it; Read says what the text is.
func Detect(name string, data []byte) string {
	return formOf(input.Recognise(name, data))
}

func formOf(in input.Input) string {
	switch in.Kind {
	case input.Native:
		return api.FormNative
	case input.Kubernetes:
		return api.FormManifest
	}
	return api.FormSbatch
}

// Recognise returns an error for a text that is no batch script and no job in the native form,
// or is not of the form that it is said to have. remedy outranks the one that fits the text;
// empty: it does not.
func (t *Text) Recognise(remedy string) error {
	in := input.Recognise(t.Name, t.Data)
	if err := in.Refusal(t.Name, remedy); err != nil {
		return err
	}
	name := t.Name
	if name == "" || name == "-" {
		name = "FILE"
	}
	is := formOf(in)
	if t.Form == is {
		return nil
	}
	words := map[string]string{api.FormSbatch: "a batch script", api.FormNative: "a job in the native form", api.FormManifest: "a manifest for Kubernetes"}
	err := fault.New(fault.Invalid, "%s: this is %s, not %s", t.Name, words[is], words[t.Form])
	if t.Form == api.FormSbatch { // the command sbatch was given it
		return err.Advise("cox submit %s reads it", name)
	}
	return err.Advise("leave --from out, or write --from %s", is)
}
