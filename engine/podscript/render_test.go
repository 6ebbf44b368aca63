package podscript_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/engine/podscript"
	"github.com/coxswain-sched/coxswain/engine/podscript/podscripttest"
	"github.com/coxswain-sched/coxswain/internal/exectest"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// specOf is a job of a set: a task group for each role.
func specOf(set *podspec.Set) *job.Spec {
	s := &job.Spec{Program: job.Program{Kind: job.Pods}}
	for i := range set.Roles {
		s.Groups = append(s.Groups, job.TaskGroup{Tasks: job.Count{Want: set.Roles[i].Replicas}})
	}
	return s
}

// podSet is a set with a role for each pod spec.
func podSet(t *testing.T, specs ...string) *podspec.Set {
	t.Helper()
	set := &podspec.Set{Kind: "Job", Name: "work"}
	for i, text := range specs {
		name := string(rune('a' + i))
		set.Roles = append(set.Roles, podspec.Role{Name: name, Replicas: 1, PodName: "work-" + name + "-{i}", Template: json.RawMessage(`{"spec":` + text + `}`)})
	}
	if err := set.Check(); err != nil {
		t.Fatal(err)
	}
	return set
}

func render(t *testing.T, set *podspec.Set, spec *job.Spec, r podscript.Runtime) string {
	t.Helper()
	text, err := podscript.Render(set, spec, r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// boxed is a runtime whose run script shows what it is asked for.
var boxed = podscript.Runtime{Name: "box", Box: func(image string, c *job.Container) (string, string) {
	mount := ""
	if n := len(c.Mounts); n > 0 {
		mount = c.Mounts[n-1].Source
	}
	return "pull " + image, "box --mount='" + mount + "' --env='" + strings.Join(c.Env, "' --env='") + "' " + image + ` "$@"`
}}

// TestScriptText: what the script says for each meaning of a pod.
func TestScriptText(t *testing.T) {
	gpus := func(s *job.Spec) {
		s.Groups[0].PerTask = resource.Requirements{Vector: resource.Vector{CPU: 1500, Memory: 2 * resource.GiB}, Devices: []resource.DeviceRequest{{Count: 2}}}
	}
	for name, c := range map[string]struct {
		pod    string
		change func(*podspec.Set)
		spec   func(*job.Spec)
		run    podscript.Runtime
		want   []string
	}{
		"command and arguments": {
			pod:  `{"containers":[{"name":"m","image":"i","command":["a b","$(X)"],"args":["it's","$(Y)"],"env":[{"name":"X","value":"x"}]}]}`,
			want: []string{` -- 'a b' x 'it'\''s' '$(Y)'` + "\n", "--no-container-entrypoint", "--container-image=i ", "--container-remap-root"},
		},
		"an entry point": {pod: `{"containers":[{"name":"m","image":"i","args":["serve"]}]}`, run: boxed, want: []string{" sh serve\n", `sh -c 'pull i' || exit`}},
		"arguments here": {pod: `{"containers":[{"name":"m","image":"i","args":["serve"]}]}`, want: []string{"export COX_ENTRYPOINT=args\n", " -- serve\n"}},
		"nothing here":   {pod: `{"containers":[{"name":"m","image":"i"}]}`, want: []string{"export COX_ENTRYPOINT=image\n", " -- image\n"}},
		"a directory":    {pod: `{"containers":[{"name":"m","image":"i","command":["x"],"workingDir":"/srv"}]}`, want: []string{"--container-workdir=/srv "}},
		"variables": {
			pod:  `{"containers":[{"name":"m","image":"i","command":["x"],"env":[{"name":"A","value":"1"},{"name":"B","value":"$(A)$(C)$$(A)"},{"name":"C","value":"3"},{"name":"a.b","value":"c d"}]}]}`,
			want: []string{"\texport A=1\n", "\texport B=1'$(C)$(A)'\n", `exec "$_cox_env" a.b='c d' "$_cox_srun"`, "--container-env=A,B,C "},
		},
		"of an operator": {
			pod: `{"containers":[{"name":"m","image":"i","command":["x"],"env":[{"name":"RANK","value":"own"}]}]}`,
			change: func(s *podspec.Set) {
				s.Roles[0].Env = []podspec.EnvVar{{Name: "RANK", Value: "{i}"}, {Name: "NEXT", Value: "n{i+1}"}, {Name: "FIRST", Value: "{pod:a:0}:1"}}
			},
			want: []string{"export RANK=own\n", `export NEXT=n"$((_cox_i + 1))"` + "\n", "export FIRST=work-a-0:1\n", `export COX_ENV_HOSTNAME=work-a-"$_cox_i"` + "\n"},
		},
		"whole maps": {
			pod: `{"containers":[{"name":"m","image":"i","command":["x"],"envFrom":[{"prefix":"P_","configMapRef":{"name":"c"}},{"secretRef":{"name":"s"}}]}]}`,
			change: func(s *podspec.Set) {
				s.ConfigMaps = []podspec.ConfigMap{{Name: "c", Data: map[string]string{"K": "v"}}}
				s.Secrets = []podspec.Secret{{Name: "s", Keys: []string{"KEY"}}}
			},
			spec: func(s *job.Spec) { s.Secrets = []job.Secret{{Name: "s.key", File: "s.KEY"}} },
			want: []string{"export P_K=v\n", `export KEY="${_cox_secret[0]}"`, `IFS= read -rd '' '_cox_secret[0]' <"$COX_SECRETS_DIR/"s.KEY`},
		},
		"amounts": {
			pod:  `{"containers":[{"name":"m","image":"i","command":["x"],"resources":{"limits":{"cpu":"1500m","memory":"1Gi"}},"env":[{"name":"N","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu"}}},{"name":"M","valueFrom":{"resourceFieldRef":{"resource":"requests.memory","divisor":"1Mi"}}}]}]}`,
			want: []string{"export N=2\n", "export M=1024\n"},
		},
		"volumes": {
			pod:  `{"volumes":[{"name":"d","emptyDir":{}},{"name":"m","emptyDir":{"medium":"Memory"}},{"name":"h","hostPath":{"path":"/data","type":"DirectoryOrCreate"}}],"containers":[{"name":"m","image":"i","command":["x"],"volumeMounts":[{"name":"d","mountPath":"/d","subPath":"x/y"},{"name":"m","mountPath":"/dev/shm"},{"name":"m","mountPath":"/m"},{"name":"h","mountPath":"/h","readOnly":true}]}]}`,
			want: []string{`'"$_cox_pod"'/hosts:/etc/hosts:ro,'"$_cox_pod"'/v/d/x/y:/d:rw,'"$_cox_pod"'/v/m:/m:rw,/data:/h:ro'`, `open_dir "$_cox_pod/"v/d/x/y`, `open_in_memory "$_cox_pod/v/m"`, "mkdir -p /data"},
		},
		"files": {
			pod: `{"volumes":[{"name":"c","configMap":{"name":"c","defaultMode":256}}],"containers":[{"name":"m","image":"i","command":["x"],"volumeMounts":[{"name":"c","mountPath":"/c"}]}]}`,
			change: func(s *podspec.Set) {
				s.ConfigMaps = []podspec.ConfigMap{{Name: "c", Data: map[string]string{"text": "COX_PREPARE\n"}, Binary: map[string][]byte{"bin": {0, 255}}}}
				s.Roles[0].Files = map[string]string{"/etc/mpi/hostfile": "{pod:a:0} slots={i}\n"}
			},
			want: []string{"printf %s 'COX_PREPARE\n' >\"$_cox_pod/\"v/c/text", "cat <<'COX_PREPARE_'", "chmod 400 \"$_cox_pod/\"v/c/text", "AP8=\nCOX_END", `printf %s 'work-a-0 slots='"$_cox_i"'` + "\n' >\"$_cox_pod/\"f/0", `'"$_cox_pod"'/f/0:/etc/mpi/hostfile:ro`},
		},
		"devices here":      {pod: `{"containers":[{"name":"m","image":"i","command":["x"]},{"name":"n","image":"i","command":["x"]}]}`, spec: gpus, want: []string{" --exact --overcommit --gpus-per-task=2 ", " --overlap --container"}},
		"devices elsewhere": {pod: `{"containers":[{"name":"m","image":"i","command":["x"]}]}`, spec: gpus, run: podscript.Runtime{Name: "pyxis", Srun: true}, want: []string{" --exact --cpus-per-task=2 --mem=2048 --gpus-per-task=2 "}},
		"another user":      {pod: `{"securityContext":{"runAsUser":1000},"containers":[{"name":"m","image":"i","command":["x"]}]}`, want: []string{`/hosts:/etc/hosts:ro' --no-container-entrypoint`}},
		"variables of the node": {
			pod: `{"volumes":[{"name":"d","emptyDir":{}}],"containers":[{"name":"m","image":"i","env":[{"name":"HOME","value":"/x"}],"volumeMounts":[{"name":"d","mountPath":"/d"}]}]}`, run: boxed,
			want: []string{"export COX_ENV_HOME=/x\n", `--env='\''HOME='\''"$COX_ENV_HOME"'\'''\''`, `--mount='\'''\''"$COX_POD"'\''/v/d'\''`},
		},
		"names": {pod: `{"containers":[{"name":"m","image":"i","command":["x"]}]}`, change: func(s *podspec.Set) {
			s.Namespace, s.Roles[0].Subdomain, s.Services = "team", "work", []podspec.Service{{Name: "work", Headless: true}, {Name: "api", Role: "a"}}
		}, want: []string{`all+=" $name.work $name.work.team $name.work.team.svc $name.work.team.svc.cluster.local"`, `all+=" work work.team`, `[ "$3" = 0 ] && all+=" api api.team`}},
	} {
		t.Run(name, func(t *testing.T) {
			set := podSet(t, c.pod)
			if c.change != nil {
				c.change(set)
			}
			spec := specOf(set)
			if c.spec != nil {
				c.spec(spec)
			}
			if c.run.Name == "" {
				c.run = podscript.Local()
			}
			text := render(t, set, spec, c.run)
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					before, _, _ := strings.Cut(text, "# --- the same")
					t.Errorf("no %q in\n%s", want, before)
				}
			}
			check := exec.Command("bash", "-n")
			check.Stdin = strings.NewReader(text)
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("bash: %v: %s", err, out)
			}
		})
	}
}

// TestRefused: what cannot be had without Kubernetes is refused by the path of its field, with a remedy.
func TestRefused(t *testing.T) {
	const main = `"containers":[{"name":"m","image":"i","command":["x"]`
	for pod, want := range map[string]string{
		`{` + main + `,"securityContext":{"privileged":true}}]}`:                                          "containers[0].securityContext.privileged",
		`{` + main + `,"securityContext":{"capabilities":{"add":["SYS_ADMIN"]}}}]}`:                       "containers[0].securityContext.capabilities.add",
		`{"securityContext":{"runAsNonRoot":true},` + main + `}]}`:                                        "containers[0].securityContext.runAsUser",
		`{` + main + `,"envFrom":[{"secretRef":{"name":"kept"}}]}]}`:                                      "containers[0].envFrom[0].secretRef",
		`{"volumes":[{"name":"v","secret":{"secretName":"kept"}}],` + main + `}]}`:                        "volumes[0].secret",
		`{` + main + `,"tty":true}]}`:                                                                     "containers[0].stdin",
		`{` + main + `,"ports":[{"containerPort":80,"hostPort":8080}]}]}`:                                 "containers[0].ports[0].hostPort",
		`{` + main + `,"livenessProbe":{"httpGet":{"port":80}}}]}`:                                        "containers[0].livenessProbe",
		`{` + main + `,"env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"spec.tolerations"}}}]}]}`: "containers[0].env[0].valueFrom.fieldRef.fieldPath",
		`{` + main + `,"env":[{"name":"A","valueFrom":{"configMapKeyRef":{"name":"c","key":"k"}}}]}]}`:    "containers[0].env[0].valueFrom.configMapKeyRef",
		`{` + main + `,"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}]}]}`:       "containers[0].env[0].valueFrom.secretKeyRef",
		`{` + main + `,"volumeMounts":[{"name":"v","mountPath":"/v"}]}]}`:                                 "containers[0].volumeMounts[0].name",
		`{"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"c"}}],` + main + `}]}`:             "volumes[0]",
		`{"volumes":[{"name":"v","emptyDir":{"medium":"HugePages"}}],` + main + `}]}`:                     "volumes[0].emptyDir.medium",
		`{"volumes":[{"name":"v","hostPath":{"path":"/a/../b"}}],` + main + `}]}`:                         "volumes[0].hostPath.path",
		`{"containers":[{"name":"m","image":"i","stdin":true}]}`:                                          "containers[0].stdin",
		`{"containers":[{"name":"m","command":["x"]}]}`:                                                   "containers[0].image",
	} {
		set := podSet(t, pod)
		set.Secrets = []podspec.Secret{{Name: "kept", Foreign: true, Keys: []string{"k"}}}
		spec := specOf(set)
		spec.Owner.User = "root"
		err := podscript.Check(set, spec, podscript.Local())
		if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "pod template of a: spec."+want+":") || fault.Remedy(err) == "" {
			t.Errorf("%s: %v, want %s", pod, err, want)
		}
	}
}

// fakeSrun runs the command behind its options, in the place of a step in a container.
const fakeSrun = `#!/bin/bash
while case $1 in --) shift; false ;; -*) true ;; *) false ;; esac; do shift; done
asked=0 pid=
trap '[ -n "$pid" ] || exit 143; asked=$((asked + 1)); [ $asked = 1 ] && kill -TERM "$pid" || kill -KILL "$pid"' TERM
"$@" <&0 &
pid=$!
until wait "$pid"; code=$?; ! kill -0 "$pid" 2>/dev/null; do :; done
exit "$code"
`

// runScript runs a script whose steps are processes of this machine.
func runScript(t *testing.T, text string, stop func(pid int)) (out string, code int) {
	t.Helper()
	bin := t.TempDir()
	for name, script := range map[string]string{
		"srun": fakeSrun, "scontrol": "#!/bin/sh\necho here\n", "getent": "#!/bin/sh\necho 127.0.0.1 x\n",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(bin, "script")
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exectest.Command(t, nil, "bash", name)
	cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir(), "SLURMD_NODENAME=here", "SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=here", "SLURM_TASKS_PER_NODE=9", "SECRET=of the submitter", "COX_SECRETS_DIR=" + os.Getenv("COX_SECRETS_DIR")}
	for _, g := range []string{"0", "1", "2"} {
		cmd.Env = append(cmd.Env, "SLURM_JOB_NODELIST_HET_GROUP_"+g+"=here", "SLURM_TASKS_PER_NODE_HET_GROUP_"+g+"=9")
	}
	said, err := os.Create(filepath.Join(bin, "output")) // no pipe, which what is left behind would keep open
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if stop != nil {
		stop(cmd.Process.Pid)
	}
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	output, err := os.ReadFile(said.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(output), cmd.ProcessState.ExitCode()
}

// TestEnds: the script ends as the set says.
func TestEnds(t *testing.T) {
	pod := func(policy, script string) string {
		text, err := json.Marshal(script)
		if err != nil {
			t.Fatal(err)
		}
		return `{"restartPolicy":"` + policy + `","terminationGracePeriodSeconds":1,"containers":[{"name":"m","image":"i","command":["bash","-c",` + string(text) + `]}]}`
	}
	const waits = `trap 'echo told; exit 0' TERM; sleep 5 & wait`
	zero := 0
	for name, c := range map[string]struct {
		set  *podspec.Set
		code int
		want string
		not  string
	}{
		"all end well":        {set: podSet(t, pod("Never", "echo one"), pod("Never", "echo two")), want: "one\n"},
		"no variable is his":  {set: podSet(t, pod("Never", `echo "<$SECRET>"`)), want: "<>"},
		"one fails":           {set: podSet(t, pod("Never", "sleep 0.5; exit 9"), pod("Never", waits)), code: 9, want: "told"},
		"one that is deaf":    {set: podSet(t, pod("Never", "sleep 0.5; exit 9"), pod("Never", "trap '' TERM; while :; do sleep 0.1; done")), code: 9, want: "pods: work-a-0 on here ended with exit code 9"},
		"the first completes": {set: with(podSet(t, pod("Never", "sleep 0.5"), pod("Never", waits)), podspec.Complete{Roles: []string{"a"}, Index: &zero}), want: "told"},
		"any completes":       {set: with(podSet(t, pod("Never", waits), pod("Never", "sleep 0.5")), podspec.Complete{Any: true}), want: "told"},
		"others do not":       {set: with(podSet(t, pod("Never", "sleep 0.5; echo last"), pod("Never", ":")), podspec.Complete{Roles: []string{"a"}}), want: "last"},
		"keep going":          {set: keepGoing(podSet(t, pod("Never", "exit 3"), pod("Never", "sleep 0.5; echo went on"))), code: 3, want: "went on"},
		"two containers":      {set: podSet(t, `{"restartPolicy":"Never","containers":[{"name":"m","image":"i","command":["bash","-c","exit 4"]},{"name":"n","image":"i","command":["bash","-c","sleep 0.5; echo second"]}]}`), code: 4, want: "second"},
		"a sidecar": {
			set:  podSet(t, `{"restartPolicy":"Never","initContainers":[{"name":"s","image":"i","restartPolicy":"Always","command":["bash","-c","trap 'echo told; exit 0' TERM; sleep 5 & wait"]},{"name":"p","image":"i","command":["echo","prepared"]}],"containers":[{"name":"m","image":"i","command":["bash","-c","sleep 0.5; echo main"]}]}`),
			want: "prepared\nmain\ntold\n",
		},
		"an init container fails": {
			set:  podSet(t, `{"restartPolicy":"Never","initContainers":[{"name":"p","image":"i","command":["bash","-c","exit 5"]}],"containers":[{"name":"m","image":"i","command":["echo","main"]}]}`),
			code: 5, want: "pods: init container 0 of work-a-0 ended with exit code 5", not: "main\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, code := runScript(t, render(t, c.set, specOf(c.set), podscript.Local()), nil)
			if code != c.code || !strings.Contains(out, c.want) || c.not != "" && strings.Contains(out, c.not) {
				t.Errorf("exit code %d, want %d; %q in %s", code, c.code, c.want, out)
			}
		})
	}
}

func with(s *podspec.Set, c podspec.Complete) *podspec.Set {
	s.Complete = &c
	return s
}

func keepGoing(s *podspec.Set) *podspec.Set {
	s.KeepGoing = true
	return s
}

// TestTrainForSlurm: the pods of the tests of engines make a script for each runtime that bash can read.
func TestTrainForSlurm(t *testing.T) {
	set := podscripttest.Train("i", "/results")
	spec := specOf(set)
	spec.Secrets = []job.Secret{{Name: "login.token", File: "login.token"}}
	for _, r := range []podscript.Runtime{podscript.Local(), {Name: "pyxis", Srun: true}, boxed} {
		text := render(t, set, spec, r)
		if strings.Contains(text, podscripttest.Token) || !strings.Contains(text, "counts=(all '')\nneed=1 ") {
			t.Errorf("%s: a secret is in the script, or the master does not complete it", r.Name)
		}
		check := exec.Command("bash", "-n")
		check.Stdin = strings.NewReader(text)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", r.Name, err, out)
		}
	}
}
