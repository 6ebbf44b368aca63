package intake

import (
	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/spec/input"
)

// Detect says which form a text has, api.FormSbatch or api.FormNative. Of a text that is neither
// (see spec/input) it names the form whose reader refuses it; Read says what the text is.
func Detect(name string, data []byte) string {
	return formOf(input.Recognise(name, data))
}

func formOf(in input.Input) string {
	if in.Kind == input.Native {
		return api.FormNative
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
	switch {
	case t.Form == formOf(in):
		return nil
	case t.Form == api.FormSbatch:
		return fault.New(fault.Invalid, "%s: this is a job in the native form, not a batch script", t.Name).Advise("cox submit %s reads it", name)
	}
	return fault.New(fault.Invalid, "%s: this is a batch script, not a job in the native form", t.Name).Advise("leave --from out, or write --from sbatch")
}
