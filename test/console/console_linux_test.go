package console_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/internal/exectest"
)

// site is a server with two virtual nodes.
type site struct {
	t   *testing.T
	dir string
	bin string
}

// newSite starts it; room is more of its room.
func newSite(t *testing.T, dir, room string) *site {
	t.Helper()
	s := &site{t: t, dir: dir, bin: filepath.Join(t.TempDir(), "cox")}
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", s.bin, "../../cmd/cox")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	config := "state: {dir: " + s.dir + "/state}\nlisten: {socket: " + s.dir + "/state/cox.sock, tcp: " + freeAddress(t) + "}\nroom: {" + room + ", network: shared}\njobs: {grace: 2s}\ngateway: {listen: none}\n"
	if err := os.WriteFile(s.dir+"/cox.yaml", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s.cox("up", "-d", "--config", s.dir+"/cox.yaml")
	t.Cleanup(func() {
		_ = s.command("down", "--cancel").Run()
		if t.Failed() {
			text, _ := os.ReadFile(s.dir + "/state/server.log")
			t.Logf("the server said:\n%s", text[max(0, len(text)-4000):])
		}
	})
	return s
}

// freeAddress is one on which the server listens again after a restart.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// do does what a flow asks for.
func (s *site) do(what string) {
	s.t.Helper()
	switch what {
	case "let the job end":
		s.write("go", "")
	case "restart the server and submit the job afterwards":
		s.cox("down")
		s.cox("up", "-d", "--config", s.dir+"/cox.yaml")
		s.cox("submit", "-J", "afterwards", "--", "sleep", "600")
	default:
		s.t.Errorf("a flow asks for %q", what)
	}
}

func (s *site) command(args ...string) *exec.Cmd {
	cmd := exectest.Command(s.t, nil, s.bin, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "COX_SERVER=unix://"+s.dir+"/state/cox.sock")
	return cmd
}

// cox runs a command, which has to succeed, and returns what it printed.
func (s *site) cox(args ...string) string {
	s.t.Helper()
	out, err := s.command(args...).Output()
	if err != nil {
		var said string
		if e, ok := err.(*exec.ExitError); ok { //nolint:errorlint // Output returns no other
			said = string(e.Stderr)
		}
		s.t.Fatalf("cox %s: %v\n%s%s", strings.Join(args, " "), err, out, said)
	}
	return strings.TrimSpace(string(out))
}

func (s *site) write(name, text string) string {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return name
}

// link signs a browser in, once.
func (s *site) link() string {
	s.t.Helper()
	return regexp.MustCompile(`http://\S+`).FindString(s.cox("web", "--print"))
}

const service = `kind: service
name: web
command: [python3, -c, "import http.server, os; http.server.HTTPServer(('127.0.0.1', int(os.environ['PORT'])), http.server.SimpleHTTPRequestHandler).serve_forever()"]
replicas: 1
ports: [http]
cpus: 1
probes: {readiness: {http: /, port: http}}
`

// TestFlows: what people do with the console, in a real browser.
//
// Seen to fail with: a submitted job that is opened by its name instead of its number; a signed-out reader
// who is shown an error instead of how to sign in.
func TestFlows(t *testing.T) {
	tools := os.Getenv("COX_CONSOLE")
	if tools == "" {
		t.Skip("no browser: scripts/console/test.sh")
	}
	const canary = `<img src=x onerror="globalThis.canary=1">`
	s := newSite(t, t.TempDir(), "nodes: 2, cpus: 8, memory: 4G, gpus_per_node: 4")
	s.cox("submit", s.write("serve.yaml", service))
	canaryJob := s.cox("submit", "--parsable", "--wait", "-J", canary, "--comment", canary, "--", "echo", canary)
	longJob := s.cox("submit", "--parsable", s.write("long.sh", "#!/bin/sh\n#SBATCH -J long -N2 -c2 --gpus-per-node=4 -t 1:00:00\nsleep 600\n"))

	flows := exec.CommandContext(t.Context(), "node", "../../web/flows/flows.mjs")
	flows.Env = append(os.Environ(), "COX_LINK="+s.link(), "COX_DIR="+s.dir, "COX_CANARY="+canary, "COX_CANARY_JOB="+canaryJob, "COX_LONG_JOB="+longJob)
	flows.Stderr = os.Stderr
	in, err := flows.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := flows.StdoutPipe()
	if err == nil {
		err = flows.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var said struct {
			Flow, Error string
			Ask         string
		}
		if err := json.Unmarshal(lines.Bytes(), &said); err != nil {
			t.Errorf("%s", lines.Text())
			continue
		}
		if said.Ask != "" {
			s.do(said.Ask)
			if _, err := io.WriteString(in, "done\n"); err != nil {
				t.Error(err)
			}
			continue
		}
		ran++
		t.Run(said.Flow, func(t *testing.T) {
			if said.Error != "" {
				t.Error(said.Error)
			}
		})
	}
	if err := flows.Wait(); err != nil || ran == 0 {
		t.Errorf("%d flows: %v", ran, err)
	}
}

// TestScreenshots draws the pages of a busy server into the folder COX_SHOTS (scripts/console/screenshots.sh).
func TestScreenshots(t *testing.T) {
	folder := os.Getenv("COX_SHOTS")
	if folder == "" || os.Getenv("COX_CONSOLE") == "" {
		t.Skip("scripts/console/screenshots.sh draws them")
	}
	dir := filepath.Join(os.TempDir(), "demo") // the pages show it
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := newSite(t, dir, "nodes: 12, cpus: 32, memory: 128G, gpus_per_node: 8")
	s.cox("submit", s.write("serve.yaml", strings.Replace(service, "replicas: 1", "replicas: 2", 1)))
	train := s.cox("submit", "--parsable", s.write("train.sh", "#!/bin/bash\n#SBATCH -J pretrain -N4 --ntasks-per-node=2 --gpus-per-node=8 -t 12:00:00\nfor i in {1..400}; do echo \"step $i loss 2.$((RANDOM % 1000))\"; done\nsleep 900\n"))
	for name, ask := range map[string]string{"finetune": "-N2 --gpus-per-node=8 -t 4:00:00", "eval": "-N1 --gpus-per-node=4 -t 30:00", "ablation": "-N2 --gpus-per-node=6 -t 2:00:00"} {
		s.cox("submit", s.write(name+".sh", "#!/bin/bash\n#SBATCH -J "+name+" "+ask+"\necho begins\nsleep 900\n"))
	}
	waits := s.cox("submit", "--parsable", s.write("large.sh", "#!/bin/bash\n#SBATCH -J foundation -N8 --gpus-per-node=8 -t 1-0\ntrue\n"))
	s.cox("submit", s.write("small.sh", "#!/bin/bash\n#SBATCH -J sweep --array=1-8 -N1 --gpus-per-node=8 -t 3:00:00\nsleep 900\n"))
	s.cox("submit", "--wait", "-J", "prepare", "--", "true")
	s.cox("node", "drain", "v12", "--reason", "fan 3 is loud")
	draw := exec.CommandContext(t.Context(), "node", "../../web/flows/screenshots.mjs")
	draw.Env = append(os.Environ(), "COX_LINK="+s.link(), "COX_TRAIN_JOB="+train, "COX_WAITING_JOB="+waits)
	if out, err := draw.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
