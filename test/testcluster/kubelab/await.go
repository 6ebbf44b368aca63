package lab

import (
	"bufio"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/test/testcluster"
)

// Prints follows the log of a pod until all of some texts are in it, and returns it as far as it has
// come. They are looked for after each line. A pod that has not begun is waited for.
func (l *Lab) Prints(t testing.TB, namespace, pod string, texts ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for {
		log, said, err := l.followLog(ctx, namespace, pod, texts)
		missing := firstLacking(log, texts)
		if missing == "" {
			return log
		}
		if !strings.Contains(said, "waiting to start") || ctx.Err() != nil {
			t.Fatalf("pod %s never says %q: %v, %s\n%s", pod, missing, err, said, log)
		}
		time.Sleep(200 * time.Millisecond) // kubectl does not wait for it
	}
}

// followLog reads a pod's log until all of some texts are in it, or it ends, and returns what kubectl said too.
func (l *Lab) followLog(ctx context.Context, namespace, pod string, texts []string) (log, said string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := l.Command(ctx, "logs", "--follow", "--namespace="+namespace, pod)
	var read, errs strings.Builder
	c.Stderr = &errs
	out, err := c.StdoutPipe()
	if err != nil {
		return "", "", err
	}
	if err := testcluster.Start(c); err != nil {
		return "", "", err
	}
	r := bufio.NewReader(out)
	for more := error(nil); more == nil && firstLacking(read.String(), texts) != ""; {
		var line string
		line, more = r.ReadString('\n')
		read.WriteString(line)
	}
	cancel()
	err = c.Wait()
	return read.String(), errs.String(), err
}

// firstLacking is the first of some texts that a log has not; empty: it has all.
func firstLacking(log string, texts []string) string {
	for _, s := range texts {
		if !strings.Contains(log, s) {
			return s
		}
	}
	return ""
}

// Emptied waits until nothing is left in a namespace of some kinds, as "pods,secrets", or of those
// that kubectl's arguments select.
func (l *Lab) Emptied(t testing.TB, namespace, kinds string, selection ...string) {
	t.Helper()
	for {
		left := strings.Fields(l.Kubectl(t, append([]string{"get", kinds, "--namespace=" + namespace, "--output=name"}, selection...)...))
		if len(left) == 0 {
			return
		}
		if _, err := l.Try(t.Context(), "", append([]string{"wait", "--for=delete", "--timeout=5m", "--namespace=" + namespace}, left...)...); err != nil {
			text, _ := l.Try(t.Context(), "", append([]string{"get", kinds, "--namespace=" + namespace, "--output=yaml"}, selection...)...)
			t.Fatalf("%v\n%s", err, text)
		}
	}
}
