package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/printer"
)

// exitInterrupted is as a shell reports SIGINT.
const exitInterrupted = 130

// Interruptible is a context that Ctrl-C, SIGTERM and SIGHUP end, so that a command can say how far it
// came; a second signal ends the command at once. Signals that are ignored, as under nohup, stay so. The
// caller calls stop when it no longer waits.
func Interruptible(ctx context.Context) (_ context.Context, stop func()) {
	var signals []os.Signal
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signals = append(signals, s)
		}
	}
	if len(signals) == 0 { // none would be all
		return ctx, func() {}
	}
	ctx, stop = signal.NotifyContext(ctx, signals...)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// ReportInterrupted tells the user how long the command ran before the signal, how far it came and what to
// do now. It sets exit code 130.
func (a *App) ReportInterrupted(began time.Time, how, remedy string) {
	fmt.Fprintf(a.Err, "cox: interrupted after %s; %s\n  %s\n", printer.Duration(time.Since(began)), printer.CleanLines(how), remedy)
	a.Code = exitInterrupted
}

// StateAndWhy says in which state a job is, and why it waits: "job 4 is PENDING: it waits for …".
func StateAndWhy(j *api.Job) string {
	text := fmt.Sprintf("job %s is %s", j.ID, j.State)
	if j.Why != nil {
		text += ": " + j.Why.String()
	}
	return text
}
