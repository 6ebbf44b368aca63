package hardcase

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/test/internal/plane"
)

// Hidden first arguments: of the Python that the stand-in for Ray names in its first line, and of a
// submission as another user.
const (
	pythonArg = "hardcase-python"
	submitArg = "hardcase-submit"
)

// pythonMain runs "ray start …": it listens on each port that it is given, as Ray does, and fails if
// somebody has one. A program of -c, by which the launcher waits for the nodes, ends at once.
func pythonMain(args []string) int {
	if len(args) < 2 || args[0] == "-c" || args[1] != "start" {
		return 0
	}
	for _, a := range args[2:] {
		name, value, _ := strings.Cut(a, "=")
		if !strings.HasSuffix(name, "port") {
			continue
		}
		l, err := net.Listen("tcp", ":"+value)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		defer l.Close()
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	<-ctx.Done()
	return 0
}

// submitMain submits a native text as who runs it, and prints the job.
func submitMain(socket, dir, text string) int {
	c, err := client.New(client.Options{Socket: socket})
	if err == nil {
		var got *api.Submitted
		if got, err = c.Submit(context.Background(), &api.Submit{Form: api.FormNative, File: "ray.yaml", Text: text, Dir: dir, Environ: []string{"PATH=" + os.Getenv("PATH")}}); err == nil {
			fmt.Println(got.ID)
			return 0
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// Two users each have a cluster of Ray on the same node. Their ports differ, neither sees the other's
// files, and the end of one is not the other's. The launcher and the ports are real; Ray is a stand-in
// that takes the ports which it is told (Ray itself, of one user: test/clients TestRay).
//
// Seen to fail with: a port that is not chosen; a folder that others can read.
func TestHardCase_51_twoClusters(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("two users need root")
	}
	p := plane.New(t, nodes(1, 0)).Start()
	bin := filepath.Join(p.Dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil { //nolint:gosec // for other users
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(bin, "program") // other users do not reach the folder of the tests
	if out, err := exec.Command("cp", self, program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(bin, "ray"), []byte("#!"+program+" "+pythonArg+"\n"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	diary, gate := p.Diary("diary"), p.Gate("gate")
	note := diary.Note("$SLURM_JOB_ID $MASTER_PORT $RAY_TMPDIR $(find /tmp/cox-ray.* -maxdepth 0 -readable 2>/dev/null | wc -l)")
	text := fmt.Sprintf("name: ray\nnodes: 1\ncpus: 2\nworkdir: /tmp\noutput: none\nlauncher: ray\ncommand: [%s]\n", p.Program("driver", note+"\n"+gate.Wait))
	submit := func(uid uint32) string {
		cmd := exec.Command(program, submitArg, p.Config.Listen.Socket, p.Dir, text)
		cmd.Dir, cmd.Env = "/", []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=/"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("submit as user %d: %v", uid, err)
		}
		return strings.TrimSpace(string(out))
	}
	first, second := submit(1), submit(2)
	ports := map[string]string{}
	for _, line := range diary.Await(2) {
		f := strings.Fields(line)
		if len(f) != 4 || f[3] != "1" {
			t.Fatalf("%q: of its own and others' folders it can read other than one", line)
		}
		ports[f[0]] = f[1]
	}
	if a, b := p.Get(first).Claims[0].Node, p.Get(second).Claims[0].Node; a != b || ports[first] == ports[second] || ports[first] == "" {
		t.Fatalf("on %s and %s, at ports %v", a, b, ports)
	}
	answers := func(job string) bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+ports[job])
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}
	p.Change(api.VerbCancel, first, nil)
	p.Ends(first, "CANCELLED")
	p.Settle()
	if j := p.Get(second); j.State != "RUNNING" || !answers(second) || answers(first) {
		t.Errorf("after the end of the first, the second is %s and answers: %v; the first answers: %v", j.State, answers(second), answers(first))
	}
	gate.Open()
	p.Ends(second, "COMPLETED")
	if answers(second) {
		t.Error("Ray lives on after the driver's end")
	}
}
