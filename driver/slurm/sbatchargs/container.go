package sbatchargs

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/containeropt"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// ContainerRuntime says how a site's nodes run images.
type ContainerRuntime string

// The ways in which nodes run images. Pyxis is a plugin of srun; the others are commands, which srun
// starts.
const (
	Pyxis        ContainerRuntime = "pyxis"
	Podman       ContainerRuntime = "podman"
	Apptainer    ContainerRuntime = "apptainer"
	Enroot       ContainerRuntime = "enroot"
	NoContainers ContainerRuntime = "none"
)

// ContainerRuntimes are all.
var ContainerRuntimes = []ContainerRuntime{Pyxis, Podman, Apptainer, Enroot, NoContainers}

// isCommand reports whether srun starts the runtime.
func (r ContainerRuntime) isCommand() bool { return r != "" && r != Pyxis && r != NoContainers }

// checkContainer refuses what the pool's way of images cannot do. The zero value is pyxis.
func (r ContainerRuntime) checkContainer(s *job.Spec) error {
	refuse := func(remedy, format string, args ...any) error {
		return engine.About(fault.New(fault.Unsupported, format, args...).Advise("%s", remedy), "image")
	}
	switch {
	case s.Image == "" || r == "" || r == Pyxis:
		return nil
	case r == NoContainers:
		return refuse("leave the image out, or ask an administrator to install pyxis, podman, apptainer or enroot on the nodes and to name it in the pool's setting container_runtime",
			"the nodes of this pool run no images (container_runtime: none)")
	case s.Source.Form == Form:
		return refuse("write a native job file with image: and script:, or have pyxis installed on the nodes",
			"--container-image in a batch script needs pyxis, and the pool runs images by %s", r)
	}
	c := containerOf(s)
	if c.Name != "" {
		return refuse("leave the name out: each task has a container of its own", "container_options: name needs pyxis, and the pool runs images by %s", r)
	}
	if r == Apptainer {
		for i := range c.Mounts {
			if i := slices.IndexFunc(c.Mounts[i].Flags, func(f string) bool { return f == "nosuid" || f == "nodev" || f == "noexec" }); i >= 0 {
				return refuse("leave the flag out", "container_options: mounts: apptainer cannot mount with nosuid, nodev or noexec")
			}
		}
	}
	return nil
}

// containerScripts are what a node runs of a job's image: get once, which pulls it, and run for each
// task, with the command as its arguments. They are of the shell, as ids, home directories and GPUs
// are known on the node alone.
func (r ContainerRuntime) containerScripts(s *job.Spec) (get, run string) {
	switch r {
	case Podman:
		return podmanScripts(s)
	case Apptainer:
		return apptainerScripts(s)
	}
	return enrootScripts(s)
}

// loginTest sets login to the folder of the user's login (cox registry login) if it has one for the
// registry of an image.
func loginTest(image string) string {
	return `login=${XDG_CONFIG_HOME:-$HOME/.config}/coxswain/registry
grep -qs ` + shellWord(`"`+hostOf(image)+`"`) + ` "$login/config.json" || login=
`
}

// hostOf is the registry of an image, as the file of logins names it.
func hostOf(image string) string {
	host, _, more := strings.Cut(containeropt.Reference(image), "/")
	if !more || !strings.ContainsAny(host, ".:") && host != "localhost" || host == "index.docker.io" {
		return "docker.io"
	}
	return host
}

// mountsOf are the mounts of a job, with absolute sources.
func mountsOf(s *job.Spec) []job.Mount {
	mounts := slices.Clone(containerOf(s).Mounts)
	for i := range mounts {
		if m := &mounts[i]; m.Source != "tmpfs" && !filepath.IsAbs(m.Source) {
			m.Source = filepath.Join(s.WorkDir, m.Source)
		}
	}
	return mounts
}

// flagsOf are the flags of a mount without those that a runtime sees to by itself.
func flagsOf(m *job.Mount) []string {
	return slices.DeleteFunc(slices.Clone(m.Flags), func(f string) bool { return strings.HasPrefix(f, "x-create=") })
}

func isTrue(b *bool) bool { return b != nil && *b }

func podmanScripts(s *job.Spec) (get, run string) {
	c, image := containerOf(s), shellWord(podmanImage(s))
	if !containeropt.IsFile(s.Image) {
		get = `podman image exists ` + image + ` && exit
` + loginTest(s.Image) + `exec podman pull --quiet ${login:+--authfile="$login/config.json"} ` + image + ` >/dev/null
`
	}
	var b strings.Builder
	b.WriteString(`set -- podman run --rm --pull=never --log-driver=none --cgroups=disabled --network=host --uts=host --ipc=host --security-opt=label=disable`)
	if s.Source.Form != podForm {
		b.WriteString(" --env-host")
	}
	for _, name := range c.Env {
		b.WriteString(" --env=" + shellWord(name))
	}
	mounts := mountsOf(s)
	for i := range mounts {
		m := &mounts[i]
		text := m.Source + ":" + m.Target
		if m.Source == "tmpfs" {
			text = m.Target
		}
		if f := flagsOf(m); len(f) > 0 {
			text += ":" + strings.Join(f, ",")
		}
		if m.Source == "tmpfs" {
			b.WriteString(" --tmpfs=" + shellWord(text))
		} else {
			b.WriteString(" --volume=" + shellWord(text))
		}
	}
	if isTrue(c.Home) {
		b.WriteString(` --volume="$HOME:$HOME"`)
	}
	if c.WorkDir != "" {
		b.WriteString(" --workdir=" + shellWord(c.WorkDir))
	}
	if c.Writable != nil && !*c.Writable {
		b.WriteString(" --read-only")
	}
	if !isTrue(c.Entrypoint) {
		b.WriteString(" --entrypoint=")
	}
	if containeropt.IsFile(s.Image) {
		image += ":O"
		b.WriteString(" --rootfs")
	}
	if containeropt.IsFile(s.Image) {
		b.WriteString(` $more ` + image + ` "$@"
exec "$@"
`)
	} else { // variables of the image outrank those of the job, as with pyxis
		b.WriteString(` --env-file=/dev/fd/3 $more ` + image + ` "$@"
exec "$@" 3<<COX_IMAGE
$(podman image inspect --format='{{range .Config.Env}}{{println .}}{{end}}' ` + image + `)
COX_IMAGE
`)
	}
	more := `more=--user=0:0
`
	if !isTrue(c.RemapRoot) {
		more += `[ "$(id -u)" = 0 ] || more="--userns=keep-id --user=$(id -u):$(id -g) --group-add=keep-groups"
`
	}
	more += `[ -z "$COX_SCRIPT" ] || more="$more --volume=$COX_SCRIPT:$COX_SCRIPT:ro"
for f in /etc/cdi/*nvidia* /var/run/cdi/*nvidia*; do
	[ -z "$CUDA_VISIBLE_DEVICES" ] || [ ! -e "$f" ] || more="$more --device=nvidia.com/gpu=all"
done
`
	return get, more + b.String()
}

// podmanImage is the image as podman names it.
func podmanImage(s *job.Spec) string {
	switch {
	case !containeropt.IsFile(s.Image):
		return containeropt.Reference(s.Image)
	case filepath.IsAbs(s.Image):
		return s.Image
	}
	return filepath.Join(s.WorkDir, s.Image)
}

// imageFile is the file of an image for a runtime without a store, as a word of the shell: it is
// below the home directory, which nodes mostly share.
func imageFile(s *job.Spec, suffix string) string {
	if containeropt.IsFile(s.Image) {
		return shellWord(podmanImage(s))
	}
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune("/:@", r) {
			return '+'
		}
		return r
	}, containeropt.Reference(s.Image))
	return `"${XDG_CACHE_HOME:-$HOME/.cache}/coxswain/"` + shellWord(name+suffix)
}

// getFile makes an image's file by a command that writes "$new", once for all who ask at a time.
func getFile(s *job.Spec, file, command string) string {
	if containeropt.IsFile(s.Image) {
		return "[ -e " + file + " ] || { echo " + shellWord("image "+s.Image+": there is no such file") + ` "on $(hostname)" >&2; exit 1; }
`
	}
	return `image=` + file + `
mkdir -p "${image%/*}" || exit
exec 9>"$image.lock" && flock 9 || exit
if [ ! -e "$image" ]; then
	` + strings.ReplaceAll(strings.TrimSuffix(loginTest(s.Image), "\n"), "\n", "\n\t") + `
	new=$image.new
	rm -f "$new"
	` + command + ` && mv "$new" "$image" || exit
fi
`
}

func apptainerScripts(s *job.Spec) (get, run string) {
	c, file := containerOf(s), imageFile(s, ".sif")
	get = getFile(s, file, `apptainer pull ${login:+--authfile="$login/config.json"} "$new" `+shellWord("docker://"+containeropt.Reference(s.Image)))
	var b strings.Builder
	verb := "exec"
	if isTrue(c.Entrypoint) {
		verb = "run"
	}
	b.WriteString(`more=
[ -z "$CUDA_VISIBLE_DEVICES" ] || more=--nv
[ -z "$ROCR_VISIBLE_DEVICES" ] || more="$more --rocm"
[ -z "$COX_SCRIPT" ] || more="$more --bind=$COX_SCRIPT:$COX_SCRIPT:ro"
exec apptainer ` + verb)
	if s.Source.Form == podForm { // which has an /etc/hosts of its own
		b.WriteString(" --no-mount=cwd,bind-paths --cleanenv")
	} else {
		b.WriteString(" --no-mount=cwd")
	}
	if !isTrue(c.Home) {
		b.WriteString(" --no-home")
	}
	if isTrue(c.RemapRoot) {
		b.WriteString(" --fakeroot")
	}
	if c.Writable == nil || *c.Writable {
		b.WriteString(" --writable-tmpfs")
	}
	if c.WorkDir != "" {
		b.WriteString(" --pwd=" + shellWord(c.WorkDir))
	}
	for _, name := range c.Env {
		if strings.Contains(name, "=") {
			b.WriteString(" --env=" + shellWord(name))
		} else {
			fmt.Fprintf(&b, ` --env=%s="$%s"`, name, name)
		}
	}
	mounts := mountsOf(s)
	for i := range mounts {
		m := &mounts[i]
		if m.Source == "tmpfs" {
			b.WriteString(" --scratch=" + shellWord(m.Target))
			continue
		}
		text := m.Source + ":" + m.Target
		if slices.Contains(m.Flags, "ro") {
			text += ":ro"
		}
		b.WriteString(" --bind=" + shellWord(text))
	}
	b.WriteString(` $more ` + file + ` "$@"
`)
	return get, b.String()
}

// enrootScripts run a container that get has made, in which the tasks of a node share their changes.
func enrootScripts(s *job.Spec) (get, run string) {
	const name = `"cox-$SLURM_JOB_ID"`
	file := imageFile(s, ".sqsh")
	return enrootImport(s, file) + `exec enroot create --force --name ` + name + ` ` + file + ` >/dev/null
`, enrootStart(s, name)
}

// enrootPodScripts run the file of an image: no container knows of another.
func enrootPodScripts(s *job.Spec) (get, run string) {
	file := imageFile(s, ".sqsh")
	return enrootImport(s, file), enrootStart(s, file)
}

func enrootImport(s *job.Spec, file string) string {
	uri := s.Image
	if !strings.HasPrefix(uri, "docker://") && !strings.HasPrefix(uri, "dockerd://") {
		uri = "docker://" + uri
	}
	return getFile(s, file, `env ${login:+ENROOT_CONFIG_PATH="$login"} enroot import --output "$new" `+shellWord(uri))
}

// enrootStart runs a container or the file of an image, which is a word of the shell.
func enrootStart(s *job.Spec, name string) string {
	c := containerOf(s)
	var b strings.Builder
	b.WriteString(`rc=$(mktemp) && echo 'exec "$@"' >"$rc" || exit
more=
[ -z "$COX_SCRIPT" ] || more="--mount $COX_SCRIPT:$COX_SCRIPT"
`)
	if c.WorkDir != "" {
		b.WriteString(`set -- sh -c 'cd "$0" && exec "$@"' ` + shellWord(c.WorkDir) + ` "$@"
`)
	}
	home := "n"
	if isTrue(c.Home) {
		home = "y"
	}
	b.WriteString("ENROOT_MOUNT_HOME=" + home + " enroot start")
	if !isTrue(c.Entrypoint) {
		b.WriteString(` --rc "$rc"`)
	}
	if isTrue(c.RemapRoot) {
		b.WriteString(" --root")
	}
	if c.Writable == nil || *c.Writable {
		b.WriteString(" --rw")
	}
	for _, name := range c.Env {
		b.WriteString(" --env " + shellWord(name))
	}
	mounts := mountsOf(s)
	for i := range mounts {
		m := &mounts[i]
		flags := append([]string{"x-create=auto", "rbind"}, flagsOf(m)...)
		if m.Source == "tmpfs" {
			flags = append([]string{"x-create=dir"}, flagsOf(m)...)
		}
		b.WriteString(" --mount " + shellWord(m.Source+" "+m.Target+" "+strings.Join(flags, ",")))
	}
	b.WriteString(` $more ` + name + ` "$@"
code=$?
rm -f "$rc"
exit $code
`)
	return b.String()
}

// writeOnNodes writes lines that run a script once on each node of the job, in each component.
func writeOnNodes(b *strings.Builder, variable, after string, groups int) {
	for i := range max(groups, 1) {
		nodes, het := `"$SLURM_JOB_NUM_NODES"`, ""
		if groups > 1 {
			nodes, het = fmt.Sprintf(`"$SLURM_JOB_NUM_NODES_HET_GROUP_%d"`, i), fmt.Sprintf(" --het-group=%d", i)
		}
		fmt.Fprintf(b, "srun%s --nodes=%s --ntasks=%s --ntasks-per-node=1 sh -c \"$%s\"%s\n", het, nodes, nodes, variable, after)
	}
}

// enrootLeft removes what enrootScripts made on a node.
const enrootLeft = `enroot remove --force "cox-$SLURM_JOB_ID"`

// quoteScript makes one word of a script.
func quoteScript(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// boxedScript is a batch script that runs a script inside of the job's image, on the first node.
func (r ContainerRuntime) boxedScript(s *job.Spec, script []byte) []byte {
	get, run := r.containerScripts(s)
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/sh\n\n# The script at the end runs on the first node, in the image %s, by %s.\n", oneLine(s.Image), r)
	if get != "" {
		b.WriteString("sh -c " + quoteScript(get) + " || exit\n")
	}
	end := "COX_SCRIPT_END"
	for strings.Contains(string(script), end) {
		end += "_"
	}
	fmt.Fprintf(&b, `COX_SCRIPT=$(mktemp "${TMPDIR:-/tmp}/cox-script.XXXXXX") && export COX_SCRIPT || exit
trap 'rm -f "$COX_SCRIPT"' EXIT
run=%s
cat >"$COX_SCRIPT" <<'%s'
%s
%[2]s
chmod 755 "$COX_SCRIPT"
trap : TERM
sh -c "$run" sh "$COX_SCRIPT" "$@"
code=$?
`, quoteScript(run), end, strings.TrimSuffix(string(script), "\n"))
	if r == Enroot {
		b.WriteString(enrootLeft + "\n")
	}
	b.WriteString("exit \"$code\"\n")
	return []byte(b.String())
}

// directScript is the script of a job whose tasks run a command each in a container of their own.
// step are the words between srun and the command.
func (r ContainerRuntime) directScript(s *job.Spec, step string) []byte {
	get, run := r.containerScripts(s)
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/sh\n\n# Every task runs the last line's command in the image %s, by %s.\n", oneLine(s.Image), r)
	if get != "" {
		b.WriteString("get=" + quoteScript(get) + "\n")
		writeOnNodes(&b, "get", " || exit", len(s.Groups))
	}
	b.WriteString("run=" + quoteScript(run) + "\n")
	if r == Enroot {
		b.WriteString("left=" + quoteScript(enrootLeft) + "\n")
	} else {
		b.WriteString("exec ")
	}
	b.WriteString(step + ` sh -c "$run" sh`)
	for _, w := range s.Program.Args {
		b.WriteString(" " + shellWord(w))
	}
	b.WriteString("\n")
	if r == Enroot {
		b.WriteString("code=$?\n")
		writeOnNodes(&b, "left", "", len(s.Groups))
		b.WriteString("exit \"$code\"\n")
	}
	return []byte(b.String())
}
