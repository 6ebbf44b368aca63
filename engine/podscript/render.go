package podscript

import (
	_ "embed" // the script
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
	"github.com/coxswain-sched/coxswain/model/resource"
)

//go:embed pods.sh
var podsScript string

// role is a role of a set, as its part of the script is made.
type role struct {
	set     *podspec.Set
	role    *podspec.Role
	at      int
	pod     *podspec.PodTemplate
	spec    *job.Spec
	runtime Runtime
	secrets *secretTable
	made    volume
}

// refuseField is fault.Unsupported about a field of a pod template.
func refuseField(path, remedy, format string, args ...any) error {
	return engine.About(fault.New(fault.Unsupported, "%s: "+format, append([]any{path}, args...)...).Advise("%s", remedy), path)
}

// Render writes the batch script of a job's pods. It fails, with fault.Unsupported or fault.Invalid and
// the path of the field, where Check does.
func Render(set *podspec.Set, spec *job.Spec, runtime Runtime) ([]byte, error) {
	if len(spec.Groups) != len(set.Roles) {
		return nil, fault.New(fault.Invalid, "the job has %d task groups, and its pods %d roles", len(spec.Groups), len(set.Roles))
	}
	if err := checkNames(set); err != nil {
		return nil, err
	}
	secrets := &secretTable{given: spec.Secrets}
	var roles []*role
	var parts []string
	for i := range set.Roles {
		pod, err := set.Roles[i].Pod()
		if err != nil {
			return nil, fault.New(fault.Invalid, "%w", err)
		}
		r := &role{set: set, role: &set.Roles[i], at: i, pod: pod, spec: spec, runtime: runtime, secrets: secrets}
		if n := spec.Groups[i].Tasks.Want; n != 0 && n != r.role.Replicas {
			return nil, fault.New(fault.Invalid, "task group %d has %d tasks, and role %s has %d pods", i, n, r.role.Name, r.role.Replicas)
		}
		part, err := r.renderRole()
		if err != nil {
			return nil, err
		}
		roles, parts = append(roles, r), append(parts, part)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/bash\n# Made by Coxswain of %s %s (docs/how-to/run-manifests.md): each pod is a step in a container.\n", oneLine(set.Kind), oneLine(set.Name))
	fmt.Fprintf(&b, "groups=%d\nkeep_going=%d\nours=%d\n", len(roles), flagNumber(set.KeepGoing), flagNumber(runtime.Ours))
	writeComplete(&b, set)
	for _, r := range roles {
		r.writeFacts(&b)
	}
	b.WriteString(hostLines(set))
	writeSecrets(&b, secrets.used)
	for _, p := range parts {
		b.WriteString("\n" + p)
	}
	writePrepare(&b, roles)
	b.WriteString("\n" + podsScript)
	return []byte(b.String()), nil
}

func flagNumber(b bool) int {
	if b {
		return 1
	}
	return 0
}

// oneLine is a text that a comment can have.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

// writeComplete says which pods have to end with success: counts[ROLE] is the index of one, or all, or
// empty for a role of which none counts.
func writeComplete(b *strings.Builder, set *podspec.Set) {
	counts := make([]string, len(set.Roles))
	need := 0
	for i := range set.Roles {
		r := &set.Roles[i]
		c := set.Complete
		switch {
		case c == nil, len(c.Roles) > 0 && !slices.Contains(c.Roles, r.Name):
			counts[i] = "''"
		case c.Index != nil:
			counts[i] = fmt.Sprint(*c.Index)
			need++
		default:
			counts[i] = "all"
			need += r.Replicas
		}
	}
	if set.Complete != nil && set.Complete.Any {
		need = 1
	}
	fmt.Fprintf(b, "counts=(%s)\nneed=%d # pods that have to end with success: the others are ended then; 0: all\n", strings.Join(counts, " "), need)
}

// writeFacts writes what the script knows of a role.
func (r *role) writeFacts(b *strings.Builder) {
	grace := int64(30)
	if g := r.pod.Spec.TerminationGracePeriodSeconds; g != nil {
		grace = *g
	}
	policy := r.pod.Spec.RestartPolicy
	if policy == "" {
		policy = "Always"
	}
	var inits, mains []string
	for i := range r.pod.Spec.InitContainers {
		how := "once"
		if r.pod.Spec.InitContainers[i].RestartPolicy == "Always" {
			how = "sidecar"
		}
		inits = append(inits, how)
	}
	for i := range r.pod.Spec.Containers {
		mains = append(mains, fmt.Sprint(i))
	}
	fmt.Fprintf(b, "replicas[%[1]d]=%[2]d grace[%[1]d]=%[3]d policy[%[1]d]=%[4]s inits[%[1]d]=%[5]s mains[%[1]d]=%[6]s\n",
		r.at, r.role.Replicas, grace, quoteWord(policy), quoteWord(strings.Join(inits, " ")), quoteWord(strings.Join(mains, " ")))
	fmt.Fprintf(b, "pod_name_%d() { local _cox_i=$1; printf %%s %s; }\n", r.at, r.podName().shellWord())
}

// hostLines is a function that prints the names of a pod and of the services of its role, behind its address.
func hostLines(set *podspec.Set) string {
	var b strings.Builder
	space := "default"
	if set.Namespace != "" {
		space = set.Namespace
	}
	domain := func(name, sub string) string {
		return fmt.Sprintf(" %[1]s%[2]s %[1]s%[2]s.%[3]s %[1]s%[2]s.%[3]s.svc %[1]s%[2]s.%[3]s.svc.cluster.local", name, sub, space)
	}
	b.WriteString("# names_of ROLE NAME INDEX: the names by which the other pods find a pod.\nnames_of() {\n\tlocal name=$2 all=$2\n\tcase $1 in\n")
	for i := range set.Roles {
		r := &set.Roles[i]
		fmt.Fprintf(&b, "\t%d)\n", i)
		if r.Subdomain != "" {
			b.WriteString("\t\tall+=\"" + domain("$name", "."+r.Subdomain) + "\"\n")
		}
		for k := range set.Services {
			s := &set.Services[k]
			switch {
			case s.Role != "" && s.Role != r.Name, s.Role == "" && !s.Headless && i > 0:
			case s.Headless:
				b.WriteString("\t\tall+=\"" + domain(s.Name, "") + "\"\n")
			default: // any one will do
				b.WriteString("\t\t[ \"$3\" = 0 ] && all+=\"" + domain(s.Name, "") + "\"\n")
			}
		}
		b.WriteString("\t\t;;\n")
	}
	b.WriteString("\tesac\n\techo \"$all\"\n}\n")
	return b.String()
}

// writeSecrets reads the secrets, of which values stand nowhere in the script. No variable has a NUL byte:
// files are copied byte by byte.
func writeSecrets(b *strings.Builder, used []usedSecret) {
	b.WriteString("_cox_secret=() secret_file=()\n")
	for i := range used {
		place := placeOf(&used[i].Secret)
		fmt.Fprintf(b, "[ -r %s ] || { echo %s >&2; exit 1; }\n", place, quoteWord("pods: the secret "+used[i].Name+" was not handed over"))
		if used[i].file {
			fmt.Fprintf(b, "secret_file[%d]=%s\n", i, place)
		}
		if used[i].variable {
			fmt.Fprintf(b, "! IFS= read -rd '' '_cox_secret[%d]' <%s || { echo %s >&2; exit 1; }\n", i, place,
				quoteWord("pods: the secret "+used[i].Name+" has a NUL byte, so it can be a file and no variable"))
		}
	}
}

// writePrepare writes the functions that print the script which a node runs before its pods.
func writePrepare(b *strings.Builder, roles []*role) {
	var t strings.Builder
	for _, r := range roles {
		fmt.Fprintf(&t, "# The files of a pod of role %s.\nfiles_%d() {\n\t_cox_pod=$1 _cox_i=$2 _cox_name=$3 _cox_node=$4 _cox_ip=$5 _cox_uid=$6\n%s}\n", oneLine(r.role.Name), r.at, r.made.prepareScript())
		fmt.Fprintf(&t, "# The images of role %s.\nimages_%d() {\n\t:\n%s}\n", oneLine(r.role.Name), r.at, r.getScripts())
	}
	end := "COX_PREPARE"
	for strings.Contains(t.String(), end) {
		end += "_"
	}
	fmt.Fprintf(b, "\n# What a node does before its pods start: a script for sh.\nprepare() {\n\tcat <<'%s'\n%s%[1]s\n}\n", end, t.String())
}

// getScripts pull the images of a role, where srun does not.
func (r *role) getScripts() string {
	if r.runtime.Srun {
		return ""
	}
	var b strings.Builder
	var seen []string
	for _, c := range slices.Concat(r.pod.Spec.InitContainers, r.pod.Spec.Containers) {
		if slices.Contains(seen, c.Image) {
			continue
		}
		seen = append(seen, c.Image)
		if get, _ := r.runtime.Box(c.Image, &job.Container{}); get != "" {
			b.WriteString("\tsh -c " + quoteWord(get) + " || exit\n")
		}
	}
	return b.String()
}

// renderRole writes the functions of a role: one for each container.
func (r *role) renderRole() (string, error) {
	base := templatePath(r.role)
	if err := r.checkPod(base); err != nil {
		return "", err
	}
	for i := range r.pod.Spec.Volumes {
		if err := r.addVolume(&r.pod.Spec.Volumes[i], fmt.Sprintf("%s.volumes[%d]", base, i)); err != nil {
			return "", err
		}
	}
	if err := r.addOperatorFiles(); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Role %d, %s.\n", r.at, oneLine(r.role.Name))
	for i := range r.pod.Spec.InitContainers {
		if err := r.writeContainer(&b, &r.pod.Spec.InitContainers[i], fmt.Sprintf("init_%d_%d", r.at, i), fmt.Sprintf("%s.initContainers[%d]", base, i)); err != nil {
			return "", err
		}
	}
	for i := range r.pod.Spec.Containers {
		if err := r.writeContainer(&b, &r.pod.Spec.Containers[i], fmt.Sprintf("main_%d_%d", r.at, i), fmt.Sprintf("%s.containers[%d]", base, i)); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// writeContainer writes the function that runs a container in the place of its shell.
func (r *role) writeContainer(b *strings.Builder, c *podspec.Container, name, path string) error {
	vs, err := r.containerVariables(c, path)
	if err != nil {
		return err
	}
	mounts, err := r.containerMounts(c, path)
	if err != nil {
		return err
	}
	command, err := commandWords(c, vs, path)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "%s() { # container %s\n\tclear_variables\n", name, oneLine(c.Name))
	if !r.runtime.Srun {
		b.WriteString("\texport COX_POD=$_cox_pod\n")
	}
	var names, others []string
	for _, v := range vs {
		if (r.runtime.Ours || !r.runtime.Srun) && isIdentifier(v.name) && (isOfNode(v.name) || isOfShell(v.name)) { // srun or the runtime needs that of the node
			if !r.runtime.Srun {
				names = append(names, v.name+"="+nodeMark+v.name+nodeMark)
			}
			b.WriteString("\texport COX_ENV_" + v.name + "=" + v.value.shellWord() + "\n")
		} else if isIdentifier(v.name) && !isOfShell(v.name) {
			names = append(names, v.name)
			b.WriteString("\texport " + v.name + "=" + v.value.shellWord() + "\n")
		} else {
			others = append(others, quoteWord(v.name+"=")+v.value.shellWord())
			if !r.runtime.Srun || isIdentifier(v.name) {
				names = append(names, v.name)
			}
		}
	}
	if !r.runtime.Srun {
		names = append(names, deviceVariables...)
	}
	if r.runtime.Ours && len(c.Command) == 0 {
		how := entrypointArgs
		if len(c.Args) == 0 {
			how, command = entrypointImage, []value{literalText("image")} // srun needs a word
		}
		b.WriteString("\texport COX_ENTRYPOINT=" + how + "\n")
	}
	box := &job.Container{Mounts: mounts, WorkDir: c.WorkingDir, Env: names, Entrypoint: new(len(c.Command) == 0 && !r.runtime.Srun)}
	if r.isRoot(c) {
		box.RemapRoot = new(true)
	}
	b.WriteString("\texec ")
	if len(others) > 0 {
		b.WriteString(`"$_cox_env" ` + strings.Join(others, " ") + " ")
	}
	words, err := r.stepWords(c, box, path)
	if err != nil {
		return err
	}
	b.WriteString(words)
	for _, w := range command {
		b.WriteString(" " + w.shellWord())
	}
	b.WriteString("\n}\n")
	return nil
}

// commandWords are those that a container runs. A secret in them is refused: everybody on the node sees the
// arguments of a process.
func commandWords(c *podspec.Container, vs variables, path string) ([]value, error) {
	var out []value
	for _, list := range []struct {
		field string
		words []string
	}{{"command", c.Command}, {"args", c.Args}} {
		for i, w := range list.words {
			v := vs.expandNames(w)
			if v.isSecret() {
				return nil, refuseField(fmt.Sprintf("%s.%s[%d]", path, list.field, i), "let the program read the variable, or start it by sh -c and write $NAME for $(NAME)",
					"everybody on the node would see the secret in the arguments of the process")
			}
			out = append(out, v)
		}
	}
	return out, nil
}

// What COX_ENTRYPOINT says to the nodes of this machine (agent/container): the words of a step are arguments
// of the image's entry point, or do not count.
const (
	entrypointArgs  = "args"
	entrypointImage = "image"
)

// nodeMark encloses the name of a variable in the words of a runtime, where its value comes from one of
// another name.
const nodeMark = "\x02"

// namesOfNode puts the variables into the words of a runtime, which are quoted.
func namesOfNode(script string) string {
	parts := strings.Split(script, nodeMark)
	for i := 1; i < len(parts); i += 2 {
		parts[i] = `'"$COX_ENV_` + parts[i] + `"'`
	}
	return strings.Join(parts, "")
}

// isOfNode reports whether a variable steers the runtime itself, so that it keeps the node's.
func isOfNode(name string) bool {
	return slices.Contains([]string{"HOSTNAME", "HOME", "PATH", "USER", "LOGNAME", "TMPDIR", "SHELL"}, name) ||
		slices.ContainsFunc([]string{"LD_", "XDG_", "CONTAINERS_", "PODMAN_", "APPTAINER_", "SINGULARITY_", "ENROOT_", "SLURM_", "COX_", "DOCKER_"}, func(p string) bool { return strings.HasPrefix(name, p) })
}

// deviceVariables name the devices of a step.
var deviceVariables = []string{"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"}

// isRoot reports whether a container's processes are root inside, as those of most images expect.
func (r *role) isRoot(c *podspec.Container) bool {
	for _, s := range []*podspec.SecurityContext{c.SecurityContext, r.pod.Spec.SecurityContext} {
		switch {
		case s == nil:
		case s.RunAsUser != nil:
			return *s.RunAsUser == 0
		case s.RunAsNonRoot != nil && *s.RunAsNonRoot:
			return false
		}
	}
	return true
}

// stepWords is the command line that starts a container as a step, up to the container's command.
func (r *role) stepWords(c *podspec.Container, box *job.Container, path string) (string, error) {
	var b strings.Builder
	b.WriteString(`"$_cox_srun"`)
	if len(r.set.Roles) > 1 {
		fmt.Fprintf(&b, " --het-group=%d", r.at)
	}
	b.WriteString(` --quiet --nodelist="$_cox_node" --nodes=1 --ntasks=1 --job-name="$_cox_step"` + r.shareOptions(c))
	if !r.runtime.Srun {
		_, run := r.runtime.Box(c.Image, box)
		run = namesOfNode(strings.ReplaceAll(run, podDir, `'"$COX_POD"'`))
		b.WriteString(" sh -c " + quoteWord(run) + " sh")
		return b.String(), nil
	}
	words, err := srunWords(c.Image, box)
	if err != nil {
		return "", refuseField(path, "correct the image", "%v", err)
	}
	for _, w := range words {
		b.WriteString(" " + insidePod(quoteWord(w)))
	}
	b.WriteString(" --")
	return b.String(), nil
}

// insidePod puts the pod's directory into a quoted word.
func insidePod(word string) string {
	return strings.ReplaceAll(word, podDir, `'"$_cox_pod"'`)
}

// shareOptions say what a step takes of what the job holds.
func (r *role) shareOptions(c *podspec.Container) string {
	g := &r.spec.Groups[r.at]
	devices := g.PerTask.DeviceCount()
	if n := slices.IndexFunc(r.pod.Spec.Containers, func(o podspec.Container) bool { return o.Name == c.Name }); n < 0 || n != r.mainContainer() {
		return " --overlap" // beside the container that has what the pod asks for
	}
	if r.runtime.Ours { // CPUs and memory of steps are not counted
		if devices == 0 {
			return " --overlap"
		}
		return fmt.Sprintf(" --exact --overcommit --gpus-per-task=%d", devices)
	}
	out := fmt.Sprintf(" --exact --cpus-per-task=%d --mem=%d", max(int(g.PerTask.CPU.DivUp(resource.OneCPU)), g.CPUsPerTask, 1), g.PerTask.Memory.DivUp(resource.MiB))
	if devices > 0 {
		out += fmt.Sprintf(" --gpus-per-task=%d", devices)
	}
	return out
}

// mainContainer is the container that has the devices of its pod, else the first.
func (r *role) mainContainer() int {
	for i := range r.pod.Spec.Containers {
		for name := range r.pod.Spec.Containers[i].Resources.Limits {
			if strings.Contains(name, "/") {
				return i
			}
		}
	}
	return 0
}
