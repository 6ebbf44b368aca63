package lab

import (
	"bufio"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/test/testcluster"
)

// Prints follows the log of a pod that runs until all of some texts are in it, and returns it as far
// as it has come. They are looked for after each line.
func (l *Lab) Prints(t testing.TB, namespace, pod string, texts ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := l.Command(ctx, "logs", "--follow", "--namespace="+namespace, pod)
	var said, log strings.Builder
	c.Stderr = &said
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := testcluster.Start(c); err != nil {
		t.Fatal(err)
	}
	var missing string
	for r := bufio.NewReader(out); err == nil; {
		var line string
		line, err = r.ReadString('\n')
		log.WriteString(line)
		if missing = firstLacking(log.String(), texts); missing == "" {
			break
		}
	}
	cancel()
	_ = c.Wait()
	if missing != "" {
		t.Fatalf("pod %s never says %q: %v, %s\n%s", pod, missing, err, said.String(), log.String())
	}
	return log.String()
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
		if _, err := l.Try(t.Context(), "", append([]string{"wait", "--for=delete", "--timeout=150s", "--namespace=" + namespace}, left...)...); err != nil {
			text, _ := l.Try(t.Context(), "", append([]string{"get", kinds, "--namespace=" + namespace, "--output=yaml"}, selection...)...)
			t.Fatalf("%v\n%s", err, text)
		}
	}
}
