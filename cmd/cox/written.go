package main

import (
	"bytes"

	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

func writeJSON(t *read) ([]byte, []spec.Warning, error) {
	var b bytes.Buffer
	err := spec.NewDocument(t.job, t.warnings).Write(&b)
	return b.Bytes(), nil, err
}

func writeNative(*read) ([]byte, []spec.Warning, error) {
	return nil, nil, fault.New(fault.Unsupported, "writing the native form is not built yet")
}

func writeSbatch(t *read) ([]byte, []spec.Warning, error) {
	out, warnings := sbatch.Render(t.job, t.script)
	return out, warnings, nil
}
