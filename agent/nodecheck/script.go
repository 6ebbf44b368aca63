package nodecheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/printable"
)

// Bounds of what is kept of a program's output.
const (
	mostOutput = 16 << 10 // bytes
	mostText   = 300      // bytes of one result
)

// killTime is how long a program may take to be gone after it was killed.
const killTime = 2 * time.Second

// runScript runs a program of the site, or gives it up if it cannot even be killed.
func (c *Checker) runScript(ctx context.Context, k *Check, n *fleet.Node) []fleet.CheckResult {
	patient, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(killTime, giveUp) })()
	name := strings.Join(append([]string{"script", n.Pool, n.Name, k.Name}, k.Run...), "\x00")
	out, err := callOnce(patient, &c.stuck, name, func() ([]fleet.CheckResult, error) { return c.runProgram(ctx, k, n) })
	if err != nil {
		return []fleet.CheckResult{{Verdict: fleet.Failed, Text: fmt.Sprintf("%s has not ended within %s", k.Run[0], c.cfg.Timeout)}}
	}
	return out
}

// runProgram runs a program of the site. An error: it did not end in time.
func (c *Checker) runProgram(ctx context.Context, k *Check, n *fleet.Node) ([]fleet.CheckResult, error) {
	cmd := exec.CommandContext(ctx, k.Run[0], append(slices.Clone(k.Run[1:]), n.Name)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "COX_NODE="+n.Name, "COX_POOL="+n.Pool, "COX_NODE_DEVICES="+deviceList(n))
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var out keptOutput
	cmd.Stdout, cmd.Stderr = &out, &out
	err := c.cfg.Machine.Run(cmd)
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it has left behind
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return []fleet.CheckResult{{Verdict: fleet.Passed, Text: out.firstLine()}}, nil
	case errors.As(err, &exit):
		return scriptFindings(n, &out, exit), nil
	}
	return []fleet.CheckResult{{Verdict: fleet.Unsure, Text: fmt.Sprintf("%s cannot be run: %v", k.Run[0], err)}}, nil
}

func deviceList(n *fleet.Node) string {
	list := make([]string, len(n.Devices))
	for i := range n.Devices {
		list[i] = strconv.Itoa(n.Devices[i].Index)
	}
	return strings.Join(list, ",")
}

// scriptFindings is what a program that failed says of devices, or of the node.
func scriptFindings(n *fleet.Node, out *keptOutput, exit *exec.ExitError) []fleet.CheckResult {
	var found []fleet.CheckResult
	for line := range bytes.Lines(out.kept) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "device ")
		if !ok {
			continue
		}
		number, text, _ := strings.Cut(rest, ":")
		index, err := strconv.Atoi(strings.TrimSpace(number))
		at := slices.IndexFunc(n.Devices, func(d fleet.Device) bool { return d.Index == index })
		if err != nil || at < 0 || slices.ContainsFunc(found, func(r fleet.CheckResult) bool { return *r.Device == index }) {
			continue
		}
		if text = shortText(text); text == "" {
			text = exit.String()
		}
		found = append(found, fleet.CheckResult{Device: &index, UUID: n.Devices[at].UUID, Verdict: fleet.Failed, Text: text})
	}
	if len(found) > 0 {
		return found
	}
	text := exit.String()
	if line := out.firstLine(); line != "" {
		text = line + " (" + text + ")"
	}
	return []fleet.CheckResult{{Verdict: fleet.Failed, Text: text}}
}

// keptOutput keeps the beginning of a program's output and takes the rest in silence.
type keptOutput struct{ kept []byte }

func (o *keptOutput) Write(p []byte) (int, error) {
	o.kept = append(o.kept, p[:min(mostOutput-len(o.kept), len(p))]...)
	return len(p), nil
}

func (o *keptOutput) firstLine() string {
	for line := range bytes.Lines(o.kept) {
		if t := shortText(string(line)); t != "" {
			return t
		}
	}
	return ""
}

// shortText is a line that can be shown: bounded, without control characters.
func shortText(s string) string {
	if s = strings.TrimSpace(string(printable.Clean([]byte(s)))); len(s) > mostText {
		s = strings.ToValidUTF8(s[:mostText], "") + "…"
	}
	return s
}
