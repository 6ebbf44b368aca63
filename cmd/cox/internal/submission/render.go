package submission

import (
	"bytes"

	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/manifest/convert"
	"github.com/coxswain-sched/coxswain/spec/native"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

func writeJSON(r *intake.Request) ([]byte, []spec.Warning, error) {
	var b bytes.Buffer
	err := spec.NewDocument(r.Spec, r.Warnings).Write(&b)
	return b.Bytes(), nil, err
}

func writeNative(r *intake.Request) ([]byte, []spec.Warning, error) {
	sp, script, lost, err := taskForm(r)
	if err != nil {
		return nil, nil, err
	}
	out, warnings := native.Render(sp, script)
	return out, append(lost, warnings...), nil
}

func writeSbatch(r *intake.Request) ([]byte, []spec.Warning, error) {
	sp, script, lost, err := taskForm(r)
	if err != nil {
		return nil, nil, err
	}
	out, warnings := sbatch.Render(sp, script)
	return out, append(lost, warnings...), nil
}

func writeManifest(r *intake.Request) ([]byte, []spec.Warning, error) {
	if r.Spec.Program.Kind == job.Pods {
		return nil, nil, fault.New(fault.Invalid, "%s is a manifest already", r.Text.Name).
			Advise("submit it as it is: cox submit %s; options of sbatch can be annotations in it, such as coxswain.sh/time", r.Text.Name)
	}
	return convert.Render(r.Spec, r.Script)
}

// taskForm is a request as a job of tasks: the pods of a manifest become tasks, and lost says what they had more.
func taskForm(r *intake.Request) (sp *job.Spec, script []byte, lost []spec.Warning, err error) {
	if r.Spec.Program.Kind != job.Pods {
		return r.Spec, r.Script, nil, nil
	}
	set, err := podspec.Parse(r.Script)
	if err != nil {
		return nil, nil, nil, err
	}
	sp, lost, err = convert.ToJob(r.Spec, set)
	return sp, nil, lost, err
}
