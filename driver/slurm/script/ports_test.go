package script_test

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/slurm/script"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestPortsOfScripts runs scripts for several interpreters side by side: each has ports of its own, those
// on which somebody listens have nobody, and a fixed port that is taken is an end that says so.
func TestPortsOfScripts(t *testing.T) {
	const first = 61400 // neither of the ports that pools give nor of those that the kernel chooses
	ports := func(more ...job.Port) *script.Ports {
		return &script.Ports{Serve: &job.Serve{Ports: append([]job.Port{{Name: "http"}, {Name: "side-door"}}, more...)}, First: first, Last: first + 3*script.PortBlock - 1}
	}
	busy, err := net.Listen("tcp", fmt.Sprintf(":%d", first+1))
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	number := first + 1
	seen := map[string]string{}
	// Each script begins the next one while it has its own ports.
	inner := ""
	for name, text := range map[string]string{
		"sh":     "#!/bin/sh\nset -eu\necho $PORT $PORT_HTTP $PORT_SIDE_DOOR\n",
		"python": "#!/usr/bin/env python3\nimport os\nprint(os.environ['PORT'], os.environ['PORT_HTTP'], os.environ['PORT_SIDE_DOOR'], flush=True)\n",
	} {
		if inner != "" && name == "sh" {
			text += inner + "\n"
		} else if inner != "" {
			text += "import subprocess; subprocess.run([" + fmt.Sprintf("%q", inner) + "], check=True)\n"
		}
		g := guard(t)
		g.Ports = ports()
		if err := os.Mkdir(g.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		seen[g.PortFile(0)] = name
		file := t.TempDir() + "/script"
		if err := os.WriteFile(file, script.Wrap([]byte(text), g), 0o700); err != nil {
			t.Fatal(err)
		}
		inner = file
	}
	text, err := os.ReadFile(inner)
	if err != nil {
		t.Fatal(err)
	}
	out, code := begin(t, text, 0)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || len(lines) != 2 || lines[0] == lines[1] {
		t.Fatalf("exit %d: %q", code, out)
	}
	for _, l := range lines {
		var port, http, side int
		if _, err := fmt.Sscan(l, &port, &http, &side); err != nil || port != http || side != http+1 || http < first+script.PortBlock || (http-first)%script.PortBlock != 0 {
			t.Errorf("%q, %v", l, err)
		}
	}
	for file := range seen {
		if b, err := os.ReadFile(file); err != nil || !strings.Contains(out, strings.TrimSpace(string(b))) {
			t.Errorf("%q, %v of %q", b, err, out)
		}
	}
	g := guard(t)
	g.Ports = ports(job.Port{Name: "fixed", Number: number})
	if err := os.Mkdir(g.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	out, code = begin(t, script.Wrap([]byte("#!/bin/sh\necho ran\n"), g), 0)
	if code != script.ExitPortless || strings.Contains(out, "ran\n") || !strings.Contains(out, fmt.Sprintf("port fixed: port %d of ", number)) {
		t.Errorf("exit %d: %s", code, out)
	}
}
