package submission

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/model/job"
)

// passInput gives this process's standard input to a command that cox run runs, unless it is a
// terminal, or --input names another one. The job opens a pipe of this process, by the name that
// is returned; empty: none is passed. The caller calls closeInput when the job has ended.
func passInput(requests []*intake.Request) (name string, closeInput func(), err error) {
	none := func() {}
	if len(requests) == 0 {
		return "", none, nil
	}
	text, spec := requests[0].Text, requests[0].Spec
	if text.Form != api.FormCommand || spec.Output.Stdin != "" || spec.Program.Kind != job.Direct || term.IsTerminal(int(os.Stdin.Fd())) {
		return "", none, nil
	}
	if st, err := os.Stdin.Stat(); err != nil || st.Mode()&os.ModeDevice != 0 {
		return "", none, nil //nolint:nilerr // closed, or /dev/null: there is nothing to pass
	}
	r, w, err := os.Pipe()
	if err != nil {
		return "", none, err
	}
	name = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), r.Fd())
	spec.Output.Stdin = name
	go func() { // ends with the input, or with the pipe
		_, _ = io.Copy(w, os.Stdin)
		_ = w.Close()
	}()
	return name, func() { _ = r.Close() }, nil
}
