package security

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/server/config"
)

// victim is anna's job as an attacker may know it: its processes and its folder.
type victim struct {
	name  string // of the job
	dir   string
	pids  []string
	alloc string // the file that tells its processes what it holds
	seat  string
	goOn  string // the job ends when it is there
}

// startVictim starts a job that waits with a secret in its environment, with a step.
func (m *machine) startVictim(anna *identity) *victim {
	m.t.Helper()
	v := &victim{dir: home(m.t, annaUID)}
	v.goOn = filepath.Join(v.dir, "go")
	v.name = m.submit(anna, &api.Submit{
		Text: "#!/bin/sh\n# " + canaries["script"] + "\necho $$ > pids\nsrun sh -c 'echo $$ >> pids; echo $COX_ALLOC > alloc; touch up; while test ! -e go; do sleep 0.05; done; echo rank done'\necho batch done\n",
		File: "job.sh", Dir: v.dir, Environ: []string{"PATH=/usr/bin:/bin", "SECRET=" + canaries["env"]}, Args: []string{"--output=out", "--time=10"},
	})
	eventually(m.t, "anna's job runs", func() bool { _, err := os.Stat(filepath.Join(v.dir, "up")); return err == nil })
	for name, to := range map[string]func(string){
		"pids": func(s string) { v.pids = strings.Fields(s) }, "alloc": func(s string) { v.alloc = strings.TrimSpace(s) },
	} {
		b, err := os.ReadFile(filepath.Join(v.dir, name))
		if err != nil {
			m.t.Fatal(err)
		}
		to(string(b))
	}
	v.seat = filepath.Dir(v.alloc)
	if len(v.pids) != 2 || v.alloc == "" {
		m.t.Fatalf("%+v", v)
	}
	return v
}

// finish lets the job end, and fails the test if anything happened to it.
func (m *machine) finish(anna *identity, v *victim) {
	m.t.Helper()
	if err := os.WriteFile(v.goOn, nil, 0o600); err != nil {
		m.t.Fatal(err)
	}
	j := m.ended(anna, v.name)
	b, err := os.ReadFile(filepath.Join(v.dir, "out"))
	if err != nil || j.State != "COMPLETED" || string(b) != "rank done\nbatch done\n" {
		m.t.Errorf("anna's job is %s, exit %s: %q, %v", j.State, j.Exit, b, err)
	}
}

// attack runs commands of the shell as a job of ben's and returns what each said. A
// command that succeeds says so in a line of its own.
func (m *machine) attack(ben *identity, commands map[string]string) map[string]string {
	m.t.Helper()
	dir := home(m.t, benUID)
	var b strings.Builder
	b.WriteString("#!/bin/sh\n")
	for what, cmd := range commands {
		fmt.Fprintf(&b, "{ %s\n} > %q 2>&1 && echo SUCCEEDED >> %q\n", cmd, what, what)
	}
	name := m.submit(ben, &api.Submit{Text: b.String(), File: "attack.sh", Dir: dir, Environ: []string{"PATH=/usr/bin:/bin"}, Args: []string{"--output=out", "--time=10"}})
	m.ended(ben, name)
	out := map[string]string{}
	for what := range commands {
		text, err := os.ReadFile(filepath.Join(dir, what))
		if err != nil {
			log, _ := os.ReadFile(filepath.Join(dir, "out"))
			m.t.Fatalf("%s was not tried: %v\n%s", what, err, log)
		}
		out[what] = string(text)
	}
	return out
}

// TestAUsersJobCannotTouchAnothers lets a job of one user try what it can on the job of
// another, on a machine that both share.
func TestAUsersJobCannotTouchAnothers(t *testing.T) {
	onlyRoot(t)
	m := newMachine(t, nil)
	anna, ben := m.as(annaUID), m.as(benUID)
	v := m.startVictim(anna)
	commands := map[string]string{}
	for i, pid := range v.pids {
		for what, cmd := range map[string]string{
			"kill": "kill -9 ", "stop": "kill -STOP ", "ask": "kill -0 ", "group": "kill -9 -- -",
			"environ": "cat /proc/%s/environ #", "maps": "cat /proc/%s/maps #", "memory": "dd bs=1 count=1 if=/proc/%s/mem #", "cwd": "ls /proc/%s/cwd/ #",
			"descriptors": "ls /proc/%s/fd/ #", "root": "ls /proc/%s/root/ #", "nice": "renice 5 ", "limits": "prlimit --nofile=1 --pid ", "affinity": "taskset -p 1 ", "trace": "cat /proc/%s/syscall #",
		} {
			if strings.Contains(cmd, "%s") {
				cmd = fmt.Sprintf(cmd, pid)
			}
			commands[fmt.Sprintf("%s.%d", what, i)] = cmd + pid
		}
	}
	for what, name := range map[string]string{
		"alloc": v.alloc, "script": v.seat + "/script", "journal": v.seat + "/journal", "words": v.seat + "/log", "attempts": m.state + "/engine/attempts",
		"database": m.state + "/journal.db", "token": m.state + "/token", "lock": m.state + "/lock", "output": v.dir + "/out", "enginelock": m.state + "/engine/lock", "epoch": m.state + "/engine/epoch",
	} {
		commands["read."+what], commands["write."+what], commands["link."+what] = "cat "+name, "echo x >> "+name, "ln "+name+" hard."+what+" && cat hard."+what
	}
	for what, dir := range map[string]string{"state": m.state, "engine": m.state + "/engine", "seats": m.state + "/engine/s", "ranks": m.state + "/engine/ranks", "seat": v.seat, "home": v.dir} {
		commands["list."+what], commands["make."+what], commands["remove."+what] = "ls "+dir+"/", "touch "+dir+"/new", "rm -rf "+dir+"/* && rmdir "+dir
	}
	commands["bin"] = "cp /bin/sh " + m.state + "/engine/bin/srun"
	commands["cgroup"] = `for f in /sys/fs/cgroup/*/cox.*/tasks /sys/fs/cgroup/cox.*/cgroup.procs /sys/fs/cgroup/*/cox.*/memory.limit_in_bytes /sys/fs/cgroup/*/cox.*/pids.max; do echo 0 > $f && exit 0; done; false`
	commands["step"] = "COX_ALLOC=" + v.alloc + " SLURM_JOB_ID=" + v.name + " srun true"
	for what, said := range m.attack(ben, commands) {
		if strings.Contains(said, "SUCCEEDED") || len(found(said)) > 0 {
			t.Errorf("%s: %q", what, said)
		}
	}

	// By its sockets, as ben and as anna herself where they are not for users.
	for _, c := range []struct {
		socket string
		uid    int
	}{{"s", benUID}, {"c", benUID}, {"c", annaUID}} {
		err := inThread(c.uid, func() {
			conn, err := net.Dial("unix", filepath.Join(v.seat, c.socket))
			if !errors.Is(err, unix.EACCES) {
				t.Errorf("user %d at the socket %s: %v", c.uid, c.socket, err)
			}
			if conn != nil {
				_ = conn.Close()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	// By the API.
	for _, verb := range []string{"cancel", "hold", "requeue", "signal", "suspend", "top"} {
		_, text := ask(t, ben, http.MethodPost, "/v1/jobs/change", fmt.Sprintf(`{"select":{"ids":[%q]},"verb":%q,"signal":"KILL"}`, v.name, verb))
		var ch api.Changed
		if err := json.Unmarshal([]byte(text), &ch); err != nil || ch.Changed != 0 || len(ch.Errors) != 1 || ch.Errors[0].Error.Status != http.StatusForbidden {
			t.Errorf("%s: %s", verb, text)
		}
	}
	for _, path := range []string{"script", "environment", "logs", "logs?rank=0", "logs?stream=stderr"} {
		if resp, text := ask(t, ben, http.MethodGet, "/v1/jobs/"+v.name+"/"+path, ""); resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s %s", path, resp.Status, text)
		}
	}
	if resp, text := ask(t, ben, http.MethodPost, "/v1/jobs/"+v.name+"/exec", ""); resp.StatusCode != http.StatusForbidden {
		t.Errorf("exec: %s %s", resp.Status, text)
	}
	m.finish(anna, v)
}

// TestAUsersJobCannotStarveAnothers forks without end and takes memory without end, each
// within a bound, while another's job goes on and starts steps.
func TestAUsersJobCannotStarveAnothers(t *testing.T) {
	onlyRoot(t)
	m := newMachine(t, func(_ *machine, c *config.Config) { c.Jobs.Processes = 200 })
	anna, ben := m.as(annaUID), m.as(benUID)
	_, text := ask(t, anna, http.MethodGet, "/v1", "")
	v := m.startVictim(anna)
	hog := func(script string, args ...string) *api.Job {
		t.Helper()
		dir := home(t, benUID)
		name := m.submit(ben, &api.Submit{Text: "#!/bin/sh\n" + script, File: "hog.sh", Dir: dir, Environ: []string{"PATH=/usr/bin:/bin"}, Args: append(args, "--output=out", "--time=10")})
		j := m.ended(ben, name)
		b, _ := os.ReadFile(filepath.Join(dir, "out"))
		t.Logf("%s %s: %.300s", j.State, j.Message, b)
		return j
	}
	if strings.Contains(text, "processes is not bounded") {
		t.Log("not tried: this machine cannot bound processes")
	} else {
		// A fork bomb of the shell. Its bound stops it; what it left is killed with it.
		j := hog("bomb() { bomb | bomb & }; bomb; i=0; while test $i -lt 300; do sleep 600 & i=$((i+1)); done\nexit 0\n")
		if j.State == "COMPLETED" {
			t.Errorf("the bomb ended as %s", j.State)
		}
	}
	if strings.Contains(text, "memory is not limited") {
		t.Log("not tried: this machine cannot limit memory")
	} else if j := hog("x=0123456789; while :; do x=$x$x; done\n", "--mem=64M"); j.State != "OUT_OF_MEMORY" && j.State != "FAILED" {
		t.Errorf("the hog ended as %s", j.State)
	}
	m.finish(anna, v)
	if j := hog("srun echo fine\n"); j.State != "COMPLETED" {
		t.Errorf("ben's next job: %s %s", j.State, j.Message)
	}
	var left []string
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if left = processesOf(uint32(benUID)); len(left) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("of ben is left: %q", left)
		}
	}
}

// processesOf are the arguments of a user's processes.
func processesOf(uid uint32) (out []string) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range all {
		var st unix.Stat_t
		// This process itself looks like his if its first thread became one of his.
		if unix.Stat(p, &st) == nil && st.Uid == uid && filepath.Base(p) != fmt.Sprint(os.Getpid()) {
			args, _ := os.ReadFile(p + "/cmdline")
			out = append(out, filepath.Base(p)+" "+string(args))
		}
	}
	return out
}

// TestASupervisorOutlivesWhatItsJobSays sends nonsense to the supervisor of one's own
// job: it must neither end nor grow, since it is root's.
func TestASupervisorOutlivesWhatItsJobSays(t *testing.T) {
	onlyRoot(t)
	m := newMachine(t, nil)
	anna := m.as(annaUID)
	v := m.startVictim(anna)
	var open []net.Conn
	err := inThread(annaUID, func() {
		for i := range 300 {
			c, err := net.Dial("unix", filepath.Join(v.seat, "s"))
			if err != nil {
				t.Errorf("connection %d: %v", i, err)
				return
			}
			open = append(open, c)
			_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
			// A hello of two GiB, and one that never comes.
			if i%2 == 0 {
				_, _ = c.Write([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff})
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	m.finish(anna, v)
	for _, c := range open {
		_ = c.Close()
	}
}
