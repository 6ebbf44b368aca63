package daemon

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/holder"
	"github.com/coxswain-sched/coxswain/agent/step/srun"
	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/server/notify"
	"github.com/coxswain-sched/coxswain/store/upload"
)

// TestMain lets the test binary stand in for the supervisor, for srun and for a replica of a service.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "srun" {
		os.Exit(srun.Main(os.Args[1:], step.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	}
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		os.Exit(local.SuperviseMain(os.Args[2:]))
	}
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "task-init":
			os.Exit(barrier.Main(os.Args[2:]))
		case holder.Command:
			os.Exit(holder.Main(os.Args[2:]))
		case "replica":
			replicaMain(os.Args[2])
		}
	}
	os.Exit(m.Run())
}

// up starts a server over a state directory and returns a client of it and what
// stops it.
func up(t *testing.T, dir string, change func(*config.Config)) (*client.Client, func() error) {
	t.Helper()
	return upReady(t, dir, change, func(Info) {})
}

func upReady(t *testing.T, dir string, change func(*config.Config), said func(Info)) (*client.Client, func() error) {
	t.Helper()
	cfg := config.Default()
	cfg.State.Dir, cfg.Listen.Socket, cfg.Listen.TCP = dir, filepath.Join(dir, "cox.sock"), "none"
	cfg.Room.Nodes, cfg.Room.ByAddress = 2, true
	if change != nil {
		change(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan Info, 1), make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{Config: cfg, Version: "test", Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Ready: func(i Info) { said(i); ready <- i }})
	}()
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		t.Fatalf("the server did not start: %v", err)
	}
	c, err := client.New(client.Options{Socket: cfg.Listen.Socket})
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop := func() error {
		if stopped {
			return nil
		}
		stopped = true
		c.Close()
		cancel()
		return <-ended
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return c, stop
}

func submit(t *testing.T, c *client.Client, dir, script string, args ...string) *api.Submitted {
	t.Helper()
	got, err := c.Submit(t.Context(), &api.Submit{Form: api.FormSbatch, File: "job.sh", Text: script, Args: args, Dir: dir, Environ: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A server tells its own webhook of every job, and that of a job of this job alone; it goes on after a
// restart. A webhook that the site's policy does not allow is refused at submission, at its line.
//
// Seen to fail with: a follower that does not know the jobs of before the restart.
func TestWebhooks(t *testing.T) {
	dir := t.TempDir()
	came := make(chan notify.Payload, 20)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var p notify.Payload
		if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
			t.Error(err)
		}
		p.Server += r.URL.Path
		came <- p
	}))
	defer receiver.Close()
	state := filepath.Join(dir, "state")
	change := func(cfg *config.Config) {
		cfg.Name = "c1"
		cfg.Notify.Webhooks = []config.Webhook{{URL: receiver.URL + "/site", On: []string{"end"}}}
		cfg.Notify.JobWebhooks = []string{"127.0.0.1"}
	}
	await := func(want ...string) {
		t.Helper()
		got := map[string]bool{}
		for range want {
			select {
			case p := <-came:
				got[strings.TrimSpace(p.Server+" "+p.Event+" "+p.Job.ID+" "+p.Job.State+" "+p.Job.Error)] = true
			case <-time.After(2 * time.Minute):
				t.Fatalf("%v came of %v", got, want)
			}
		}
		for _, w := range want {
			if !got[w] {
				t.Errorf("%q is not among %v", w, got)
			}
		}
	}
	c, stop := up(t, state, change)
	quiet := submit(t, c, dir, "#!/bin/sh\nexit 0\n", "--output=/dev/null")
	await("c1/site end 1 COMPLETED")
	begun := filepath.Join(dir, "go")
	text := "script: 'until [ -e " + begun + " ]; do sleep 0.05; done; echo boom >&2; exit 3'\noutput: job.log\nnotify:\n  webhook: " + receiver.URL + "/job\n"
	got, err := c.Submit(t.Context(), &api.Submit{Form: api.FormNative, File: "job.yaml", Text: text, Dir: dir, Environ: os.Environ()})
	if err != nil || got.ID != quiet.ID+1 || len(got.Warnings) > 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	await("c1/job begin 2 RUNNING")
	if err := stop(); err != nil {
		t.Error(err)
	}
	c, _ = up(t, state, change)
	if err := os.WriteFile(begun, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	await("c1/job fail 2 FAILED boom", "c1/site fail 2 FAILED boom")
	if j, err := c.Job(t.Context(), "2"); err != nil || j.Spec.Notify == nil || j.Spec.Notify.Webhook != receiver.URL+"/job" {
		t.Errorf("the owner sees %+v, %v", j, err)
	}
	text = "command: [true]\nnotify:\n  webhook: https://example.org/x\n"
	_, err = c.Submit(t.Context(), &api.Submit{Form: api.FormNative, File: "job.yaml", Text: text, Dir: dir})
	if err == nil || !strings.Contains(err.Error(), `job.yaml:3:12: notify.webhook: "example.org" is not among the hosts that the site's policy allows`) {
		t.Errorf("%v", err)
	}
	_, err = c.Submit(t.Context(), &api.Submit{Form: api.FormCommand, Command: []string{"true"}, Dir: dir, Notify: &job.Notify{Webhook: "https://example.org/x"}})
	if fault.KindOf(err) != fault.Permission || !strings.Contains(err.Error(), `--notify-url: "example.org" is not among`) || !strings.Contains(fault.Remedy(err), "notify.job_webhooks") {
		t.Errorf("%v (%s)", err, fault.Remedy(err))
	}
}

func TestMailIsSentByTheCommand(t *testing.T) {
	dir := t.TempDir()
	mail := filepath.Join(dir, "mail.sh")
	box := filepath.Join(dir, "box")
	script := "#!/bin/sh\n{ echo \"to $3: $2\"; cat; } > " + box + "\n"
	if err := errors.Join(syscall.Mkfifo(box, 0o600), os.WriteFile(mail, []byte(script), 0o700)); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	came := make(chan string, 1)
	go func() { // it opens when the mail comes
		text, err := os.ReadFile(box)
		if err != nil {
			t.Error(err)
		}
		came <- string(text)
	}()
	c, stop := up(t, filepath.Join(dir, "state"), func(cfg *config.Config) {
		cfg.Notify.Command, cfg.Notify.Domain = []string{mail}, "example.org"
	})
	got := submit(t, c, dir, "#!/bin/sh\nexit 3\n", "--mail-type=END", "--mail-user=anna", "--output=/dev/null", "--job-name=post")
	if j, err := c.Wait(t.Context(), got.ID.String()); err != nil || j.State != "FAILED" {
		t.Fatalf("%+v, %v", j, err)
	}
	var text string
	select {
	case text = <-came:
	case <-time.After(2 * time.Minute):
		t.Fatal("no mail came")
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(text, "to anna@example.org: ") || !strings.Contains(text, "post") || !strings.Contains(text, "FAILED") {
		t.Errorf("the mail is\n%s", text)
	}
}

func TestVariablesThatTheSiteDoesNotKeep(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CANARY_TOKEN", "canary-7f3a")
	c, stop := up(t, filepath.Join(dir, "state"), func(cfg *config.Config) { cfg.Jobs.Environment.Filter = true })
	got := submit(t, c, dir, "#!/bin/sh\necho \"<$CANARY_TOKEN>\"\n", "--output="+filepath.Join(dir, "out"))
	j, err := c.Wait(t.Context(), got.ID.String())
	if err != nil || j.State != "COMPLETED" {
		t.Fatalf("%+v, %v", j, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "out")); err != nil || string(text) != "<>\n" {
		t.Errorf("the job saw %q, %v", text, err)
	}
	if p := j.Spec.Provenance; p == nil || !strings.Contains(strings.Join(p.Notes, "\n"), "CANARY_TOKEN") {
		t.Errorf("nothing is noted: %+v", p)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "bin" {
			return filepath.SkipDir // this very binary
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), "canary-7f3a") {
			t.Errorf("%s holds the secret", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func asText(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestAnotherUser: values of his environment are his own, and what may not be submitted is not reached by an update.
func TestAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("another user's job needs root")
	}
	dir := t.TempDir()
	ready := make(chan string, 1)
	root, _ := upReady(t, filepath.Join(dir, "state"), func(cfg *config.Config) {
		cfg.Listen.TCP = "127.0.0.1:0"
		cfg.Partitions = []config.Partition{
			{Name: "short", TimeLimit: config.Duration(time.Hour)}, {Name: "long", TimeLimit: config.Duration(10 * time.Hour)},
		}
	}, func(i Info) { ready <- i.TCP })
	made, err := root.NewToken(t.Context(), &api.NewToken{User: "nobody"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{URL: "http://" + <-ready, Token: made.Secret})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got := submit(t, c, "/", "#!/bin/sh\ntrue\n", "--hold", "--output=/dev/null")
	other := submit(t, root, "/", "#!/bin/sh\ntrue\n", "--hold", "--output=/dev/null", "--export=ALL,CANARY=canary-1f")
	if j, err := c.Job(t.Context(), other.ID.String()); err != nil || strings.Contains(asText(t, j), "canary-1f") || !strings.Contains(asText(t, j), "CANARY") {
		t.Errorf("what another user sees of the environment: %v\n%s", err, asText(t, j))
	}
	if page, err := c.JobsPage(t.Context(), client.Query{}); err != nil || strings.Contains(asText(t, page), "canary-1f") {
		t.Errorf("what another user sees in a list: %v", err)
	}
	if j, err := root.Job(t.Context(), other.ID.String()); err != nil || !strings.Contains(asText(t, j), "canary-1f") {
		t.Errorf("what the owner sees of the environment: %v", err)
	}
	if a, err := root.Audit(t.Context(), 0, 100); err != nil || strings.Contains(asText(t, a), "canary-1f") {
		t.Errorf("the audit holds a value: %v", err)
	}
	seconds := func(h float64) *float64 { s := h * 3600; return &s }
	tests := []struct {
		name   string
		update api.Update
		want   string
	}{
		{"longer than the partition", api.Update{TimeLimit: seconds(2)}, "at most 01:00:00"},
		{"no limit", api.Update{TimeLimit: seconds(0)}, "at most 01:00:00"},
		{"cut by a minimum", api.Update{TimeLimit: seconds(2), TimeMin: seconds(0.5)}, "at most 01:00:00"},
		{"shorter", api.Update{TimeLimit: seconds(0.5)}, ""},
		{"another partition with more", api.Update{TimeLimit: seconds(5), Partitions: []string{"long"}}, ""},
		{"back with too much", api.Update{Partitions: []string{"short"}}, "at most 01:00:00"},
	}
	for _, tt := range tests {
		change := &api.Change{Select: api.Select{IDs: []string{got.ID.String()}}, Verb: api.VerbUpdate, Update: &tt.update}
		done, err := c.Change(t.Context(), change)
		text := ""
		if err != nil {
			text = err.Error()
		} else if len(done.Errors) > 0 {
			text = done.Errors[0].Error.Detail
		}
		if tt.want == "" && text != "" || !strings.Contains(text, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, text, tt.want)
		}
	}
	change := &api.Change{Select: api.Select{IDs: []string{got.ID.String()}}, Verb: api.VerbUpdate, Update: &api.Update{TimeLimit: seconds(100)}}
	if done, err := root.Change(t.Context(), change); err != nil || done.Changed != 1 {
		t.Errorf("an administrator: %+v, %v", done, err)
	}
}

// uploadsOf are the directories that came with jobs, in a state directory.
func uploadsOf(state string) *upload.Store {
	return upload.NewStore(filepath.Join(state, "uploads"), 1<<20, 1<<20).On(func(string) (int64, int64, error) { return 1 << 40, 1 << 40, nil })
}

func TestBackupIsRestored(t *testing.T) {
	dir := t.TempDir()
	c, stop := up(t, filepath.Join(dir, "state"), nil)
	first := submit(t, c, dir, "#!/bin/sh\necho kept\n", "--output=/dev/null")
	if _, err := c.Wait(t.Context(), first.ID.String()); err != nil {
		t.Fatal(err)
	}
	held := submit(t, c, dir, "#!/bin/sh\necho held\n", "--hold", "--output="+filepath.Join(dir, "held.out"))
	came := []byte("a directory that came with a job")
	digest := fmt.Sprintf("%x", sha256.Sum256(came))
	if err := uploadsOf(filepath.Join(dir, "state")).Put(1000, digest, int64(len(came)), bytes.NewReader(came), nil); err != nil {
		t.Fatal(err)
	}
	done, err := c.Backup(t.Context(), api.Backup{Dir: filepath.Join(dir, "backup")})
	if err != nil || done.Seq == 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	later := submit(t, c, dir, "#!/bin/sh\ntrue\n", "--hold")
	if _, err := Restore(t.Context(), done.Dir, config.State{Dir: filepath.Join(dir, "state")}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("restored over a server: %v", err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), done.Dir, config.State{Dir: filepath.Join(dir, "state")}); fault.KindOf(err) != fault.Conflict || fault.Remedy(err) == "" {
		t.Errorf("restored over a state: %v", err)
	}
	if _, err := Restore(t.Context(), done.Dir, config.State{Dir: filepath.Join(dir, "new")}); err != nil {
		t.Fatal(err)
	}
	c, _ = up(t, filepath.Join(dir, "new"), nil)
	if j, err := c.Job(t.Context(), first.ID.String()); err != nil || j.State != "COMPLETED" {
		t.Errorf("%+v, %v", j, err)
	}
	if _, err := c.Job(t.Context(), later.ID.String()); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a job of after the backup: %v", err)
	}
	if n, err := uploadsOf(filepath.Join(dir, "new")).Touch(1000, digest); err != nil || n != int64(len(came)) {
		t.Errorf("a directory that came with a job: %d bytes, %v", n, err)
	}
	if _, err := c.Change(t.Context(), &api.Change{Select: api.Select{IDs: []string{held.ID.String()}}, Verb: api.VerbRelease}); err != nil {
		t.Fatal(err)
	}
	if j, err := c.Wait(t.Context(), held.ID.String()); err != nil || j.State != "COMPLETED" {
		t.Errorf("%+v, %v", j, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "held.out")); err != nil || string(text) != "held\n" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestWhatKeepsAServerFromStarting(t *testing.T) {
	dir := t.TempDir()
	_, _ = up(t, filepath.Join(dir, "state"), nil)
	refused := func(change func(*config.Config)) error {
		cfg := config.Default()
		cfg.State.Dir, cfg.Listen.Socket, cfg.Listen.TCP = filepath.Join(dir, "other"), filepath.Join(dir, "other.sock"), "none"
		change(&cfg)
		return Run(t.Context(), Options{Config: cfg, Log: slog.New(slog.DiscardHandler), Ready: func(Info) { t.Error("it started") }})
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	broken := filepath.Join(dir, "broken")
	if err := os.MkdirAll(broken, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(broken, "journal.db"), []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		change func(*config.Config)
		want   string
	}{
		{"the directory of another server", func(c *config.Config) { c.State.Dir = filepath.Join(dir, "state") }, "uses the state directory"},
		{"the socket of another server", func(c *config.Config) { c.Listen.Socket = filepath.Join(dir, "state", "cox.sock") }, "a server answers at"},
		{"a taken port", func(c *config.Config) { c.Listen.TCP = busy.Addr().String() }, "answers at"},
		{"a damaged journal", func(c *config.Config) { c.State.Dir = broken }, "damaged"},
		{"a pool of an unknown kind", func(c *config.Config) { c.Pools = []config.Pool{{Name: "k8s", Engine: "cube"}} }, "did you mean kube?"},
		{"a pool with a setting that there is not", func(c *config.Config) {
			c.Pools = []config.Pool{{Name: "k8s", Engine: "kube", Settings: map[string]any{"insid": true}}}
		}, "pools: k8s: settings: there is no field insid"},
		{"a partition of unknown nodes", func(c *config.Config) { c.Partitions = []config.Partition{{Name: "p", Nodes: "n1"}} }, "there is no node n1"},
	}
	for _, tt := range tests {
		err := refused(tt.change)
		if err == nil || !strings.Contains(err.Error(), tt.want) || fault.Remedy(err) == "" {
			t.Errorf("%s: %v; %s", tt.name, err, fault.Remedy(err))
		}
	}
}

// TestAStateDirectoryOfOthersIsRefused: who owns the folder can exchange what is in it.
func TestAStateDirectoryOfOthersIsRefused(t *testing.T) {
	top := t.TempDir()
	open := filepath.Join(top, "open")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	dirs := []string{open, filepath.Join(open, "state")}
	if os.Getuid() == 0 {
		theirs := filepath.Join(top, "theirs")
		if err := errors.Join(os.Mkdir(theirs, 0o700), os.Chown(theirs, 61001, 61001)); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, theirs, filepath.Join(theirs, "state"))
	}
	for _, dir := range dirs {
		cfg := config.Default()
		cfg.State.Dir, cfg.Listen.Socket, cfg.Listen.TCP = dir, filepath.Join(top, "cox.sock"), "none"
		err := Run(t.Context(), Options{Config: cfg, Log: slog.New(slog.DiscardHandler)})
		if fault.KindOf(err) != fault.Permission || fault.Remedy(err) == "" {
			t.Errorf("%s: %v", dir, err)
		}
		cfg.State.Mine = true
		if err := MakeState(cfg.State); err != nil {
			t.Errorf("%s, which is said to be the server's alone: %v", dir, err)
		}
		cfg.State.Mine = false
		cfg.State.Dir, cfg.Listen.Socket = filepath.Join(top, "state"), filepath.Join(dir, "cox.sock")
		if dir == open || filepath.Dir(dir) == open {
			err = Run(t.Context(), Options{Config: cfg, Log: slog.New(slog.DiscardHandler)})
			if fault.KindOf(err) != fault.Permission || fault.Remedy(err) == "" {
				t.Errorf("socket in %s: %v", dir, err)
			}
		}
	}
}

// TestAVolumeOfTheServersOwn: backups are written to a volume that is said to be the server's
// alone, whatever its mode says, and restored to one; beside it the mode counts.
//
// Seen to fail with: a restore that is not told of mine; a backup that is not; all folders as good
// as the volume; a link out of it that is not followed.
func TestAVolumeOfTheServersOwn(t *testing.T) {
	top := t.TempDir()
	volume, other, beside := filepath.Join(top, "volume"), filepath.Join(top, "other"), filepath.Join(top, "volume2")
	for _, dir := range []string{volume, other, beside} {
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(beside, filepath.Join(volume, "out")); err != nil {
		t.Fatal(err)
	}
	c, stop := up(t, volume, func(c *config.Config) {
		c.State.Mine, c.Listen.Socket = true, filepath.Join(top, "cox.sock")
	})
	done, err := c.Backup(t.Context(), api.Backup{Dir: filepath.Join(volume, "backups", "monday")})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(beside, "monday"), filepath.Join(volume, "out", "monday")} {
		if _, err := c.Backup(t.Context(), api.Backup{Dir: dir}); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), done.Dir, config.State{Dir: other}); fault.KindOf(err) != fault.Permission {
		t.Errorf("a state directory that everybody may write to: %v", err)
	}
	if _, err := Restore(t.Context(), done.Dir, config.State{Dir: other, Mine: true}); err != nil {
		t.Error(err)
	}
}

// A server's garbage collector runs when the heap has grown by half; GOGC says otherwise.
func TestThrifty(t *testing.T) {
	was := debug.SetGCPercent(100)
	defer debug.SetGCPercent(was)
	for _, c := range []struct {
		gogc string
		want int
	}{{"", garbage}, {"70", 100}} { // which the runtime has read when the process began
		t.Setenv("GOGC", c.gogc)
		debug.SetGCPercent(100)
		tuneCollector()
		if got := debug.SetGCPercent(100); got != c.want {
			t.Errorf("GOGC=%q: %d, want %d", c.gogc, got, c.want)
		}
	}
}
