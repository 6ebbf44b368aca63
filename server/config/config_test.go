package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/spec"
)

var update = flag.Bool("update", false, "write docs/reference/configuration.md anew")

func TestAFileOverTheDefaults(t *testing.T) {
	got, err := Parse("cox.yaml", []byte(`
name: lab
state:
  history: 90d
listen:
  tcp: none
room:
  nodes: 4
  memory: 64G
  gpus_per_node: 8
pools:
  - name: k8s
    engine: kube
    settings: {inside: true, namespace: cox, paths: {/home: "pvc:home"}}
partitions:
  - name: gpu
    nodes: v[1-2]
    time_limit: 2d12h
    default_time: 1h
accounts:
  - name: nlp
    users: [anna, ben]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Name, want.State.History, want.Listen.TCP = "lab", Duration(90*24*time.Hour), "none"
	want.Room.Nodes, want.Room.Memory, want.Room.GPUsPerNode = 4, 64<<30, 8
	want.Pools = []Pool{{"k8s", "kube", map[string]any{"inside": true, "namespace": "cox", "paths": map[string]any{"/home": "pvc:home"}}}}
	want.Partitions = []Partition{{Name: "gpu", Nodes: "v[1-2]", TimeLimit: Duration(60 * time.Hour), DefaultTime: Duration(time.Hour)}}
	want.Accounts = []Account{{Name: "nlp", Users: []string{"anna", "ben"}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestErrorsNamePlaceFieldAndRemedy(t *testing.T) {
	tests := []struct{ in, where, want string }{
		{"state:\n  dirr: /x\n", "2:3", "state.dirr: no such field; did you mean dir?"},
		{"stat:\n  dir: /x\n", "1:1", "stat: no such field; did you mean state?"},
		{"partitions:\n  - name: gpu\n    time_limits: 3d\n", "3:5", "partitions.time_limits: no such field; did you mean time_limit?"},
		{"state:\n  journal: 5x\n", "2:12", `state.journal: "5x" is not a length of time: write 90s, 5m, 2h30m, 30d or 1:30:00`},
		{"room:\n  memory: lots\n", "2:11", `room.memory: "lots" is no size`},
		{"room:\n  nodes: many\n", "2:10", `room.nodes: "many" is not a number`},
		{"room:\n  nodes: 5000\n", "2:3", "nodes: 5000 is not between 0 and 1000"},
		{"name: x\nname: y\n", "2:1", `name is given twice, first in line 1`},
		{"a: b: c\n", "1:5", "this value contains a colon and a blank"},
		{"listen:\n  tcp: 0.0.0.0:80\n", "2:3", "not a loopback address"},
		{"state:\n  dir: state\n", "2:3", "not an absolute path"},
		{"room: {nodes: 1, names: [a, b]}\n", "", "2 names for 1 virtual nodes"},
		{"partitions: [{name: a, default: true}, {name: b, default: true}]\n", "1:1", "2 of them are the default"},
		{"pools: [{name: a, engine: kube}, {name: a, engine: kube}]\n", "1:1", "a stands there twice"},
		{"pools:\n  - name: a\n", "1:1", "a: which engine has it?"},
		{"pools:\n  - name: a\n    settings: 3\n", "3:15", "expected fields (name: value), but this is a number"},
		{"log:\n  level: loud\n", "2:3", `"loud" is none of debug`},
		{"notify:\n  command: [mail]\n  smtp: {addr: 'localhost:25'}\n", "2:3", "not by both"},
		{"notify:\n  webhooks:\n    - url: hooks.example.org/x\n", "3:7", "url: is no URL: write it whole"},
		{"notify:\n  webhooks:\n    - url: https://a.org/x\n      on: [start]\n", "4:7", `on: "start" is no event`},
		{"notify:\n  webhooks: [{url: 'https://a.org/', secret_file: key}]\n", "", "not an absolute path"},
		{"notify:\n  job_webhooks: ['https://a.org']\n", "2:3", `"https://a.org" is neither public nor a host`},
		{"jobs:\n  upload: 8G\n", "2:3", "jobs.upload (8G) is more than jobs.uploads (4G)"},
		{"jobs:\n  uploads: 256M\n  upload: 512M\n", "3:3", "jobs.upload (512M) is more than jobs.uploads (256M)"},
		{"- 1\n", "1:1", "expected fields (name: value), but this is a list"},
	}
	for _, tt := range tests {
		_, err := Parse("cox.yaml", []byte(tt.in))
		if err == nil || fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q:\n got %v\nwant %s", tt.in, err, tt.want)
			continue
		}
		var e *spec.Error
		if tt.where == "" {
			continue
		}
		line, col, _ := strings.Cut(tt.where, ":")
		if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), "cox.yaml:"+line+":") || e.Col != int(col[0]-'0') && len(col) == 1 {
			t.Errorf("%q: got %v, want line:column %s", tt.in, err, tt.where)
		}
	}
}

// What a file leaves empty has its default: the file itself, a block whose lines are all
// comments, a field.
func TestWhatIsEmptyIsTheDefault(t *testing.T) {
	for _, in := range []string{"", "# nothing\n", "---\n", "jobs:\n", "jobs:\n  # max_array: 1\nlisten:\n  socket:\n", "log: {level: }\n"} {
		got, err := Parse("cox.yaml", []byte(in))
		if want := Default(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v\n%+v, not %+v", in, err, got, want)
		}
	}
	if got, err := Parse("cox.yaml", []byte("notify:\n  job_webhooks: []\n")); err != nil || len(got.Notify.JobWebhooks) != 0 {
		t.Errorf("an empty list: %v, %v", got.Notify.JobWebhooks, err)
	}
	got, err := Parse("cox.yaml", []byte("jobs:\n  max_array: 7\n  grace:\n"))
	want := Default()
	want.Jobs.MaxArray = 7
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%+v, not %+v", err, got, want)
	}
}

// An archive that is left out has the room of all, where that is less than its default.
//
// Seen to fail with: a default that is compared as if it were said.
func TestAnArchiveThatIsLeftOutFitsTheRoom(t *testing.T) {
	for in, want := range map[string]string{
		"jobs: {uploads: 256M}\n":               "256M",
		"jobs:\n  upload:\n  uploads: 256M\n":   "256M",
		"jobs: {uploads: 8G}\n":                 "512M",
		"jobs: {uploads: 256M, upload: 128M}\n": "128M",
		"jobs: {upload: 1G}\n":                  "1G",
	} {
		if c, err := Parse("cox.yaml", []byte(in)); err != nil || c.Jobs.Upload.String() != want {
			t.Errorf("%q: an archive has %s, want %s: %v", in, c.Jobs.Upload, want, err)
		}
	}
}

func TestLoadLooksInPlaces(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := Load(filepath.Join(dir, "none.yaml")); fault.KindOf(err) != fault.Invalid || fault.Remedy(err) == "" {
		t.Errorf("a named file that is not there: %v", err)
	}
	name := filepath.Join(dir, "cox.yaml")
	if err := os.WriteFile(name, []byte("name: lab\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, from, err := Load(name)
	if err != nil || c.Name != "lab" || from != name {
		t.Errorf("got %q from %q, %v", c.Name, from, err)
	}
}

func TestWhatIsShownCanBeRead(t *testing.T) {
	want := Default()
	want.Room.Memory, want.State.History = 1536<<20, Duration(36*time.Hour)
	want.Pools = []Pool{{"k8s", "kube", map[string]any{"namespace": "cox"}}}
	want.Partitions = []Partition{{Name: "p", TimeLimit: Duration(90 * time.Minute)}}
	text, err := yaml.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse("shown", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s\n%s", d, text)
	}
}

func TestPlaces(t *testing.T) {
	env := map[string]string{"HOME": "/home/anna"}
	get := func(k string) string { return env[k] }
	if s, sock := defaultPlaces(false, get); s != "/home/anna/.local/state/coxswain" || sock != s+"/cox.sock" {
		t.Errorf("%s %s", s, sock)
	}
	env["XDG_RUNTIME_DIR"] = "/run/user/1000"
	if _, sock := defaultPlaces(false, get); sock != "/run/user/1000/coxswain/cox.sock" {
		t.Error(sock)
	}
	if s, sock := defaultPlaces(true, get); s != "/var/lib/coxswain" || sock != "/run/coxswain/cox.sock" {
		t.Errorf("%s %s", s, sock)
	}
}

func TestDocument(t *testing.T) {
	const name = "../../docs/reference/configuration.md"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), "<!-- fields -->\n")
	_, after, ok2 := strings.Cut(rest, "<!-- end -->\n")
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", name)
	}
	want := before + "<!-- fields -->\n" + Document() + "<!-- end -->\n" + after
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(want, string(text)); d != "" {
		t.Errorf("make docs writes it anew:\n%s", d)
	}
	for line := range strings.SplitSeq(Document(), "\n") {
		if strings.HasSuffix(line, "|  |") {
			t.Errorf("a field without a word about it: %s", line)
		}
	}
}

// Seen to fail without each of the checks of a check.
func TestHealth(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"{check: disk, paths: [/scratch], free: 1G, do: fence}", ""},
		{"{check: script, name: nhc, run: [/usr/sbin/nhc]}", ""},
		{"{check: disc}", `there is no check "disc"; did you mean disk?`},
		{"{check: gpu}", `there is no check "gpu"; checks are disk, memory, mounts, clock, devices, script`},
		{"{check: disk, do: drain}", `"drain" is neither warn nor fence`},
		{"{check: disk, paths: [scratch]}", `"scratch" is not an absolute path`},
		{"{check: memory, paths: [/]}", "paths is for disk and mounts: leave it out"},
		{"{check: clock, free: 1G}", "free is for disk and memory: leave it out"},
		{"{check: mounts}", "say what must be mounted"},
		{"{check: script, name: own}", "needs its program by an absolute path"},
		{"{check: script, name: own, run: [nhc]}", "needs its program by an absolute path"},
		{"{check: script, run: [/usr/sbin/nhc]}", "a script needs a name"},
		{"{check: script, name: disk, run: [/usr/sbin/nhc]}", "choose another"},
		{"{check: disk}, {check: disk}", "two are called disk"},
		{"{check: disk, path: /scratch}", "did you mean paths?"},
	} {
		_, err := Parse("cox.yaml", []byte("health:\n  checks: ["+c.text+"]\n"))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
	for text, want := range map[string]string{"passes: 0": "passes: 0 is not between", "every: 5ms": "shorter than a second", "timeout: 0": "a check needs time", "before: 5ms": "is not between 1s and 10m", "before: 10s, checks: []": "there is no check that a job could wait for"} {
		if _, err := Parse("cox.yaml", []byte("health: {"+text+"}\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
