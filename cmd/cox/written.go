package main

import (
	"bytes"

	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/native"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

func writeJSON(t *read) ([]byte, []spec.Warning, error) {
	var b bytes.Buffer
	err := spec.NewDocument(t.job, t.warnings).Write(&b)
	return b.Bytes(), nil, err
}

func writeNative(t *read) ([]byte, []spec.Warning, error) {
	out, warnings := native.Render(t.job, t.script)
	return out, warnings, nil
}

func writeSbatch(t *read) ([]byte, []spec.Warning, error) {
	out, warnings := sbatch.Render(t.job, t.script)
	return out, warnings, nil
}
