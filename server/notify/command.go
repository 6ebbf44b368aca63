package notify

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// command hands a mail to a program: NAME ARGS… -s SUBJECT ADDRESS…, the text on
// standard input. There is no shell in between. It gets PATH, HOME and the facts of
// the job as SLURM_JOB_* variables, nothing else of the server's environment.
type command struct{ argv []string }

// maxComplaint bounds how much of the program's own output goes into an error.
const maxComplaint = 200

func (c command) send(ctx context.Context, m *message) error {
	args := append(append([]string{}, c.argv[1:]...), "-s", m.subject)
	cmd := exec.CommandContext(ctx, c.argv[0], append(args, m.to...)...)
	cmd.Stdin = strings.NewReader(m.body)
	out := &tail{most: maxComplaint}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LC_ALL=C.UTF-8"}, m.environ...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("%s: %w %s", c.argv[0], err, oneLine(out.String(), maxComplaint))
	}
	return nil
}

// tail keeps the first bytes that are written to it.
type tail struct {
	bytes.Buffer
	most int
}

func (t *tail) Write(p []byte) (int, error) {
	if room := t.most - t.Len(); room > 0 {
		t.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
