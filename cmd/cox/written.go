package main

import (
	"bytes"

	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/spec"
)

func writeJSON(t *read) ([]byte, []spec.Warning, error) {
	var b bytes.Buffer
	err := spec.NewDocument(t.job, t.warnings).Write(&b)
	return b.Bytes(), nil, err
}

func writeNative(*read) ([]byte, []spec.Warning, error) {
	return nil, nil, fault.New(fault.Unsupported, "writing the native form is not built yet")
}

func writeSbatch(*read) ([]byte, []spec.Warning, error) {
	return nil, nil, fault.New(fault.Unsupported, "writing sbatch scripts is not built yet")
}
