package submission

import (
	"bytes"

	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/native"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

func writeJSON(r *intake.Request) ([]byte, []spec.Warning, error) {
	var b bytes.Buffer
	err := spec.NewDocument(r.Spec, r.Warnings).Write(&b)
	return b.Bytes(), nil, err
}

func writeNative(r *intake.Request) ([]byte, []spec.Warning, error) {
	out, warnings := native.Render(r.Spec, r.Script)
	return out, warnings, nil
}

func writeSbatch(r *intake.Request) ([]byte, []spec.Warning, error) {
	out, warnings := sbatch.Render(r.Spec, r.Script)
	return out, warnings, nil
}
