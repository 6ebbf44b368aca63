package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/test/testcluster"
)

// daemon is a process of a lab that a test may kill and begin again.
type daemon struct {
	name  string
	who   id
	here  bool     // of this machine's Debian, whatever the lab's
	words []string // the command
	env   []string
	up    func(context.Context) bool // nil: nothing to wait for
	alone bool                       // nobody may be up when it begins
	after func(context.Context) error

	cmd  *exec.Cmd
	pid  int
	over chan struct{} // closed when it has ended
}

// onHost begins a node's daemon on a host of its name: MPI takes processes of one host for
// neighbours, and their files in /dev/shm bear its name.
const onHost = `echo "$0" >/proc/sys/kernel/hostname && exec "$@"`

// apart has it see a disk of its own, too.
const apart = `mount --bind "$1" "$2" && shift 2 && `

// daemonOrder are the daemons in the order in which they begin: those that others wait for, and
// the others.
func (l *Lab) daemonOrder() (first, last []*daemon) {
	env := l.Env
	if !l.modern {
		first = append(first, &daemon{
			name: "munged", here: true,
			words: []string{
				"munged", "--foreground", "--force", "--num-threads=4", "--key-file=" + l.Dir + "/munge.key", "--socket=" + l.Dir + "/munge.sock",
				"--pid-file=" + l.Dir + "/run/munged.pid", "--log-file=" + l.Dir + "/log/munged.log", "--seed-file=" + l.Dir + "/munge.seed",
			},
			up: func(ctx context.Context) bool {
				return exec.CommandContext(ctx, "munge", "-n", "-S", l.Dir+"/munge.sock").Run() == nil
			},
		})
	}
	sql := &daemon{
		name: "mariadbd", here: true,
		words: []string{
			"mariadbd", "--no-defaults", "--user=mysql", "--datadir=" + l.Dir + "/sql", "--socket=" + l.Dir + "/sql/my.sock", "--pid-file=" + l.Dir + "/sql/my.pid",
			fmt.Sprintf("--port=%d", l.ports.portOf(sqlPort)), "--bind-address=127.0.0.1", "--innodb-buffer-pool-size=128M", "--innodb-lock-wait-timeout=900",
			"--innodb-flush-log-at-trx-commit=2", "--innodb-log-file-size=32M", "--tmpdir=" + l.Dir + "/sql",
		},
		up:    func(ctx context.Context) bool { return l.runSQL(ctx, "select 1") == nil },
		after: l.grantDatabase,
	}
	dbd := &daemon{name: "slurmdbd", who: l.slurm, env: env, words: []string{"/usr/sbin/slurmdbd", "-D"}, up: isListening(l.ports.portOf(dbdPort)), after: l.registerCluster}
	ctld := &daemon{
		name: "slurmctld", who: l.slurm, env: env, words: []string{"/usr/sbin/slurmctld", "-D", "-f", l.Conf},
		up: func(ctx context.Context) bool {
			out, err := l.Try(ctx, "scontrol", "ping")
			return err == nil && strings.Contains(out, "is UP")
		},
	}
	first = append(first, sql, dbd, ctld)
	for _, n := range l.Nodes {
		words := []string{"unshare", "--uts", "sh", "-c", onHost, n}
		if l.apart {
			words = []string{"unshare", "--uts", "--mount", "--propagation=unchanged", "sh", "-c", apart + onHost, n, l.Disk(n), l.Disk("own")}
		}
		last = append(last, &daemon{name: "slurmd." + n, env: env, words: append(words, "/usr/sbin/slurmd", "-D", "-N", n, "-f", l.Conf)})
	}
	return first, append(last, l.restDaemon())
}

// restDaemon is slurmrestd, which refuses to be root or Slurm's user.
func (l *Lab) restDaemon() *daemon {
	d := &daemon{
		name: "slurmrestd", who: id{65534, 65534}, env: append([]string{"SLURM_JWT=daemon"}, l.Env...),
		words: []string{"/usr/sbin/slurmrestd", "-f", l.Conf, "-a", "rest_auth/jwt", "-s", "openapi/v0.0.38", fmt.Sprintf("127.0.0.1:%d", l.ports.portOf(restPort))},
		up:    isListening(l.ports.portOf(restPort)),
	}
	if l.modern {
		d.words[6] = "openapi/slurmctld,openapi/slurmdbd"
	} else {
		d.words[6] = "openapi/v0.0.38,openapi/dbv0.0.38"
	}
	return d
}

// REST is slurmrestd's address.
func (l *Lab) REST() string { return fmt.Sprintf("http://127.0.0.1:%d", l.ports.portOf(restPort)) }

// Token is a token of a user's for slurmrestd, good for an hour.
func (l *Lab) Token(t testing.TB, user string) string {
	t.Helper()
	_, token, ok := strings.Cut(l.Run(t, "scontrol", "token", "username="+user, "lifespan=3600"), "SLURM_JWT=")
	if !ok {
		t.Fatal("scontrol token says no SLURM_JWT")
	}
	return token
}

// isListening reports whether somebody answers on a port.
func isListening(port int) func(context.Context) bool {
	return func(context.Context) bool {
		c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}
}

// startDaemon starts a daemon and waits until it answers.
func (l *Lab) startDaemon(ctx context.Context, d *daemon) error {
	if d.name == "mariadbd" {
		if err := l.installSQL(ctx); err != nil {
			return err
		}
	}
	if err := l.runDaemon(d); err != nil {
		return err
	}
	l.mu.Lock()
	l.daemons[d.name] = d
	l.mu.Unlock()
	if err := l.awaitAnswer(ctx, d); err != nil {
		return err
	}
	if d.after != nil {
		return d.after(ctx)
	}
	return nil
}

// awaitAnswer waits until a daemon does.
func (l *Lab) awaitAnswer(ctx context.Context, d *daemon) error {
	if d.up == nil {
		return nil
	}
	ended := false
	err := testcluster.Await(ctx, d.name, func() bool {
		select {
		case <-d.over:
			ended = true
			return true
		default:
			return d.up(ctx)
		}
	})
	if ended {
		return fmt.Errorf("%s ended at once: %s", d.name, d.cmd.ProcessState)
	}
	return err
}

// runDaemon begins a daemon's process.
func (l *Lab) runDaemon(d *daemon) error {
	out, err := os.OpenFile(filepath.Join(l.Dir, "log", d.name+".out"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	h := *l.hold
	if d.here {
		h.root = ""
	}
	words := append(h.userCommand(d.who.uid, d.who.gid), d.words...)
	d.cmd = exec.Command(words[0], words[1:]...)
	d.cmd.Env = append(append(os.Environ(), "PATH=/usr/sbin:/usr/bin:/sbin:/bin"), d.env...)
	d.cmd.Dir = "/"
	d.cmd.Stdout, d.cmd.Stderr = out, out
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL} // nsenter may be stopped when the test is killed
	if err := testcluster.Start(d.cmd); err != nil {
		return err
	}
	d.over = make(chan struct{})
	go func() { _ = d.cmd.Wait(); close(d.over) }()
	d.pid, err = childOf(d.cmd.Process.Pid)
	return err
}

// Kill ends a daemon with no chance to act: "slurmctld", "slurmdbd", "slurmrestd",
// "slurmd.NODE". Begin begins it again.
func (l *Lab) Kill(t testing.TB, name string) {
	t.Helper()
	d := l.daemonByName(t, name)
	if err := syscall.Kill(d.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
	d.awaitExit()
}

// awaitExit waits until a daemon that was killed has ended, and whoever stands behind it.
func (d *daemon) awaitExit() {
	for { // nsenter, its parent, stops itself with a child that is stopped
		_ = d.cmd.Process.Signal(syscall.SIGCONT)
		select {
		case <-d.over:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Begin begins a daemon again that was killed, and waits until it answers.
func (l *Lab) Begin(t testing.TB, name string) {
	t.Helper()
	d := l.daemonByName(t, name)
	if d.alone { // a child of the one that was killed may have its socket for a moment
		if err := testcluster.Await(t.Context(), "the end of "+name, func() bool { return !d.up(t.Context()) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.runDaemon(d); err != nil {
		t.Fatal(err)
	}
	if err := l.awaitAnswer(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// Freeze stops a daemon from answering, while its connections stay, and Thaw lets it go on.
func (l *Lab) Freeze(t testing.TB, name string) { l.signalDaemon(t, name, syscall.SIGSTOP) }

// Thaw is Freeze's opposite.
func (l *Lab) Thaw(t testing.TB, name string) { l.signalDaemon(t, name, syscall.SIGCONT) }

func (l *Lab) signalDaemon(t testing.TB, name string, s syscall.Signal) {
	t.Helper()
	d := l.daemonByName(t, name)
	if err := syscall.Kill(d.pid, s); err != nil {
		t.Fatal(err)
	}
	if s == syscall.SIGCONT { // nsenter stops with its child, and would not hear of its end
		if err := syscall.Kill(d.cmd.Process.Pid, s); err != nil {
			t.Fatal(err)
		}
	}
}

// CPU is how much processor time a daemon has used.
func (l *Lab) CPU(t testing.TB, name string) time.Duration {
	t.Helper()
	return testcluster.CPU(t, l.daemonByName(t, name).pid)
}

func (l *Lab) daemonByName(t testing.TB, name string) *daemon {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.daemons[name]
	if d == nil {
		t.Fatalf("the cluster has no %s", name)
	}
	return d
}

// installSQL makes an empty database. The first one of a version of MariaDB is kept in the cache, and
// others are copies of it: to make one takes as long as to start all else of a lab.
func (l *Lab) installSQL(ctx context.Context) error {
	kept := keptSQL()
	if _, err := os.Stat(kept); kept != "" && err == nil {
		return copySQL(ctx, kept+"/.", l.Dir+"/sql")
	}
	out, err := exec.CommandContext(ctx, "mariadb-install-db", "--no-defaults", "--user=mysql", "--datadir="+l.Dir+"/sql", "--skip-test-db",
		"--auth-root-authentication-method=normal", "--innodb-log-file-size=32M", "--tmpdir="+l.Dir+"/sql").CombinedOutput()
	if err != nil {
		return fmt.Errorf("mariadb-install-db: %w: %s", err, out)
	}
	if kept == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		return err
	}
	part, err := os.MkdirTemp(filepath.Dir(kept), ".sql-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(part)
	if err := copySQL(ctx, l.Dir+"/sql/.", part); err != nil {
		return err
	}
	if err := os.Rename(part, kept); err != nil && !errors.Is(err, fs.ErrExist) { // another lab was first
		return err
	}
	return nil
}

// keptSQL is the folder of the empty database of this machine's MariaDB; empty: there is no cache.
func keptSQL() string {
	cache := os.Getenv("COX_CACHE")
	if home, err := os.UserHomeDir(); cache == "" && err == nil {
		cache = filepath.Join(home, ".cache", "coxswain")
	}
	info, err := os.Stat("/usr/sbin/mariadbd")
	if err != nil || cache == "" {
		return ""
	}
	return filepath.Join(cache, "slurm-sql", fmt.Sprintf("%d-%d", info.Size(), info.ModTime().Unix()))
}

func copySQL(ctx context.Context, from, to string) error {
	if out, err := exec.CommandContext(ctx, "cp", "-a", "--sparse=always", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy the empty database: %w: %s", err, out)
	}
	return nil
}

func (l *Lab) runSQL(ctx context.Context, text string) error {
	out, err := exec.CommandContext(ctx, "mariadb", "--no-defaults", "-uroot", "-h127.0.0.1", fmt.Sprintf("-P%d", l.ports.portOf(sqlPort)), "-e", text).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mariadb: %w: %s", err, out)
	}
	return nil
}

// grantDatabase lets slurmdbd in.
func (l *Lab) grantDatabase(ctx context.Context) error {
	var b strings.Builder
	for _, from := range []string{"127.0.0.1", "localhost"} {
		fmt.Fprintf(&b, "create or replace user slurm@'%s' identified by 'lab'; grant all on slurm_acct_db.* to slurm@'%[1]s';", from)
	}
	return l.runSQL(ctx, b.String())
}

// registerCluster names the cluster to accounting.
func (l *Lab) registerCluster(ctx context.Context) error {
	_, err := l.Try(ctx, "sacctmgr", "-i", "-Q", "add", "cluster", "lab")
	return err
}
