package podscript_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/engine/podscript"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
)

// TestHostileText: what a shell or the node would read as something else, and secrets that everybody would
// see in the list of processes, are refused by path.
func TestHostileText(t *testing.T) {
	const token = `"env":[{"name":"TOKEN","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}]`
	of := func(rest string) string {
		return `{"volumes":[{"name":"v","configMap":{"name":"c"}}],"containers":[{"name":"m","image":"i",` + rest + `}]}`
	}
	const main = "pod template of a: spec.containers[0]"
	for name, c := range map[string]struct {
		pod    string
		change func(*podspec.Set)
		run    podscript.Runtime
		want   string // empty: not refused
	}{
		"a secret argument":         {pod: of(`"command":["x"],"args":["--t=$(TOKEN)"],` + token), want: main + ".args[0]"},
		"a secret command":          {pod: of(`"command":["sh","-c","x $(TOKEN)"],` + token), want: main + ".command[2]"},
		"of a variable of a secret": {pod: of(`"command":["$(URL)"],` + strings.Replace(token, "]", `,{"name":"URL","value":"u:$(TOKEN)"}]`, 1)), want: main + ".command[0]"},
		"a secret variable":         {pod: of(`"command":["x"],` + token), run: boxed},
		"one of the runtime":        {pod: of(`"command":["x"],` + strings.Replace(token, "TOKEN", "DOCKER_TOKEN", 1)), run: boxed, want: main + ".env"},
		"one of the runtime here":   {pod: of(`"command":["x"],` + strings.Replace(token, "TOKEN", "DOCKER_TOKEN", 1))},
		"one of the shell":          {pod: of(`"command":["x"],` + strings.Replace(token, "TOKEN", "UID", 1)), run: podscript.Runtime{Name: "pyxis", Srun: true}, want: main + ".env"},
		"one of the script":         {pod: of(`"command":["x"],"env":[{"name":"_cox_node","value":"x"}]`), want: main + ".env"},
		"a command for a name": {pod: of(`"command":["x"],"env":[{"name":"LD_ID","value":"x"}]`), change: func(s *podspec.Set) {
			s.Roles[0].Template = []byte(strings.Replace(string(s.Roles[0].Template), "LD_ID", "LD_$(id)", 1))
		}, want: main + ".env[0].name"},
		"a command for a prefix": {pod: of(`"command":["x"],"envFrom":[{"prefix":"LD_$(id)","configMapRef":{"name":"c"}}]`), want: main + ".envFrom"},
		"a directory":            {pod: of(`"command":["x"],"workingDir":"/a\u0002b"`), want: main + ".workingDir"},
		"an image":               {pod: of(`"command":["x"],"image":"a\u0001"`), want: main + ".image"},
		"a place":                {pod: of(`"command":["x"],"volumeMounts":[{"name":"v","mountPath":"/\u0001"}]`), want: main + ".volumeMounts[0].mountPath"},
		"a key":                  {pod: of(`"command":["x"]`), change: func(s *podspec.Set) { s.ConfigMaps[0].Data = map[string]string{"../../x": "evil"} }, want: "pod template of a: spec.volumes[0].configMap"},
		"a namespace":            {pod: of(`"command":["x"]`), change: func(s *podspec.Set) { s.Namespace = "$(id)" }, want: "namespace"},
		"a subdomain":            {pod: of(`"command":["x"]`), change: func(s *podspec.Set) { s.Roles[0].Subdomain = "`id`" }, want: "pod template of a: spec.subdomain"},
		"a host":                 {pod: of(`"command":["x"]`), change: func(s *podspec.Set) { s.Roles[0].PodName = "../../x" }, want: "pod template of a: spec.hostname"},
		"a service": {pod: of(`"command":["x"]`), change: func(s *podspec.Set) {
			s.Services = []podspec.Service{{Name: `"; id`}}
		}, want: "services[0].name"},
	} {
		t.Run(name, func(t *testing.T) {
			set := podSet(t, c.pod)
			set.ConfigMaps, set.Secrets = []podspec.ConfigMap{{Name: "c", Data: map[string]string{"K": "v"}}}, []podspec.Secret{{Name: "s", Keys: []string{"k"}}}
			if c.change != nil {
				c.change(set)
			}
			if c.run.Name == "" {
				c.run = podscript.Local()
			}
			spec := specOf(set)
			spec.Secrets = []job.Secret{{Name: "s.k", File: "s.k"}}
			err := podscript.Check(set, spec, c.run)
			if c.want == "" && err != nil || c.want != "" && (fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), c.want+":") || fault.Remedy(err) == "") {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestOwnVariables: whatever the names of a container's variables, the script that runs it keeps its own, and
// the container has all of them.
func TestOwnVariables(t *testing.T) {
	set := podSet(t, `{"restartPolicy":"Never","containers":[{"name":"m","image":"i","command":["bash","-c","echo \"<$pod $srun $node>\"; env"],"env":[
		{"name":"pod","value":"1"},{"name":"srun","value":"2"},{"name":"node","value":"3"},{"name":"step","value":"4"},{"name":"env","value":"5"},
		{"name":"secret","value":"6"},{"name":"name","value":"7"},{"name":"i","value":"9"},{"name":"UID","value":"12345"},
		{"name":"WHO","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},{"name":"a.b","value":"x"}]}]}`)
	out, code := runScript(t, render(t, set, specOf(set), podscript.Local()), nil)
	if code != 0 || !strings.Contains(out, "<1 2 3>") || !strings.Contains(out, "WHO=work-a-0\n") || !strings.Contains(out, "COX_ENV_UID=12345\n") || !strings.Contains(out, "a.b=x\n") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if text := render(t, set, specOf(set), boxed); !strings.Contains(text, "export COX_ENV_UID=12345\n") {
		t.Error("UID is not handed over to another runtime")
	}
}

// TestBinarySecret: a file of a secret has all its bytes, and a variable that cannot have them fails.
func TestBinarySecret(t *testing.T) {
	dir, base, copied := t.TempDir(), filepath.Join(t.TempDir(), "base"), filepath.Join(t.TempDir(), "copied")
	if err := os.WriteFile(filepath.Join(dir, "s.k"), []byte("a\x00b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("COX_SECRETS_DIR", dir)
	run := func(pod string) (string, int) {
		set := podSet(t, pod)
		set.Secrets = []podspec.Secret{{Name: "s", Keys: []string{"k"}}}
		spec := specOf(set)
		spec.Secrets = []job.Secret{{Name: "s.k", File: "s.k"}}
		return runScript(t, placedAt(base, render(t, set, spec, podscript.Local())), nil)
	}
	out, code := run(`{"restartPolicy":"Never","volumes":[{"name":"v","secret":{"secretName":"s"}}],"containers":[{"name":"m","image":"i","command":["sh","-c","cp ` + base + `/here/work-a-0/v/v/k ` + copied + `"]}]}`)
	if got, err := os.ReadFile(copied); code != 0 || err != nil || string(got) != "a\x00b\n" {
		t.Errorf("exit code %d: %q, %v: %s", code, got, err, out)
	}
	out, code = run(`{"restartPolicy":"Never","containers":[{"name":"m","image":"i","command":["true"],"env":[{"name":"T","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}]}]}`)
	if code != 1 || !strings.Contains(out, "the secret s.k has a NUL byte") {
		t.Errorf("a variable: exit code %d: %s", code, out)
	}
}

// TestNamesOfIndex: pods are named by their index or by one more, as the workers of a LeaderWorkerSet are.
func TestNamesOfIndex(t *testing.T) {
	set := podSet(t, `{"restartPolicy":"Never","containers":[{"name":"m","image":"i","command":["sh","-c","echo \"<$WHO>\""],"env":[{"name":"WHO","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}]}`)
	set.Roles[0].PodName, set.Roles[0].Replicas = "llm-0-{i+1}", 2
	out, code := runScript(t, render(t, set, specOf(set), podscript.Local()), nil)
	if code != 0 || !strings.Contains(out, "<llm-0-1>") || !strings.Contains(out, "<llm-0-2>") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// TestTakenDirectory: a directory of another user, or a link in its place, is not used for pods' files.
func TestTakenDirectory(t *testing.T) {
	set := podSet(t, `{"restartPolicy":"Never","containers":[{"name":"m","image":"i","command":["true"]}]}`)
	base := filepath.Join(t.TempDir(), "taken")
	if err := os.Symlink(t.TempDir(), base); err != nil {
		t.Fatal(err)
	}
	if out, code := runScript(t, placedAt(base, render(t, set, specOf(set), podscript.Local())), nil); code != 1 || !strings.Contains(out, "is of another user") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// placedAt is a script that makes the files of its pods in a directory of a test.
func placedAt(base, script string) string {
	return strings.Replace(script, "base=/tmp/cox-pods-$word", "base="+base, 1)
}
