package slurmcmd

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/fastclient"
)

// ImmediateTime reads --immediate of srun and salloc: how many seconds a job may wait, one if
// none are said.
func ImmediateTime(value string) (time.Duration, error) {
	if value == "" {
		value = "1"
	}
	d, err := time.ParseDuration(value + "s")
	if err != nil || d < 0 || strings.Contains(value, ".") {
		return 0, Textf("Invalid numeric value %q for --immediate.", value)
	}
	return max(d, time.Millisecond), nil
}

// ChangeJob cancels a job (api.VerbCancel), or sends it a signal (api.VerbSignal).
func ChangeJob(c *fastclient.Client, id, verb string, sig syscall.Signal) error {
	var o fastclient.Object
	o.Raw("select", fastclient.Select(&api.Select{IDs: []string{id}}))
	o.Text("verb", verb)
	if verb == api.VerbSignal {
		o.Text("signal", fmt.Sprint(int(sig)))
	}
	_, err := c.JSON("POST", "/v1/jobs/change", o.End())
	return err
}

// ErrBusy is how srun and salloc end that did not want to wait.
var ErrBusy = Textf("Unable to allocate resources: Requested nodes are busy")

// CancelWaiting cancels a job that still waits, for --immediate. The result is the error to end
// with; nil: the job waits no more.
func (c *Command) CancelWaiting(client *fastclient.Client, id string) error {
	v, err := client.JSON("GET", "/v1/jobs/"+fastclient.Segment(id), nil)
	if err != nil || v.Get("state").Text() != "PENDING" {
		return err
	}
	if err := ChangeJob(client, id, api.VerbCancel, 0); err != nil {
		return err
	}
	return ErrBusy
}
